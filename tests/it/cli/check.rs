//! `check` finds what is wrong and changes nothing; `check --offline` asks nobody.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{Bench, Run};
use crate::sierra::raw_server::start_tls;

const MINIMAL: &str = include_str!("../../../fixtures/config/minimal.toml");

#[test]
fn every_line_has_the_four_keys_of_its_contract() {
    let bench = Bench::configured();
    let run = bench.run(&["check", "--offline", "--json", "--set", "retry.cap=5s"]);
    assert_eq!(run.code, 0, "{run:?}");
    let lines = run.json_lines();
    assert!(lines.len() >= 3, "{lines:#?}");
    for line in &lines {
        let keys: Vec<&String> = line.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["hint", "message", "ok", "probe"]);
    }
    assert_eq!(lines[0]["message"], "valid; follows bibs into archive");
    let is_warned = |line: &serde_json::Value| {
        line["message"].as_str().is_some_and(|message| message.starts_with("retry.cap is 5s, shorter than"))
    };
    assert!(lines.iter().any(is_warned), "{lines:#?}");
}

#[test]
fn every_problem_is_a_line_that_failed() {
    let bench = Bench::with_config(include_str!("../../../fixtures/config/broken.toml"));
    let run = bench.run(&["check", "--offline", "--json"]);
    assert_eq!(run.code, 2, "{run:?}");
    let lines = run.json_lines();
    assert!(lines.len() > 40, "{} problems", lines.len());
    assert!(lines.iter().all(|line| line["ok"] == json!(false) && line["probe"] == json!("config")));
    assert!(!run.stdout.contains("canary") && !run.stderr.contains("canary"));
}

/// BR-122: what the chosen overlap and intervals cost is said before they are paid.
#[test]
fn the_cost_of_the_schedule_is_told() {
    let bench = Bench::configured();
    let calls = |interval: &str| {
        let set = format!("streams.bibs.interval={interval}");
        let run = bench.run(&["check", "--offline", "--set", &set]);
        let estimate = run.stdout.lines().find(|line| line.contains("estimate")).expect("it is told").to_owned();
        estimate.split_once("about ").expect("a number").1.split_once(" calls").expect("calls").0.replace(',', "")
    };
    let (often, seldom): (u64, u64) = (calls("1m").parse().expect("a number"), calls("1h").parse().expect("a number"));
    assert_eq!((often, seldom), (1440 * 3 + 96 + 2, 24 * 3 + 96 + 2));
}

/// While a person holds the breaker open nobody calls, `check` neither: one line says so in place of what Sierra would
/// have been asked. What asks nobody there is done as ever, and once the hold has run out Sierra is asked again.
#[test]
fn a_breaker_that_is_held_open_keeps_check_from_calling() {
    let bench = Bench::configured().variable("USER", "ann");
    let sierra = TcpListener::bind("127.0.0.1:0").expect("a free port");
    sierra.set_nonblocking(true).expect("a socket");
    let base_url = format!("sierra.base_url=http://{}/iii/sierra-api/v6", sierra.local_addr().expect("bound"));
    let check = |set: &str| bench.run(&["check", "--json", "--set", &base_url, "--set", set]);
    let opened = bench.run(&["breaker", "open", "--reason", "upgrade tonight", "--for", "2h", "--json"]);
    let until =
        opened.json_lines()[0]["until"].as_str().expect("an end").split('.').next().expect("seconds").to_owned();

    let run = check("retry.base=1s");
    assert_eq!(run.code, 69, "{run:?}");
    assert_eq!(sierra.accept().map(drop).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "a call was made");
    let lines = run.json_lines();
    let failed: Vec<_> = lines.iter().filter(|line| line["ok"] == false).collect();
    let expected = format!("held open by operator ann until {until}Z, reason: upgrade tonight; Sierra was not asked");
    assert_eq!((failed.len(), &failed[0]["probe"], &failed[0]["message"]), (1, &"breaker".into(), &expected.into()));
    assert_eq!(failed[0]["hint"], "`sierra-sync breaker close --yes` lifts it");
    let probes: Vec<_> = lines.iter().map(|line| line["probe"].as_str().expect("a name")).collect();
    for probe in ["config", "estimate", "state", "disk", "sink archive"] {
        assert!(probes.contains(&probe), "{probe} is not among {probes:?}");
    }

    bench.run(&["breaker", "open", "--for", "1s"]);
    let asks = |_| {
        let said = check("retry.total_budget=1s").stdout;
        said.contains("\"token\"") && !said.contains("\"breaker\"")
    };
    assert!((0..500).any(asks), "it is held for more than a second");
}

