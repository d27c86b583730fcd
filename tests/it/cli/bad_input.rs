//! Each kind of bad input is answered with a clear sentence on stderr and exit code 2; nothing is done.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use super::support::{Bench, Run};

const MINIMAL: &str = include_str!("../../../fixtures/config/minimal.toml");

/// Runs `sync`, which must refuse and leave nothing behind.
fn refused(bench: &Bench, flags: &[&str]) -> String {
    let before = entries(bench);
    let Run { code, stdout, stderr } = bench.run(&[&["sync"], flags].concat());
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert_eq!(entries(bench), before, "it left something behind");
    stderr
}

fn entries(bench: &Bench) -> usize {
    fs::read_dir(bench.path()).expect("it is there").count()
}

fn bench(text: &str) -> Bench {
    Bench::with_config(text).variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret")
}

#[test]
fn an_unknown_key() {
    let said = refused(&bench(&MINIMAL.replace("base_url", "base_ulr")), &[]);
    assert!(said.starts_with("sierra-sync: 2 problems in the configuration\n"), "{said}");
    assert!(said.contains("./sierra-sync.toml:4:1: sierra.base_ulr: is not a known key; did you mean \"base_url\"?"));
    assert!(said.contains("./sierra-sync.toml:3:1: sierra.base_url: is missing"), "{said}");
}

#[test]
fn a_wrong_unit() {
    let said = refused(&bench(&MINIMAL.replace("[streams.bibs]", "[streams.bibs]\ninterval = \"5min\"")), &[]);
    assert!(said.contains("streams.bibs.interval: \"5min\" has an unknown unit (units are ms, s, m, h, d)"), "{said}");
}

#[test]
fn a_missing_secret() {
    let said = refused(&Bench::with_config(MINIMAL), &[]);
    assert!(said.contains("sierra.client_secret: is missing; set client_secret_file"), "{said}");
}

#[test]
fn a_secret_that_every_user_can_read() {
    let bench = Bench::with_config(&MINIMAL.replace("[sierra]", "[sierra]\nclient_secret_file = \"./secret\""));
    let path = bench.write("secret", "canary-7f3a");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let said = refused(&bench, &[]);
    assert!(said.contains("./secret can be read by every user of this machine; run: chmod 600 ./secret"), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn no_configuration_at_all() {
    let said = refused(&Bench::new(), &[]);
    let hint = "run `sierra-sync init` to write one, or name one with --config";
    assert!(said.contains("there is no ./sierra-sync.toml") && said.trim_end().ends_with(hint), "{said}");
}

/// A secret in the environment, as `simulate` tells people to put it, is no configuration and not to blame.
#[test]
fn no_configuration_beside_a_secret_in_the_environment() {
    let said = refused(&Bench::new().variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret"), &[]);
    assert!(said.contains("there is no ./sierra-sync.toml and no /etc/sierra-sync/sierra-sync.toml"), "{said}");
    assert!(!said.contains("CLIENT_SECRET"), "{said}");

    // A table that a variable made does not lack what the file lacks.
    let text = "config_version = 1\n[streams.bibs]\n[sinks.archive]\ntype = \"file\"\n";
    let said = refused(&bench(text), &[]);
    assert!(said.contains("./sierra-sync.toml: sierra.base_url: is missing"), "{said}");
}

#[test]
fn a_configuration_that_is_not_there() {
    let said = refused(&Bench::configured(), &["--config", "elsewhere.toml"]);
    assert!(said.contains("elsewhere.toml: there is no such file"), "{said}");
}

#[test]
fn a_configuration_that_is_not_toml() {
    let said = refused(&bench("config_version = \n"), &[]);
    assert!(said.contains("./sierra-sync.toml:1:18: not TOML: "), "{said}");
}

#[test]
fn an_override_that_is_none() {
    let said = refused(&Bench::configured(), &["--set", "retry.cap"]);
    assert!(said.contains("write KEY=VALUE, such as retry.cap=60s"), "{said}");
}

#[test]
fn a_sink_type_that_is_not_built() {
    let said = refused(&bench(&MINIMAL.replace("\"file\"", "\"postgres\"")), &[]);
    assert!(said.contains("\"postgres\" is not built yet; built are file and stdout"), "{said}");
}

/// A stream that is not configured cannot be up to date.
#[test]
fn a_stream_that_is_not_configured() {
    let said = refused(&bench(MINIMAL), &["--stream", "items"]);
    assert!(said.contains("[streams.items] is not configured; configured are: bibs"), "{said}");
    let run = bench(MINIMAL).run(&["sync", "--stream", "items", "--json"]);
    assert_eq!((run.code, &run.json_lines()[0]["exit"]), (2, &2.into()), "{run:?}");
}

/// A pipe without a writer would be waited for without end.
#[tokio::test]
async fn a_secret_and_a_key_file_that_are_pipes() {
    let bench = Bench::with_config(&MINIMAL.replace("[sierra]", "[sierra]\nclient_secret_file = \"./pipe\""));
    let made = Command::new("mkfifo").arg(bench.path().join("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "no mkfifo here");
    let (code, said) = in_time(bench.command(&["check", "--offline"])).await;
    assert!(code == Some(2) && said.contains("sierra.client_secret_file: ./pipe is not a file"), "{said}");
    let key = ["check", "--offline", "--set", "privacy.key_file=./pipe", "--set", "sierra.client_secret_file="];
    let mut command = bench.command(&key);
    command.env("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret");
    let (code, said) = in_time(command).await;
    assert!(code == Some(74) && said.contains("it is not a file"), "{said}");
}

/// The exit code and stdout of what may hang.
async fn in_time(command: Command) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::from(command);
    let ended = tokio::time::timeout(Duration::from_secs(30), command.kill_on_drop(true).output()).await;
    let output = ended.expect("it waits for somebody to write").expect("the binary runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn a_scenario_that_is_not_built_in() {
    let run = Bench::new().run(&["simulate", "--scenario", "nope"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains("demo, night, outage, quiet, storm"), "{run:?}");
}
