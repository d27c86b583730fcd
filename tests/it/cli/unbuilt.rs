//! What is planned and not built yet is recognised and refused, and the README says so.

use std::fs;
use std::path::Path;

use sierra_sync::cli::unbuilt::{UNBUILT_COMMANDS, list};

use super::support::Bench;

#[test]
fn a_command_that_is_not_built_is_refused_in_one_sentence_whatever_its_arguments() {
    let bench = Bench::new();
    for row in UNBUILT_COMMANDS {
        for arguments in [&["bibs", "--ids", "1..9", "--plan"][..], &["--help"], &["-x", "--", "y"], &[]] {
            let run = bench.run(&[&[row.name], arguments].concat());
            let sentence = format!("sierra-sync: `{}` is not built yet; {}\n", row.name, row.instead);
            assert_eq!((run.code, run.stdout.as_str(), run.stderr), (2, "", sentence));
        }
    }
}

#[test]
fn the_readme_lists_what_is_not_built() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).expect("it is there");
    let expected = format!("<!-- unbuilt -->\n{}\n<!-- /unbuilt -->", list());
    assert!(readme.contains(&expected), "write this into the README:\n{expected}");
}