/// A word that cannot be read is no leave to call; any new word to the breaker replaces it.
#[test]
fn what_cannot_be_known_of_the_breaker_keeps_check_from_calling() {
    let bench = Bench::configured();
    bench.run(&["breaker", "open"]);
    std::fs::write(bench.path().join("state/hold"), "torn").expect("it can be written");
    let run = bench.run(&["check", "--json"]);
    assert_eq!(run.code, 74, "{run:?}");
    let lines = run.json_lines();
    let breaker = lines.iter().find(|line| line["probe"] == "breaker").unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(breaker["message"].as_str().is_some_and(|message| message.contains("Sierra was not asked")), "{breaker}");
    assert!(lines.iter().all(|line| line["probe"] != "token"), "{lines:#?}");
    bench.run(&["breaker", "close", "--yes"]);
    assert!(!bench.path().join("state/hold").exists());
}

/// Every file below `directory` with its content and mode.
fn files(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            files.insert(path.clone(), (fs::read(&path).expect("legible"), mode));
        }
    }
    files
}

/// What `probe` found, by `check --offline` and by `check`, which must agree and change nothing.
fn found(bench: &Bench, probe: &str) -> (i32, Value) {
    let state = bench.path().join("state");
    let before = files(&state);
    let (offline, online) = (bench.run(&["check", "--offline", "--json"]), bench.run(&["check", "--json"]));
    assert!(files(&state) == before, "check changed the state");
    let line = |run: &Run| {
        let lines = run.json_lines();
        lines.into_iter().find(|line| line["probe"] == probe).unwrap_or_else(|| panic!("{run:?}"))
    };
    assert_eq!(line(&offline), line(&online));
    assert!(offline.code == 0 || offline.code == online.code, "{online:?}");
    (offline.code, line(&offline))
}

/// A state that a person holds the breaker open for, so that nobody is asked.
fn with_a_state() -> Bench {
    let bench = Bench::configured().variable("USER", "ann");
    assert_eq!(bench.run(&["breaker", "open"]).code, 0);
    bench
}

#[test]
fn a_sound_state_is_opened_as_a_copy_and_left_alone() {
    let (code, line) = found(&with_a_state(), "database");
    assert_eq!((code, &line["message"]), (0, &"a copy of it opens".into()));
}

#[test]
fn a_state_that_is_cut_short_is_not_called_well() {
    let bench = with_a_state();
    let database = bench.path().join("state/db/db");
    let length = fs::metadata(&database).expect("it is there").len();
    fs::OpenOptions::new().write(true).open(&database).and_then(|file| file.set_len(length / 4)).expect("cut");
    let (code, line) = found(&bench, "database");
    assert_eq!((code, &line["ok"]), (74, &false.into()), "{line}");
    assert!(line["message"].as_str().is_some_and(|message| message.starts_with("failed to open the state")), "{line}");
}

#[test]
fn a_key_file_that_others_can_read_is_told_as_one_and_not_as_a_directory() {
    let bench = with_a_state();
    let key = bench.path().join("state/keys/privacy.keys");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let (code, line) = found(&bench, "key");
    assert_eq!((code, &line["hint"]), (74, &"run: chmod 600 ./state/keys/privacy.keys".into()), "{line}");
    let sync = bench.run(&["sync"]);
    assert!(sync.code == 74 && sync.stderr.contains("chmod 600 ./state/keys/privacy.keys"), "{sync:?}");
    assert!(!sync.stderr.contains("state.path"), "{sync:?}");
}

#[test]
fn a_key_file_that_is_gone_is_to_be_restored() {
    let bench = with_a_state();
    bench.write("sierra-sync.toml", &format!("{MINIMAL}\n[privacy]\nkey_file = \"./gone.keys\"\n"));
    let (code, line) = found(&bench, "key");
    assert_eq!(code, 74, "{line}");
    assert!(line["message"].as_str().is_some_and(|message| message.contains("./gone.keys")), "{line}");
    assert!(line["hint"].as_str().is_some_and(|hint| hint.starts_with("restore it from a backup")), "{line}");
    let sync = bench.run(&["sync"]);
    assert!(sync.code == 74 && sync.stderr.contains("restore it from a backup"), "{sync:?}");
    assert!(!sync.stderr.contains("state.path"), "{sync:?}");
}

