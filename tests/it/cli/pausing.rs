//! `pause` and `resume` on a state that no service holds.

use super::support::Bench;

/// Kept, shown with who and why, obeyed by `sync`, and taken back.
#[test]
fn a_pause_is_kept_shown_obeyed_and_taken_back() {
    let bench = Bench::configured().variable("USER", "ann");
    let run =
        bench.run(&["pause", "--stream", "bibs", "--sink", "archive", "--reason", "\u{202e}upgrade\u{7}", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let lines = run.json_lines();
    assert_eq!((&lines[0]["stream"], &lines[1]["sink"]), (&"bibs".into(), &"archive".into()));
    assert!(lines.iter().all(|line| line["by"] == "ann" && line["changed"] == true && line["reason"] == "upgrade"));
    let again = bench.run(&["pause", "--stream", "bibs"]);
    assert!(!again.stderr.contains("was paused already"), "it is said once: {}", again.stderr);
    assert_eq!((again.code, again.stdout.as_str()), (0, "The stream bibs was paused already: nothing changed.\n"));

    let status = bench.run(&["status", "--json"]).json_lines().remove(0);
    assert_eq!(
        (&status["streams"]["bibs"]["state"], &status["streams"]["bibs"]["paused"]["by"]),
        (&"paused".into(), &"ann".into())
    );
    let page = bench.run(&["status"]).stdout;
    assert!(page.contains("by ann: upgrade; `sierra-sync resume --stream bibs` lets it go on"), "{page}");

    let nowhere = "sierra.base_url=http://127.0.0.1:1/iii/sierra-api/v6";
    let run = bench.run(&["sync", "--stream", "bibs", "--set", nowhere]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("`sierra-sync resume --stream bibs` first"), "{run:?}");
    let run = bench.run(&["resume", "--stream", "bibs", "--sink", "archive"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "The stream bibs goes on.\nThe sink archive goes on.\n"));
    let history = bench.run(&["breaker", "history"]).stdout;
    assert!(
        history.contains("pause --stream bibs by ann: \"upgrade\"") && history.contains("resume --sink archive"),
        "{history}"
    );
    assert_eq!(
        bench.run(&["status", "--json"]).json_lines().remove(0)["streams"]["bibs"]["paused"],
        serde_json::Value::Null
    );
}

/// `--quiet`: what goes well is not talked of; what was asked for is there all the same.
#[test]
fn orders_that_go_well_say_nothing_when_quiet_is_asked_for() {
    let bench = Bench::configured();
    for arguments in [
        &["pause", "--stream", "bibs"][..],
        &["resume", "--stream", "bibs"],
        &["breaker", "open"],
        &["breaker", "close", "--yes"],
        &["breaker", "reset", "--yes"],
        &["quarantine", "replay"],
        &["queue", "list"],
        &["cursor", "history"],
    ] {
        let run = bench.run(&[arguments, &["--quiet"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{arguments:?}");
        // That calls are halted is logged as an error, whoever halts them.
        let is_logged = arguments == ["breaker", "open"];
        assert!(is_logged || run.stderr.is_empty(), "{arguments:?}: {}", run.stderr);
    }
    assert!(bench.run(&["breaker", "history", "--quiet"]).stdout.contains("resume --stream bibs"));
    let json = bench.run(&["pause", "--stream", "bibs", "--quiet", "--json"]);
    assert_eq!(json.json_lines().len(), 1, "{json:?}");
}

#[test]
fn what_is_not_there_or_is_paused_by_the_configuration_is_refused() {
    let bench = Bench::configured();
    for (arguments, said) in [
        (&["pause", "--stream", "items"][..], "there are: bibs"),
        (&["pause", "--sink", "archiv"], "there are: archive"),
        (&["resume", "--sink", "archive", "--set", "sinks.archive.paused=true"], "sinks.archive.paused = false"),
        (&["pause"], "--stream"),
    ] {
        let run = bench.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
    }
}
