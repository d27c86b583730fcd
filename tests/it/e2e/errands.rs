//! What people give the service to do, over a change of its configuration.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sierra_sync::simulator::{Call, Endpoint, Fault, Kind};

use super::support::{Running, Site, patiently};

/// A loaded site whose service reads bibs ten a page, and slowly.
fn site() -> Site {
    let site = Site::loaded();
    configure(&site, "400ms");
    site.library.plan(Fault::Delay { milliseconds: 150 }.at(Endpoint::Bibs));
    site
}

/// Everything as it was but for the longest pause between two tries.
fn configure(site: &Site, cap: &str) {
    site.configure(|text| settings(&text, cap));
}

fn settings(text: &str, cap: &str) -> String {
    let text = text.replace("cap = \"400ms\"", &format!("cap = \"{cap}\"")).replace("page_size = 40", "page_size = 10");
    let streams = "settle = \"0s\"\ninterval = \"1h\"\nlate_sweep = \"off\"\nreconcile = \"off\"";
    format!("{}\n[ops]\nlisten = \"127.0.0.1:0\"\n", text.replace("settle = \"0s\"", streams))
}

fn start(site: &Site) -> Running {
    let service = site.bench.start(&["run", "--log-format", "json"]);
    said(&service, "service_started", 1);
    service
}

/// Waits until the event was logged so many times.
#[track_caller]
fn said(service: &Running, event: &str, times: usize) {
    let quoted = format!("\"{event}\"");
    patiently(event, || (service.stderr().matches(&quoted).count() >= times).then_some(()));
}

/// The calls that read bibs by their numbers alone.
fn by_number(site: &Site) -> Vec<Call> {
    let has_times = |call: &Call| call.parameter("updatedDate").is_some() || call.parameter("deletedDate").is_some();
    let calls = site.library.calls().into_iter();
    calls.filter(|call| call.endpoint == Endpoint::Bibs && call.parameter("id").is_some() && !has_times(call)).collect()
}

/// Waits for so many pages more than there were.
#[track_caller]
fn pages(site: &Site, more: usize) {
    let before = by_number(site).len();
    patiently("some pages", || (by_number(site).len() >= before + more).then_some(()));
}

/// Asserts that no more than so many pages were asked for twice.
#[track_caller]
fn assert_asked_again(site: &Site, at_most: usize) {
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for call in by_number(site) {
        *asked.entry(call.parameter("id").expect("it has one").to_owned()).or_default() += 1;
    }
    let again: usize = asked.values().map(|times| times - 1).sum();
    assert!(asked.len() >= 22 && again <= at_most, "{asked:?}");
}

fn status(site: &Site) -> Value {
    site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0)
}

/// The command waits on, over two changes, and hears of all that was done; the store says where it stood.
#[test]
fn a_backfill_goes_on_over_a_change_of_the_configuration() {
    let site = site();
    let service = start(&site);
    site.library.clear_journal();
    let running = site.bench.start(&["backfill", "bibs", "--force", "--json"]);
    pages(&site, 4);
    configure(&site, "450ms");
    service.signal("HUP");
    said(&service, "errand_goes_on", 1);
    pages(&site, 4);
    // Nothing at all changed this time.
    service.signal("HUP");
    said(&service, "errand_goes_on", 2);
    site.library.recover();
    let summary = running.ended().ends(0).summary();
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&bibs["fetched"], &bibs["changed"], &bibs["gaps"]), (&220.into(), &220.into(), &json!([])));
    assert_eq!((&bibs["windows"], &bibs["state"]), (&3.into(), &"caught_up".into()), "one range in three parts");
    assert_asked_again(&site, 2);
    assert!(status(&site)["streams"]["bibs"]["backfill"].is_null());
    service.signal("TERM");
    service.ended().ends(0);
    site.outputs().assert_each_seq_once();
    site.assert_converged();
}

