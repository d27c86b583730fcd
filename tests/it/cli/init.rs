//! `init` writes a file to begin with.

use std::fs;

use super::support::Bench;

#[test]
fn the_file_needs_only_key_and_secret() {
    let bench = Bench::new()
        .variable("SIERRA_SYNC__SIERRA__CLIENT_KEY", "key")
        .variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret");
    let written = bench.run(&["init"]);
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{written:?}");
    assert!(written.stderr.contains("Wrote sierra-sync.toml. Next:"), "{written:?}");
    // As the README has it.
    assert!(
        written.stderr.contains("4. sierra-sync run ") && written.stderr.contains("sierra-sync sync,"),
        "{written:?}"
    );
    let checked = bench.run(&["check", "--offline"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[test]
fn a_file_that_exists_is_never_overwritten() {
    let bench = Bench::with_config("mine");
    let refused = bench.run(&["init"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("sierra-sync.toml exists and is never overwritten"), "{refused:?}");
    assert_eq!(fs::read_to_string(bench.path().join("sierra-sync.toml")).expect("it is there"), "mine");
}

#[test]
fn the_file_can_be_put_elsewhere() {
    let bench = Bench::new();
    let written = bench.run(&["init", "--config", "other.toml"]);
    assert!(written.stderr.contains("sierra-sync check --config other.toml"), "{written:?}");
    assert!(bench.path().join("other.toml").is_file());
    let nowhere = bench.run(&["init", "--config", "no/such/directory.toml"]);
    assert_eq!(nowhere.code, 74, "{nowhere:?}");
    assert!(nowhere.stderr.contains("failed to create no/such/directory.toml: No such file"), "{nowhere:?}");
}
