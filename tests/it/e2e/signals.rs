//! A process that is asked to stop, killed, or comes second: nothing is lost, and the next run goes on.

use sierra_sync::simulator::{Endpoint, Fault};

use super::support::{Library, Site, patiently};

/// A site in whose first load every page takes a moment, and the load as it is under way: some pages have come.
fn loading() -> (Site, super::support::Running) {
    let site = Site::new(Library::sized(400, 60, 0));
    site.library.plan(Fault::Delay { milliseconds: 150 }.at(Endpoint::Bibs));
    let running = site.bench.start(&["sync", "--json"]);
    patiently("some pages", || (site.library.count(Endpoint::Bibs) >= 3).then_some(()));
    (site, running)
}

/// The next run ends well, and a consumer then holds what the library holds.
#[track_caller]
fn assert_goes_on(site: &Site) {
    site.library.recover();
    site.sync_well();
    site.assert_converged();
}

/// SIGTERM in a load: what was captured is in the outputs, the summary stands on stdout and says what is left, and the
/// exit code says that something is.
#[test]
fn sigterm_in_a_load_delivers_what_was_captured_and_tells_what_is_left() {
    let (site, running) = loading();
    running.signal("TERM");
    let run = running.ended().ends(3);
    let summary = run.summary();
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&bibs["state"], &bibs["error"]["kind"]), (&"partial".into(), &"interrupted".into()), "{bibs}");
    let (captured, items) =
        (bibs["changed"].as_u64().unwrap(), summary["streams"]["items"]["changed"].as_u64().unwrap());
    assert!((40..400).contains(&captured), "{bibs}");
    for (sink, delivered) in [("lines", captured + items), ("xml", captured)] {
        let sink = &summary["sinks"][sink];
        assert_eq!(
            (&sink["delivered"], &sink["pending"], &sink["state"]),
            (&delivered.into(), &0.into(), &"ok".into())
        );
    }
    let outputs = site.outputs();
    assert_eq!((outputs.of("bibs").len() as u64, outputs.collection.len() as u64), (captured, captured));
    // Each change once: the next run goes on after the last page.
    assert_goes_on(&site);
    let outputs = site.outputs();
    outputs.assert_each_seq_once();
    assert_eq!((outputs.of("bibs").len(), outputs.of("items").len()), (400, 60));
}

#[test]
fn sigkill_in_a_load_loses_nothing() {
    let (site, running) = loading();
    running.signal("KILL");
    assert_eq!(running.ended().code, None);
    assert_goes_on(&site);
}

/// A second process is told who holds the state, and disturbs nothing.
#[test]
fn a_second_process_is_told_who_holds_the_state() {
    let (site, running) = loading();
    let second = site.sync(&[]).ends(75).complains(&running.id().to_string());
    let streams = &second.summary()["streams"];
    assert_eq!((&streams["bibs"]["state"], &streams["bibs"]["calls"]), (&"failed".into(), &0.into()));
    site.library.recover();
    running.ended().ends(0);
    site.assert_converged();
}
