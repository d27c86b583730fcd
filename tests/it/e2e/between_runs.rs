//! What runs of `sync` that end after a few calls owe each other: outages, refused tokens, and the truth about both.

use serde_json::Value;
use sierra_sync::simulator::{Endpoint, Fault, Kind, Unauthorized};

use super::support::{Library, Site, patiently};

fn status(site: &Site) -> Value {
    site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0)
}

fn said(site: &Site) -> String {
    let status = status(site);
    format!("{}: {}", status["state"].as_str().expect("a state"), status["message"].as_str().expect("a sentence"))
}

/// Ten calls have to succeed after an outage, and a quiet pass makes fewer: passes come to them together. Calls go again
/// meanwhile, for every command.
#[test]
fn an_outage_is_over_after_some_quiet_passes() {
    let site = Site::loaded();
    let soon = ["--set", "breaker.failure_threshold=3"];
    let outage = site.library.plan(Fault::Html { status: 503 }.always());
    site.sync(&soon).ends(69);
    assert!(said(&site).starts_with("degraded: Calls to Sierra "), "{}", said(&site));
    site.library.with(|simulator| simulator.cancel(outage));

    let mut ends = 0;
    for pass in 0..6 {
        let run = site.sync(&soon).ends(0);
        ends += run.stderr.lines().filter(|line| line.contains("breaker_recovered")).count();
        let status = status(&site);
        let breaker = &status["breaker"];
        assert_eq!((&breaker["state"], &breaker["reason"]), (&"closed".into(), &Value::Null), "pass {pass}: {breaker}");
        assert!(said(&site).starts_with("ok: "), "pass {pass}: {}", said(&site));
        if pass == 0 {
            site.bench.run(&["backfill", "bibs", "--ids", "1..2", "--json"]).ends(0);
        }
    }
    assert_eq!(ends, 1, "the end of the outage is told once");
}

/// A command that asks for pages alone waits for the health check that is due, as a pass does.
#[test]
fn backfill_and_reconcile_work_right_after_an_outage() {
    for command in [&["backfill", "bibs"][..], &["reconcile", "bibs"]] {
        let site = Site::loaded();
        let outage = site.library.plan(Fault::Html { status: 503 }.always());
        site.sync(&["--set", "breaker.failure_threshold=3"]).ends(69);
        site.library.with(|simulator| simulator.cancel(outage));
        site.bench.run(command).ends(0);
    }
}

/// What a person opened and closed again is closed, and a hold whose time is over is none.
#[test]
fn a_hold_that_ended_halts_nothing() {
    let site = Site::loaded();
    site.bench.run(&["breaker", "open", "--reason", "upgrade", "--for", "1h"]).ends(0);
    assert!(said(&site).contains("are halted (opened by operator"), "{}", said(&site));
    site.bench.run(&["breaker", "close", "--yes"]).ends(0);
    assert!(!said(&site).contains("halted"), "{}", said(&site));
    site.sync_well();
    assert!(said(&site).starts_with("ok: "), "{}", said(&site));

    site.bench.run(&["breaker", "open", "--reason", "upgrade", "--for", "1s"]).ends(0);
    patiently("the end of the hold", || (!said(&site).contains("are halted")).then_some(()));
    site.library.clear_journal();
    assert!(said(&site).contains("a health check is due"), "{}", said(&site));
    assert_eq!(site.library.calls(), [], "who only looks asks nobody");
    site.sync_well();
    assert!(said(&site).starts_with("ok: "), "{}", said(&site));
}

/// A10 for cron: ten failures in a row open the breaker, in however many runs they come; until then the status does not
/// call well what failed.
#[test]
fn failures_in_a_row_are_counted_over_runs() {
    let site = Site::loaded();
    let few = ["--set", "retry.max_attempts=4"];
    site.library.plan(Fault::Html { status: 503 }.always());
    for run in 1..=2 {
        site.sync(&few).ends(69);
        assert_eq!(status(&site)["breaker"]["state"], "closed", "after run {run}");
        assert!(said(&site).starts_with("degraded: The last pass over bibs failed: "), "{}", said(&site));
    }
    let run = site.sync(&few).ends(69);
    assert!(run.stderr.contains("breaker_opened"), "{}", run.stderr);
    assert_eq!(status(&site)["breaker"]["reason"], "10 consecutive failures");
}

/// BR-100: tokens that are granted and refused. Two are asked for, and then none for five minutes, by whatever process.
#[test]
fn refused_tokens_are_not_asked_for_again_by_the_next_run() {
    let site = Site::loaded();
    for endpoint in [Endpoint::TokenInfo, Endpoint::Bibs, Endpoint::Items] {
        site.library.plan(Fault::Unauthorized(Unauthorized::Bare).at(endpoint));
    }
    site.library.clear_journal();
    site.sync(&[]).ends(69);
    for _ in 0..3 {
        site.sync(&[]).ends(77);
    }
    assert_eq!(site.library.count(Endpoint::Token), 2);
    assert!(said(&site).starts_with("failing: Sierra refuses the credential"), "{}", said(&site));
    site.library.recover();
    site.bench.run(&["breaker", "reset", "--yes"]).ends(0);
    site.sync_well();
}

/// Sierra goes down in the midst of a load: it is unavailable, besides the gap that this leaves.
#[test]
fn sierra_that_goes_down_in_a_load_is_unavailable() {
    let site = Site::new(Library::sized(1_200, 0, 0));
    site.library.plan(Fault::Delay { milliseconds: 150 }.at(Endpoint::Bibs));
    let running = site.bench.start(&["sync", "--json", "--stream", "bibs", "--set", "retry.max_attempts=3"]);
    patiently("some pages", || (site.library.count(Endpoint::Bibs) >= 3).then_some(()));
    site.library.plan(Fault::Html { status: 503 }.always());
    let summary = running.ended().ends(69).summary();
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&bibs["state"], bibs["gaps"].as_array().map(Vec::len)), (&"partial".into(), Some(1)), "{bibs}");
    site.library.recover();
    site.sync_well();
    site.assert_converged();
}

/// SIGTERM while the first page of a window is on its way: nothing stands in the ledger, and something is left.
#[test]
fn sigterm_before_the_first_page_is_not_taken_for_success() {
    let site = Site::loaded();
    let bib = site.library.ids(Kind::Bibs)[9];
    site.library.edits(|world| world.edit_bib(bib)).unwrap();
    site.library.clear_journal();
    site.library.plan(Fault::Delay { milliseconds: 15_000 }.at(Endpoint::Bibs));
    let running = site.bench.start(&["sync", "--json", "--stream", "bibs"]);
    patiently("the question for the time", || (site.library.count(Endpoint::TokenInfo) >= 1).then_some(()));
    patiently("the question for the page", || (site.library.count(Endpoint::Bibs) >= 1).then_some(()));
    running.signal("TERM");
    let summary = running.ended().ends(3).summary();
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&summary["ok"], &bibs["error"]["kind"]), (&false.into(), &"interrupted".into()), "{summary}");
    site.library.recover();
    site.sync_well();
    site.assert_converged();
}
