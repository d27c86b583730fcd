//! A10 and A16 on the running binary: while calls are halted, what was fetched lies in the queue and nowhere else.

use serde_json::Value;
use sierra_sync::simulator::{Endpoint, Fault, Kind};

use super::support::{Site, patiently};

fn configure(site: &Site, paused: bool) {
    site.configure(|text| {
        let streams = "interval = \"1s\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"";
        let text = text.replace("settle = \"0s\"", streams).replace("failure_threshold", "#");
        let text = text.replace("path = \"./xml\"", &format!("path = \"./xml\"\npaused = {paused}"));
        format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n")
    });
}

fn listed(site: &Site) -> Vec<Value> {
    site.bench.run(&["queue", "list", "--json"]).ends(0).json_lines()
}

/// The breaker opens while a sink is away: every entry that waits is listed with its MARCXML, the other sink is drained,
/// memory does not grow with the time of the outage, and afterwards everything arrives once.
#[test]
fn while_calls_are_halted_what_was_fetched_waits_in_the_queue_and_sinks_that_are_well_go_on() {
    let site = Site::loaded();
    configure(&site, true);
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("the service", || service.stderr().contains("service_started").then_some(()));
    let ids = site.library.ids(Kind::Bibs);
    site.library.edits(|world| ids.iter().take(60).for_each(|id| world.edit_bib(*id).unwrap()));
    patiently("what waits", || (listed(&site).len() == 60).then_some(()));

    site.library.plan(Fault::Html { status: 503 }.always());
    patiently("the open breaker", || service.stderr().contains("breaker_opened").then_some(()));
    let alert = service.stderr();
    let alert = alert.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let alert = alert.into_iter().find(|line| line["event"] == "breaker_opened").expect("an alert");
    assert_eq!(alert["queued"], 60, "the alert says how much is queued: {alert}");
    let before = service.resident_kib();
    site.library.clear_journal();
    patiently("health checks in vain", || (site.library.calls().len() >= 20).then_some(()));
    let after = service.resident_kib();
    println!("resident {before} KiB when it opened, {after} KiB after twenty health checks");
    assert!(after <= before + before / 4, "memory grows while calls are halted: {before} KiB, then {after} KiB");
    assert!(site.library.count(Endpoint::Bibs) + site.library.count(Endpoint::Items) <= 2, "calls are halted");

    let waiting = listed(&site);
    assert_eq!(waiting.len(), 60);
    for entry in &waiting {
        assert_eq!((&entry["format"], &entry["pending"]), (&"marcxml".into(), &serde_json::json!(["xml"])), "{entry}");
    }
    let shown = site.bench.run(&["queue", "show", &waiting[7]["seq"].to_string()]).ends(0);
    assert!(shown.json_lines()[0]["marcxml"].as_str().is_some_and(|text| text.starts_with("<record")));
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!((&status["sinks"]["lines"]["pending"], &status["sinks"]["xml"]["pending"]), (&0.into(), &60.into()));

    site.library.recover();
    configure(&site, false);
    service.signal("HUP");
    patiently("an empty queue", || {
        // Also while it reads its configuration again.
        let run = site.bench.run(&["queue", "list", "--json"]).ends(0);
        run.stdout.is_empty().then_some(())
    });
    service.signal("TERM");
    service.ended().ends(0);
    site.library.pass_a_second();
    site.sync_well();
    site.assert_converged();
    site.outputs().assert_each_seq_once();
}
