//! With `--json` the last line of stdout is one object in every ending, those included in which nothing could be done.

use serde_json::{Value, json};
use sierra_sync::cli::schema::SchemaName;
use sierra_sync::store::StateLock;

use super::support::{Library, Run, Site, assert_valid};

/// The summary of a run that came to nothing: valid, and with the exit code that the process had.
#[track_caller]
fn failed(run: &Run, exit: i32, kind: &str) -> Value {
    let summary = run.summary();
    assert_valid(SchemaName::Summary, [&summary]);
    assert_eq!((&summary["schema"], &summary["ok"], &summary["exit"]), (&json!(1), &json!(false), &exit.into()));
    assert_eq!((&summary["error"]["kind"], &summary["sinks"]), (&json!(kind), &json!({})), "{summary}");
    let message = summary["error"]["message"].as_str().expect("a sentence");
    assert!(run.stderr.contains(message), "{message} is not what stderr says: {}", run.stderr);
    summary
}

fn site() -> Site {
    Site::new(Library::sized(3, 3, 0))
}

#[test]
fn sync_tells_what_is_wrong_with_the_configuration() {
    let run = site().sync(&["--set", "retry.cap=4 moons"]).ends(2);
    let summary = failed(&run, 2, "config");
    assert_eq!(summary["streams"], json!({}), "nobody knows them");
    assert!(summary["error"]["message"].as_str().is_some_and(|message| message.contains("retry.cap")), "{summary}");
    assert!(summary["error"]["hint"].as_str().is_some_and(|hint| hint.contains("check --offline")), "{summary}");
}

#[test]
fn sync_tells_that_its_command_line_is_not_understood() {
    failed(&site().sync(&["--stream", "holdings"]).ends(2), 2, "usage");
    assert_eq!(
        site().bench.run(&["sync", "--help", "--json"]).ends(0).stdout.lines().last().map(|line| line.contains('{')),
        Some(false)
    );
}

#[test]
fn sync_tells_who_holds_the_state() {
    let site = site();
    let lock = StateLock::acquire(&site.bench.path("state")).expect("free");
    let summary = failed(&site.sync(&[]).ends(75), 75, "held");
    let states: Vec<_> = ["bibs", "items"].iter().map(|stream| &summary["streams"][stream]["state"]).collect();
    assert_eq!(states, [&json!("failed"), &json!("failed")]);
    assert_eq!(summary["streams"]["bibs"]["error"], summary["error"]);
    let summary = failed(&site.sync(&["--stream", "items"]).ends(75), 75, "held");
    assert_eq!(summary["streams"].as_object().map(|streams| streams.len()), Some(1), "only what was asked for");
    drop(lock);
}

/// It is set aside by itself the first time; a state that is damaged again within a day is refused.
#[test]
fn sync_tells_that_the_state_is_damaged_again() {
    let site = Site::loaded();
    site.bench.write("state/db/db", "damaged");
    assert!(site.sync(&[]).ends(0).summary()["set_aside"].is_string());
    site.bench.write("state/db/db", "damaged");
    failed(&site.sync(&[]).ends(74), 74, "store");
}

#[test]
fn a_backfill_tells_that_its_file_is_missing() {
    let run = site().bench.run(&["backfill", "bibs", "--ids-file", "none.txt", "--json"]).ends(2);
    let summary = failed(&run, 2, "usage");
    let message = summary["error"]["message"].as_str().expect("a sentence");
    assert!(message.starts_with("--ids-file none.txt cannot be read: No such file"), "{message}");
}

/// Where the document is of another shape, what stands in for it holds the three keys that the summary has, too.
#[test]
fn other_documents_have_a_stand_in_and_lists_have_none() {
    let site = Site::loaded();
    let _lock = StateLock::acquire(&site.bench.path("state")).expect("free");
    let documents: [&[&str]; 5] =
        [&["status"], &["queue", "drain"], &["queue", "verify"], &["breaker", "open"], &["recover"]];
    for command in documents {
        let run = site.bench.run(&[command, &["--json"]].concat()).ends(75);
        let last = run.json_lines().pop().expect("one line");
        assert_eq!((&last["ok"], &last["exit"], &last["error"]["kind"]), (&json!(false), &json!(75), &json!("held")));
        let run = site.bench.run(&[command, &["--json", "--set", "retry.cap=x"]].concat()).ends(2);
        assert_eq!(run.json_lines().pop().expect("one line")["error"]["kind"], "config");
        assert_eq!(site.bench.run(command).ends(75).stdout, "", "people read stderr");
    }
    for list in [&["queue", "list"][..], &["quarantine", "list"], &["breaker", "history"]] {
        assert_eq!(site.bench.run(&[list, &["--json"]].concat()).ends(75).stdout, "");
    }
}
