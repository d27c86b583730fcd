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
    for command in [
        "demo",
        "init",
        "check",
        "sync",
        "backfill",
        "reconcile",
        "cursor",
        "status",
        "breaker",
        "recover",
        "convert",
        "schema",
    ] {
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

/// A13: whatever goes to stderr can be read by programs when they ask for JSON lines.
#[test]
fn stderr_is_flat_json_lines_when_asked_for() {
    let bench = Bench::with_config("config_version = 3\n[retry]\ncap = \"x\"\n");
    let run = bench.run(&["sync", "--log-format", "json"]);
    assert_eq!(run.code, 2);
    let lines: Vec<serde_json::Value> =
        run.stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{run:?}"))).collect();
    let cap = lines.iter().find(|line| line["key"] == "retry.cap").expect("its line");
    assert_eq!((&cap["event"], &cap["exit"], &cap["level"]), (&"config_problem".into(), &2.into(), &"error".into()));
    assert_eq!(cap["place"], "./sierra-sync.toml:3:7");
    assert!(
        lines.iter().all(|line| line.as_object().is_some_and(|line| line.values().all(|value| !value.is_object())))
    );
}

#[test]
fn status_makes_no_state_where_there_is_none() {
    let bench = Bench::configured();
    let run = bench.run(&["status", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let message = &run.json_lines()[0]["message"];
    assert_eq!(message, "Nothing was synced yet into ./state: run `sierra-sync sync`.");
    let left: Vec<_> =
        fs::read_dir(bench.path()).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    assert_eq!(left, [bench.path().join("sierra-sync.toml")]);
}

const BAD_AND_GOOD: &str = r#"[{"fields":7},{"leader":"00000nam a2200000   4500","fields":[{"001":"b1"}]}]"#;

#[test]
fn convert_counts_in_json_and_is_quiet_when_told_to() {
    let bench = Bench::new();
    let records = bench.write("records.json", BAD_AND_GOOD);
    let arguments = ["convert", "--from", "marc-json", "--to", "marcxml", "--on-error", "skip"];
    let run = |more: &[&str]| bench.run(&[&arguments, more, &[records.to_str().expect("text")]].concat());

    let (talkative, quiet, json) = (run(&[]), run(&["--quiet"]), run(&["--json"]));
    assert!(talkative.stdout == quiet.stdout && quiet.stdout == json.stdout, "the records are the same");
    assert!(talkative.stdout.contains("<controlfield tag=\"001\">b1</controlfield>"), "{talkative:?}");
    assert!(talkative.stderr.contains("2 read = 1 written + 1 refused"), "{talkative:?}");
    assert_eq!(quiet.stderr, "");
    let counts: serde_json::Value = serde_json::from_str(&json.stderr).expect("one object");
    assert_eq!((&counts["read"], &counts["written"], &counts["refused"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!((talkative.code, quiet.code, json.code), (3, 3, 3));
}

#[test]
fn every_shell_gets_its_completions() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = bench.run(&["completions", shell]);
        assert!(run.code == 0 && run.stdout.contains("simulate"), "{shell}: {run:?}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["man", "--output", "pages"]).code, 0);
    for command in ["demo", "init", "check", "sync", "run", "status", "convert", "simulate", "schema", "man"] {
        let page =
            fs::read_to_string(bench.path().join(format!("pages/sierra-sync-{command}.1"))).expect("it is there");
        assert!(page.contains(&format!("sierra\\-sync\\-{command}")) && page.contains("\\-\\-config"), "{page}");
        let heading = page.lines().find(|line| line.starts_with(".TH")).expect("a heading");
        assert!(heading.contains(concat!("\"sierra-sync ", env!("CARGO_PKG_VERSION"), "\"")), "{heading}");
        assert_eq!(bench.run(&["man", command]).stdout.trim_end(), page.trim_end());
    }
    let unknown = bench.run(&["man", "snyc"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("there is no page for sierra-sync-snyc"), "{unknown:?}");
}
