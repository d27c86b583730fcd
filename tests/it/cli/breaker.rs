//! `breaker` on a state that no service holds: kept, shown, obeyed, and not taken away by a slip.

use super::support::Bench;

/// A bench where somebody is logged in.
fn bench() -> Bench {
    Bench::configured().variable("USER", "ann")
}

fn status(bench: &Bench) -> serde_json::Value {
    let run = bench.run(&["status", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    run.json_lines().remove(0)
}

/// A person opens it with a reason and an end: `status` shows both, `sync` ends at once and asks nobody.
#[test]
fn an_open_breaker_is_shown_with_its_reason_and_ends_sync_at_once() {
    let bench = bench();
    let run = bench.run(&["breaker", "open", "--reason", "upgrade\u{7} tonight", "--for", "2h", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let report = run.json_lines().remove(0);
    assert_eq!((&report["action"], &report["by"], &report["changed"]), (&"open".into(), &"ann".into(), &true.into()));
    let until = report["until"].as_str().expect("an end").to_owned();

    let report = status(&bench);
    let breaker = &report["breaker"];
    assert_eq!((&report["state"], &breaker["state"]), (&"degraded".into(), &"open".into()));
    assert_eq!(breaker["reason"], "opened by operator ann: upgrade  tonight");
    assert!(breaker["since"].is_string(), "{breaker}");
    let shown: jiff::Timestamp = breaker["next_probe"].as_str().expect("an end").parse().expect("a date");
    let apart = shown.duration_since(until.parse().expect("a date"));
    assert!(apart.abs() < jiff::SignedDuration::from_secs(1), "{apart:?}");
    let page = bench.run(&["status"]).stdout;
    assert!(
        page.contains("opened by operator ann: upgrade  tonight, since") && page.contains("next check in"),
        "{page}"
    );

    let run = bench.run(&["sync", "--json", "--set", "sierra.base_url=http://127.0.0.1:1/iii/sierra-api/v6"]);
    let summary = run.json_lines().pop().expect("a summary");
    assert_eq!((run.code, &summary["exit"]), (69, &69.into()), "{run:?}");
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&bibs["state"], &bibs["calls"]), (&"suspended".into(), &0.into()));
    let message = bibs["error"]["message"].as_str().expect("a sentence");
    let expected = "the breaker is open: opened by operator ann: upgrade  tonight (until 2";
    assert!(message.contains(expected), "{message}");
    assert!(bibs["error"]["hint"].as_str().is_some_and(|hint| hint.contains("breaker close --yes")), "{bibs}");

    // Once it is closed nobody is told to close it.
    bench.run(&["breaker", "close", "--yes"]);
    let status = status(&bench);
    let bibs = &status["streams"]["bibs"];
    let message = bibs["last_error"]["message"].as_str().expect("a sentence");
    assert_eq!(message, "info/token: not asked while the breaker was open; it is closed now");
    assert_ne!(bibs["state"], "suspended");
    assert!(!status.to_string().contains("breaker close --yes"), "{status}");
}

/// What takes a protection away wants to be meant, and says what it would do.
#[test]
fn close_and_reset_want_to_be_meant() {
    let bench = bench();
    bench.run(&["breaker", "open"]);
    for order in ["close", "reset"] {
        let run = bench.run(&["breaker", order]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains("--yes"), "{run:?}");
    }
    assert_eq!(status(&bench)["breaker"]["reason"], "opened by operator ann: no reason given");
    assert!(status(&bench)["message"].as_str().is_some_and(|message| message.contains("breaker close --yes")));

    let run = bench.run(&["breaker", "close", "--yes", "--reason", "done", "--json"]);
    assert_eq!(run.json_lines()[0]["changed"], true, "{run:?}");
    let run = bench.run(&["breaker", "reset", "--yes"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(status(&bench)["breaker"]["state"], "closed");
    let run = bench.run(&["breaker", "reset", "--yes", "--json"]);
    assert_eq!(run.json_lines()[0]["changed"], false, "{run:?}");
}

/// How long it holds is rounded to the second it was asked for, and until when is told.
#[test]
fn a_hold_is_told_with_its_length_and_its_end() {
    let said = bench().run(&["breaker", "open", "--for", "2h"]).stdout;
    assert!(said.starts_with("The breaker is open for 2 h: no call goes to Sierra before 2"), "{said}");
    let said = bench().run(&["breaker", "open", "--for", "90s"]).stdout;
    assert!(said.starts_with("The breaker is open for 90 s: "), "{said}");
}

/// Closed is closed, also while its health check is still to come.
#[test]
fn closing_twice_changes_nothing_and_says_so() {
    let bench = bench();
    bench.run(&["breaker", "open", "--reason", "upgrade"]);
    assert_eq!(bench.run(&["breaker", "close", "--yes", "--json"]).json_lines()[0]["changed"], true);
    let again = bench.run(&["breaker", "close", "--yes"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "The breaker was closed already: nothing changed.\n"));
    let lines = bench.run(&["breaker", "history", "--json"]).json_lines();
    let told: Vec<_> = lines.iter().map(|line| line["outcome"].as_str().expect("a text")).collect();
    let was_open = "it was open: opened by operator ann: upgrade";
    assert_eq!(told, ["it was closed", was_open, "it was closed; nothing changed"]);
}

/// Who did what, and why, is kept.
#[test]
fn the_history_names_who_did_what_and_why() {
    let bench = bench();
    assert_eq!(bench.run(&["breaker", "history"]).stdout, "Nobody has done anything yet.\n");
    bench.run(&["breaker", "open", "--reason", "upgrade", "--for", "90s"]);
    bench.run(&["breaker", "close", "--yes", "--reason", "it went well"]);
    let lines = bench.run(&["breaker", "history", "--json"]).json_lines();
    let told: Vec<_> = lines.iter().map(|line| (&line["command"], &line["by"], &line["reason"])).collect();
    let ann = &"ann".into();
    let expected =
        [(&"breaker open".into(), ann, &"upgrade".into()), (&"breaker close".into(), ann, &"it went well".into())];
    assert_eq!(told, expected);
    assert!(lines[0]["until"].is_string() && lines[1]["until"].is_null());
    assert_eq!(lines[1]["outcome"], "it was open: opened by operator ann: upgrade");
    let page = bench.run(&["breaker", "history"]).stdout;
    assert!(page.contains("breaker open by ann: \"upgrade\" (until "), "{page}");
}

#[test]
fn a_duration_without_a_unit_is_refused() {
    for lasts in ["2", "-1h", "400d", "soon"] {
        let run = bench().run(&["breaker", "open", "--for", lasts]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    }
}

/// It answers with what was asked for, whatever time has passed meanwhile.
#[test]
fn how_long_it_stays_open_is_answered_as_it_was_asked_for() {
    let bench = bench();
    for (asked, said) in [("1s", "for 1 s:"), ("2s", "for 2 s:"), ("90m", "for 90 min:")] {
        let run = bench.run(&["breaker", "open", "--for", asked]);
        assert!(run.code == 0 && run.stdout.contains(said), "{run:?}");
    }
}
