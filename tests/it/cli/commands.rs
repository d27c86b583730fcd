//! What every command has in common.

use std::fs;
use std::path::Path;

use super::support::Bench;

#[test]
fn a_misspelt_command_is_refused_with_the_nearest() {
    let run = Bench::new().run(&["snyc"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("a similar subcommand exists: 'sync'"), "{run:?}");
}

#[test]
fn help_and_version_are_data() {
    let bench = Bench::new();
    let version = bench.run(&["--version"]);
    assert_eq!(version.stdout.trim_end(), concat!("sierra-sync ", env!("CARGO_PKG_VERSION")));
    for command in ["demo", "init", "check", "sync", "status", "convert", "simulate", "schema"] {
        assert!(bench.run(&["--help"]).stdout.contains(&format!("\n  {command} ")), "{command} is not listed");
        let help = bench.run(&[command, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""));
        assert!(help.stdout.contains("--config <FILE>"), "{help:?}");
    }
}

#[test]
fn schemas_are_printed_as_they_stand_in_their_files() {
    let bench = Bench::new();
    for name in ["config", "change", "status", "summary"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{name}.json"));
        let printed = bench.run(&["schema", name]);
        let is_same = printed.stdout == fs::read_to_string(file).expect("it is there");
        assert!(printed.code == 0 && is_same, "{name} is printed differently");
    }
}
