//! What a sink refused: set aside for that sink alone, listed, shown, offered again to it, dropped; and closed by a newer
//! version.
//!
//! The sinks that are built take whatever Sierra can send. So the letter is laid into the state as delivery lays it there
//! (`tests/it/sync/sinks.rs`), and everything after that is the binary's.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sierra_sync::clock::{Clock, SystemClock};
use sierra_sync::privacy::Keyring;
use sierra_sync::record::Stream;
use sierra_sync::simulator::Kind;
use sierra_sync::store::{SledStore, StoreSettings};
use sierra_sync::sync::ports::{QuarantineEntry, QuarantineState, Slice, Store};

use super::support::{Site, patiently};

/// A loaded site whose sink `xml` refused a bib once.
fn with_a_dead_letter() -> (Site, u64, String) {
    let site = Site::loaded();
    let id = site.library.ids(Kind::Bibs)[70];
    let seen = SystemClock.now();
    let letter = QuarantineEntry {
        stream: Stream::Bibs,
        record: id.to_string(),
        reason: "the destination refuses it".into(),
        fingerprint: "0123456789abcdef".into(),
        attempts: 1,
        last_status: None,
        first_seen: seen,
        last_seen: seen,
        state: QuarantineState::Open,
        sink: Some("xml".into()),
        payload: Some("<record/>".into()),
    };
    let settings = StoreSettings {
        path: site.bench.path("state"),
        outbox_max_size: u64::MAX,
        min_free: 0,
        retention: Duration::from_secs(3600),
    };
    // Nothing in this state is sealed, so that any key will do.
    let store = SledStore::open(&settings, Arc::new(Keyring::for_tests(1)), Arc::new(SystemClock)).unwrap();
    store.commit(Slice { quarantined: vec![letter], ..Slice::default() }).unwrap();
    drop(store);
    let listed = quarantine(&site, 0, &["list"]);
    assert_eq!(listed.len(), 1, "{listed:?}");
    let name = listed[0]["id"].as_str().expect("a name").to_owned();
    (site, id, name)
}

#[track_caller]
fn quarantine(site: &Site, exit: i32, arguments: &[&str]) -> Vec<Value> {
    site.bench.run(&[&["quarantine", "--json"], arguments].concat()).ends(exit).json_lines()
}

fn pause_xml(site: &Site, paused: bool) {
    site.configure(|text| text.replace("path = \"./xml\"", &format!("path = \"./xml\"\npaused = {paused}")));
}

/// How often a record stands in the files of `xml`.
fn in_xml(site: &Site, id: u64) -> usize {
    let number = format!(">.b{id}");
    let files = site.bench.files("xml/bibs");
    files.contents().map(|(_, content)| String::from_utf8_lossy(content).matches(&number).count()).sum()
}

/// A14, BR-032: looking tells for whom it is and what it was, and changes nothing.
#[test]
fn a_dead_letter_is_listed_and_shown_with_the_sink_that_refused_it() {
    let (site, id, name) = with_a_dead_letter();
    let shown = quarantine(&site, 0, &["show", &name[..6]]).remove(0);
    assert_eq!((&shown["sink"], &shown["record"]), (&"xml".into(), &id.to_string().into()), "{shown}");
    assert_eq!((&shown["state"], &shown["payload"]), (&"open".into(), &"<record/>".into()), "{shown}");
    let listed = quarantine(&site, 0, &["list", "--stream", "bibs"]);
    assert_eq!((listed.len(), &listed[0]["payload"]), (1, &Value::Null), "{listed:?}");
    assert_eq!(quarantine(&site, 0, &["list", "--stream", "items"]), [] as [Value; 0]);
    assert_eq!(listed, quarantine(&site, 0, &["list"]));
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!(status["quarantine"]["bibs"], 1, "{status}");
}

/// It is read again and offered to the sink that refused it, and to no other.
#[test]
fn a_dead_letter_is_replayed_to_its_sink_and_closed_when_that_takes_it() {
    let (site, id, name) = with_a_dead_letter();
    let (events, before) = (site.outputs().events.len(), in_xml(&site, id));
    let replayed = quarantine(&site, 0, &["replay", &name]).remove(0);
    assert_eq!((&replayed["outcome"], &replayed["record"]), (&"healed".into(), &id.to_string().into()), "{replayed}");
    assert_eq!(in_xml(&site, id), before + 1, "it was delivered once more");
    assert_eq!(site.outputs().events.len(), events, "nobody else hears of it");
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    site.sync_well();
    site.assert_converged();
}

/// What Sierra changed meanwhile without a stamp is news for every sink, and not only for the one that is offered it.
#[test]
fn what_a_replay_finds_changed_reaches_every_sink() {
    let (site, id, name) = with_a_dead_letter();
    site.library.edits(|world| world.silently(|world| world.edit_bib(id))).unwrap();
    let replayed = quarantine(&site, 0, &["replay", &name]).remove(0);
    assert_eq!(replayed["outcome"], "healed", "{replayed}");
    site.sync_well();
    site.assert_converged();
}

/// A sink that is away has neither taken nor refused it: nothing is lost, and it counts as no try.
#[test]
fn a_dead_letter_waits_for_a_sink_that_is_away() {
    let (site, id, name) = with_a_dead_letter();
    let before = in_xml(&site, id);
    pause_xml(&site, true);
    let replayed = quarantine(&site, 69, &["replay", &name]).remove(0);
    assert_eq!((&replayed["outcome"], &replayed["attempts"]), (&"waits".into(), &1.into()), "{replayed}");
    pause_xml(&site, false);
    site.sync_well();
    assert_eq!(in_xml(&site, id), before + 1);
    site.assert_converged();
}

/// The same beside a service, which delivers by itself.
#[test]
fn a_service_replays_a_dead_letter_for_the_command() {
    let (site, id, name) = with_a_dead_letter();
    let before = in_xml(&site, id);
    site.configure(|text| format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n"));
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("the service", || service.stderr().contains("service_started").then_some(()));
    assert_eq!(quarantine(&site, 0, &["replay", &name])[0]["outcome"], "healed");
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    service.signal("TERM");
    service.ended().ends(0);
    assert_eq!(in_xml(&site, id), before + 1);
    site.assert_converged();
}

/// §9: a newer version that is good closes the entry.
#[test]
fn a_newer_version_closes_a_dead_letter() {
    let (site, id, _) = with_a_dead_letter();
    site.library.edits(|world| world.edit_bib(id)).unwrap();
    site.library.pass_a_second();
    site.sync_well();
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    site.assert_converged();
}

/// BR-032: nothing is dropped that was not meant, and what was dropped is told.
#[test]
fn a_dead_letter_is_dropped_only_when_that_is_meant() {
    let (site, id, name) = with_a_dead_letter();
    site.bench.run(&["quarantine", "drop", &name]).ends(2).complains("say it again with --yes");
    site.bench.run(&["quarantine", "drop", &name, "nothing", "--yes"]).ends(2).complains("nothing is set aside as");
    assert_eq!(quarantine(&site, 0, &["list"]).len(), 1, "all or none");
    let dropped = quarantine(&site, 0, &["drop", &name, "--yes"]).remove(0);
    assert_eq!((&dropped["id"], &dropped["record"]), (&name.as_str().into(), &id.to_string().into()));
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    site.bench.run(&["quarantine", "show", &name]).ends(2).complains("nothing is set aside as");
    site.sync_well();
    site.assert_converged();
}
