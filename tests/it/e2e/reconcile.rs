//! `reconcile`: a stream compared with Sierra, by the real binary.

use serde_json::{Value, json};
use sierra_sync::simulator::{Endpoint, Fault, Kind};

use super::support::{Site, patiently};

fn report(site: &Site, arguments: &[&str], code: i32) -> Value {
    site.bench.run(&[&["reconcile"], arguments, &["--json"]].concat()).ends(code).json_lines().remove(0)
}

/// Silent suppression, a back-dated load, a moved item, and two bibs that are gone without a trace.
fn drift(site: &Site) -> (u64, u64) {
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    let (hidden, gone) = (bibs[20], bibs[30]);
    site.library.with(|simulator| {
        let world = &mut simulator.world;
        world.silently(|world| {
            world.suppress(Kind::Bibs, hidden).expect("a bib");
            world.link_item(items[5], &[bibs[7], bibs[8]]).expect("an item");
        });
        let month = world.now() - jiff::SignedDuration::from_hours(24 * 30);
        world.dated(month, |world| world.create_bib());
        world.keep_tombstones(false);
        world.delete(Kind::Bibs, gone).expect("a bib");
        world.keep_tombstones(true);
    });
    (hidden, gone)
}

#[test]
fn drift_is_reported_and_put_right_when_that_is_asked_for() {
    let site = Site::loaded();
    let (hidden, gone) = drift(&site);
    site.sync_well();
    let before = site.outputs().highest_seq();
    let looked = report(&site, &["bibs"], 0);
    assert_eq!(looked, json!({"checked": 220, "drift": 2, "missing": 1, "repaired": 0, "stopped": null}));
    assert_eq!(site.outputs().since(before).len(), 0);
    let text = site.bench.run(&["reconcile", "bibs"]).ends(0).stdout;
    assert!(text.contains("`sierra-sync reconcile bibs --repair` puts it right"), "{text}");
    let repaired = report(&site, &["bibs", "--repair"], 0);
    assert_eq!(repaired, json!({"checked": 220, "drift": 2, "missing": 1, "repaired": 3, "stopped": null}));
    assert_eq!(report(&site, &["items", "--repair"], 0)["repaired"], 1);
    let outputs = site.outputs();
    let told = outputs.since(before);
    assert!(told.len() == 4 && told.iter().all(|event| event["source"] == "reconcile"), "{told:?}");
    let newest = outputs.newest("bibs");
    let deleted = newest.get(gone.to_string().as_str()).expect("told");
    assert_eq!((&deleted["op"], &deleted["reason"]), (&json!("delete"), &json!("vanished")));
    assert_eq!(newest.get(hidden.to_string().as_str()).expect("told")["suppressed"], true);
    site.assert_converged();
    assert_eq!(report(&site, &["bibs", "--repair"], 0)["drift"], 0);
    assert!(site.library.calls().iter().all(|call| call.parameter("offset").is_none()));
}

#[test]
fn edits_without_a_stamp_take_a_deep_look() {
    let site = Site::loaded();
    let bib = site.library.ids(Kind::Bibs)[9];
    site.library.edits(|world| world.silently(|world| world.edit_bib(bib))).unwrap();
    assert_eq!(report(&site, &["bibs", "--repair"], 0)["drift"], 0);
    assert_eq!(report(&site, &["bibs", "--repair", "--deep"], 0)["repaired"], 1);
    site.assert_converged();
}

/// A 404 without its code, in the middle: the sweep has failed, and nothing is deleted; the same command goes on.
#[test]
fn a_failing_sweep_deletes_nothing_and_goes_on() {
    let site = Site::loaded();
    drift(&site);
    let when = sierra_sync::simulator::When::Calls { from: 3, to: u64::MAX };
    site.library.plan(Fault::Html { status: 503 }.when(when).at(Endpoint::Bibs));
    let quick = ["bibs", "--repair", "--set", "retry.max_attempts=1"];
    let failed = site.bench.run(&[&["reconcile"], &quick[..], &["--json"]].concat());
    assert!(matches!(failed.code, Some(3 | 69)), "{failed:?}");
    let found = failed.json_lines().remove(0);
    assert!(found["stopped"].as_str().is_some_and(|why| why.contains("goes on where it was")), "{found}");
    assert!(site.outputs().newest("bibs").values().all(|event| event["op"] == "upsert"));
    site.library.with(|simulator| simulator.cancel_all_faults());
    let resumed = site.bench.run(&[&["reconcile"], &quick[..], &["--json"]].concat()).ends(3).json_lines().remove(0);
    assert!(resumed["stopped"].as_str().is_some_and(|why| why.contains("resumed")), "{resumed}");
    assert_eq!(report(&site, &["bibs", "--repair"], 0)["missing"], 1);
    report(&site, &["items", "--repair"], 0);
    site.assert_converged();
}

#[test]
fn a_reconciliation_runs_inside_the_service() {
    let site = Site::loaded();
    site.configure(|text| format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n"));
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("the start", || service.stderr().contains("service_started").then_some(()));
    let (_, gone) = drift(&site);
    assert_eq!(report(&site, &["bibs", "--repair"], 0)["repaired"], 3);
    site.bench.run(&["reconcile", "patrons"]).ends(2).complains("[streams.patrons] is not configured");
    patiently("the deletion in the output", || {
        let outputs = site.outputs();
        outputs.newest("bibs").get(gone.to_string().as_str()).filter(|event| event["reason"] == "vanished").map(drop)
    });
    service.signal("TERM");
    let log = service.ended().ends(0).stderr;
    assert!(log.contains("\"event\":\"reconciled\""), "{log}");
}
