//! Capture that is held for want of room: a command that cannot get on says so and ends, and the next one finishes.

use serde_json::Value;

use super::support::{Library, Run, Site, patiently};

/// More than any disk of a test has free.
const NO_ROOM: &str = "state.min_free=10TiB";
const SMALL: &str = "state.outbox_max_size=16KiB";

/// A site whose sink `lines` holds capture when the queue is full.
fn holding() -> Site {
    let site = Site::new(Library::sized(200, 0, 0));
    site.configure(|text| text.replace("path = \"./lines\"", "path = \"./lines\"\nwhen_full = \"hold\""));
    site
}

#[track_caller]
fn assert_says(run: &Run, kind: &str, parts: &[&str]) {
    let summary = run.summary();
    let error = &summary["streams"]["bibs"]["error"];
    assert_eq!(error["kind"], kind, "{summary}");
    let told = format!("{}; {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
    for part in parts {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

fn status(site: &Site, arguments: &[&str]) -> Value {
    site.bench.run(&[&["status", "--json"], arguments].concat()).ends(0).json_lines().remove(0)
}

/// Room is made by the command that was named: what was held back is read then, and nothing of it is lost.
#[test]
fn a_sync_whose_queue_is_full_ends_with_75_and_the_command_that_frees_it() {
    let site = holding();
    site.bench.run(&["pause", "--sink", "lines"]).ends(0);
    let run = site.sync(&["--set", SMALL]).ends(75);
    let place = site.bench.path("state");
    let parts = ["state.outbox_max_size", "lines", "`sierra-sync resume --sink lines`", &*place.to_string_lossy()];
    assert_says(&run, "outbox_full", &parts);
    site.bench.run(&["resume", "--sink", "lines"]).ends(0);
    let run = site.sync(&["--set", SMALL]).ends(0);
    assert_eq!(run.summary()["streams"]["bibs"]["state"], "caught_up");
    site.assert_converged();
}

#[test]
fn a_sync_on_a_disk_that_is_nearly_full_ends_with_75_and_asks_for_no_record() {
    let site = holding();
    let run = site.sync(&["--set", NO_ROOM]).ends(75);
    assert_says(&run, "disk_low", &["state.min_free", "10485760.0 MiB", &site.bench.path("state").to_string_lossy()]);
    assert_eq!(run.summary()["streams"]["bibs"]["fetched"], 0);
    site.sync_well();
    site.assert_converged();
}

/// Both limits: the backfill is parked, and the same command goes on with it.
#[test]
fn a_backfill_that_is_held_ends_with_75_and_goes_on_later() {
    let site = Site::loaded();
    site.configure(|text| {
        text.replace("path = \"./lines\"", "path = \"./lines\"\nwhen_full = \"hold\"\npaused = true")
    });
    let arguments = ["backfill", "bibs", "--force", "--json"];
    let run = site.bench.run(&[&arguments[..], &["--set", SMALL]].concat()).ends(75);
    assert_says(&run, "outbox_full", &["take sinks.lines.paused out", "state.outbox_max_size"]);
    let first = run.summary()["streams"]["bibs"]["changed"].as_u64().unwrap();
    assert!((1..220).contains(&first), "{first}");
    let run = site.bench.run(&[&arguments[..], &["--set", NO_ROOM]].concat()).ends(75);
    assert_says(&run, "disk_low", &["state.min_free"]);
    site.configure(|text| text);
    let rest = site.bench.run(&arguments).ends(0).summary();
    assert_eq!(rest["streams"]["bibs"]["changed"].as_u64(), Some(220 - first), "{rest}");
    site.assert_converged();
}

/// No process is there to tell of it: the state and the disk do.
#[test]
fn the_status_tells_of_a_held_capture_without_a_service() {
    let site = holding();
    site.bench.run(&["pause", "--sink", "lines"]).ends(0);
    site.sync(&["--set", SMALL]).ends(75);
    for (limit, part) in [(SMALL, "`sierra-sync resume --sink lines`"), (NO_ROOM, "state.min_free asks for")] {
        let status = status(&site, &["--set", limit]);
        assert_eq!(status["state"], "degraded", "{status}");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("Nothing is captured: ") && message.contains(part), "{message}");
        assert!(status["store"]["held"].as_str().unwrap().contains(part), "{status}");
    }
    assert_eq!(status(&site, &[])["store"]["held"], Value::Null);
}

/// A service may be freed any moment: whoever waits for it is told why.
#[test]
fn a_backfill_sent_to_a_service_says_why_it_waits_and_ends() {
    let site = Site::loaded();
    site.configure(|text| {
        let text = text.replace("path = \"./lines\"", "path = \"./lines\"\nwhen_full = \"hold\"");
        format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n")
    });
    let service = site.bench.start(&["run", "--log-format", "json", "--set", SMALL]);
    patiently("the service", || service.stderr().contains("service_started").then_some(()));
    site.bench.run(&["pause", "--sink", "lines"]).ends(0);
    let run = site.bench.run(&["backfill", "bibs", "--force", "--json"]).ends(75);
    assert_says(&run, "outbox_full", &["`sierra-sync resume --sink lines`"]);
    let run = run.complains("the backfill waits: the queue in ");
    assert!(!run.stderr.contains("config_warning"), "{}", run.stderr);
    site.bench.run(&["resume", "--sink", "lines"]).ends(0);
    site.bench.run(&["backfill", "bibs", "--force", "--json"]).ends(0);
    service.signal("TERM");
    service.ended().ends(0);
    site.sync_well();
    site.assert_converged();
}

/// Said by whoever is asked about the configuration, and by nobody else.
#[test]
fn a_doubtful_overlap_is_told_by_check_alone() {
    let site = Site::loaded();
    let doubtful = ["--set", "streams.bibs.interval=1m", "--set", "streams.bibs.overlap=1h"];
    for command in [&["status"][..], &["queue", "list"], &["sync"]] {
        let run = site.bench.run(&[command, &doubtful].concat()).ends(0);
        assert!(!run.stderr.contains("shorten overlap"), "{command:?}: {}", run.stderr);
    }
    let run = site.bench.run(&[&["check", "--offline"][..], &doubtful].concat());
    assert!(format!("{}{}", run.stdout, run.stderr).contains("overlap is much longer"), "{run:?}");
}