/// Whoever gave it may have gone away: it goes on all the same.
#[test]
fn a_backfill_that_nobody_waits_for_goes_on_too() {
    let site = site();
    let service = start(&site);
    site.library.clear_journal();
    let running = site.bench.start(&["backfill", "bibs", "--force", "--json"]);
    pages(&site, 3);
    running.signal("KILL");
    running.ended();
    service.signal("HUP");
    said(&service, "errand_goes_on", 1);
    site.library.recover();
    patiently("its end", || {
        let is_told = site.outputs().of("bibs").iter().filter(|event| event["source"] == "backfill").count();
        (is_told == 220).then_some(())
    });
    assert_asked_again(&site, 1);
    service.signal("TERM");
    service.ended().ends(0);
}

/// What it is for is gone from the configuration: it is left where it was, and whoever waits is told why.
#[test]
fn a_backfill_that_does_not_fit_the_new_configuration_is_parked_and_says_so() {
    let site = site();
    let service = start(&site);
    let bibs = site.library.ids(Kind::Bibs);
    let ids = format!("{}..{}", bibs[0], bibs[219]);
    let order = ["backfill", "bibs", "--force", "--sink", "lines", "--ids", &ids, "--json"];
    let running = site.bench.start(&order);
    pages(&site, 4);
    site.configure(|text| {
        let (before, after) = text.split_once("[sinks.lines]").expect("the sink");
        let (_, others) = after.split_once("[sinks.xml]").expect("the other one");
        settings(&format!("{before}[sinks.xml]{others}"), "400ms")
    });
    service.signal("HUP");
    let sentence = "the backfill of bibs is parked, since it does not fit the configuration that the service reads now: no \
                    sink is called \"lines\"";
    running.ended().ends(3).complains(sentence);
    said(&service, "errand_parked", 1);
    assert_eq!(status(&site)["streams"]["bibs"]["backfill"]["state"], "parked");
    service.signal("TERM");
    service.ended().ends(0);
}

/// A stop is no reload: whoever waits hears what was done, on both sides of a reload, and that something is left.
#[test]
fn a_backfill_is_left_when_the_service_stops() {
    let site = site();
    let service = start(&site);
    site.library.clear_journal();
    let running = site.bench.start(&["backfill", "bibs", "--force", "--json"]);
    pages(&site, 4);
    service.signal("HUP");
    said(&service, "errand_goes_on", 1);
    pages(&site, 2);
    service.signal("TERM");
    let summary = running.ended().ends(3).summary();
    let bibs = &summary["streams"]["bibs"];
    let fetched = bibs["fetched"].as_u64().expect("a count");
    assert!((40..220).contains(&fetched) && bibs["gaps"].as_array().is_some_and(|gaps| gaps.len() == 1), "{bibs}");
    service.ended().ends(0);
    site.library.recover();
    let rest = site.bench.run(&["backfill", "bibs", "--force", "--json"]).ends(0).summary();
    assert_eq!(rest["streams"]["bibs"]["fetched"], 220 - fetched);
    assert_asked_again(&site, 2);
}

/// It compares what is left to compare; what did not come it cannot tell, having been interrupted, and says so as ever.
#[test]
fn a_reconciliation_goes_on_over_a_change_of_the_configuration() {
    let site = site();
    let service = start(&site);
    site.library.clear_journal();
    let running = site.bench.start(&["reconcile", "bibs", "--json"]);
    pages(&site, 4);
    configure(&site, "450ms");
    service.signal("HUP");
    said(&service, "errand_goes_on", 1);
    site.library.recover();
    let found = running.ended().ends(3).json_lines().remove(0);
    assert_eq!((&found["checked"], &found["drift"]), (&220.into(), &0.into()), "{found}");
    let stopped = found["stopped"].as_str().expect("a sentence");
    assert!(stopped.contains("nothing was concluded from what did not come: run it again"), "{stopped}");
    assert_asked_again(&site, 1);
    service.signal("TERM");
    service.ended().ends(0);
}