/// The sinks of a process of ours are its own: `check` says who has them, and that is no failure.
#[test]
fn the_sinks_of_a_process_that_holds_the_state_are_not_probed() {
    let bench = Bench::configured();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let base_url = format!("sierra.base_url=http://{}/iii/sierra-api/v6", silent.local_addr().expect("bound"));
    let mut command = bench.command(&["sync", "--set", &base_url]);
    let mut holder = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    // It waits for an answer that never comes, and so holds state and sinks.
    let asked = silent.accept();
    let nobody = "sierra.base_url=http://127.0.0.1:1/iii/sierra-api/v6";
    let offline = bench.run(&["check", "--offline", "--json"]);
    let run = bench.run(&["check", "--json", "--set", nobody, "--set", "retry.max_attempts=1"]);
    holder.kill().expect("it still waits");
    holder.wait().expect("it was killed");
    assert!(asked.is_ok());
    assert_eq!(offline.code, 0, "{offline:?}");
    let who = format!("(pid {})", holder.id());
    for probe in ["database", "sink archive"] {
        let line =
            run.json_lines().into_iter().find(|line| line["probe"] == probe).unwrap_or_else(|| panic!("{run:?}"));
        assert_eq!(line["ok"], true, "{line}");
        assert!(line["message"].as_str().is_some_and(|message| message.contains(&who)), "{line}");
    }
    let failed: Vec<_> = run.json_lines().into_iter().filter(|line| line["ok"] == false).collect();
    assert!(failed.iter().all(|line| line["probe"] == "token"), "{failed:?}");
}

/// What the first run makes belongs to whoever runs it, and not to whoever looked before.
#[test]
fn nothing_is_made_of_sinks_that_no_run_has_begun() {
    let bench = Bench::configured();
    let nobody = "sierra.base_url=http://127.0.0.1:1/iii/sierra-api/v6";
    let names = || {
        let entries = fs::read_dir(bench.path()).expect("it is there");
        entries.map(|entry| entry.expect("named").file_name()).collect::<Vec<_>>()
    };
    let run = bench.run(&["check", "--set", nobody, "--set", "retry.max_attempts=1"]);
    assert_eq!(names(), ["sierra-sync.toml"], "{run:?}");
    let said = |probe: &str| run.stdout.lines().find(|line| line.contains(probe)).unwrap_or_default().to_owned();
    assert!(said("sink archive").contains("will be made by the first run"), "{run:?}");
    assert!(said("directory of archive").contains("can be made in"), "{run:?}");
    fs::create_dir(bench.path().join("out")).expect("made");
    bench.run(&["check", "--set", nobody, "--set", "retry.max_attempts=1"]);
    assert_eq!(fs::read_dir(bench.path().join("out")).expect("it is there").count(), 0);
}

/// A certificate of an issuer that this machine does not know: the setting for that is named, and no library speaks
/// before us.
#[test]
fn an_unknown_issuer_is_told_with_the_setting_for_it() {
    let bench = Bench::configured();
    let address = start_tls("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    let base_url = format!("sierra.base_url=https://localhost:{}/iii/sierra-api/v6", address.port());
    let run = bench.run(&["check", "--quiet", "--json", "--set", &base_url, "--set", "retry.max_attempts=1"]);
    assert_eq!((run.code, run.stderr.as_str()), (69, ""), "{run:?}");
    let lines = run.json_lines();
    let token = lines.iter().find(|line| line["probe"] == "token").unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(token["hint"].as_str().is_some_and(|hint| hint.contains("sierra.ca_file")), "{token}");
    assert!(token["message"].as_str().is_some_and(|message| message.contains("certificate")), "{token}");
}

/// `out2` leads to `out`, which the first run would make: two sinks, one directory.
#[test]
fn a_link_to_a_sink_that_is_not_there_yet_is_the_same_sink() {
    let bench = Bench::with_config(&format!("{MINIMAL}\n[sinks.copy]\ntype = \"file\"\npath = \"./out2\"\n"))
        .variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret");
    symlink("out", bench.path().join("out2")).expect("made");
    let run = bench.run(&["check", "--offline"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stdout.contains("sinks.copy.path: is the same directory as sinks.archive.path"), "{run:?}");
}
