//! `quarantine replay`: by name, offline and beside the service, three times at most.

use serde_json::Value;
use sierra_sync::simulator::{Endpoint, Fault, FaultId, Garble, Kind};

use super::support::Site;

/// A site with a bib that cannot be read, whose entry is not replayed by itself meanwhile.
fn with_one_aside() -> (Site, u64, FaultId, String) {
    let site = Site::loaded();
    let id = site.library.ids(Kind::Bibs)[70];
    site.library.edits(|world| world.edit_bib(id)).unwrap();
    let fault = site.library.plan(Fault::Garbled { kind: Kind::Bibs, id, how: Garble::WrongTypes });
    site.sync(&[]).ends(3);
    let entry = quarantine(&site, 0, &["list"]).remove(0);
    let name = entry["id"].as_str().expect("a name").to_owned();
    (site, id, fault, name)
}

#[track_caller]
fn quarantine(site: &Site, exit: i32, arguments: &[&str]) -> Vec<Value> {
    site.bench.run(&[&["quarantine", "--json"], arguments].concat()).ends(exit).json_lines()
}

#[test]
fn an_entry_that_is_good_by_now_is_closed_and_delivered() {
    let (site, id, fault, name) = with_one_aside();
    site.bench.run(&["quarantine", "replay", "nothing"]).ends(2).complains("nothing is set aside as");
    site.library.with(|simulator| simulator.cancel(fault));
    let replayed = quarantine(&site, 0, &["replay", &name]).remove(0);
    assert_eq!((&replayed["outcome"], &replayed["record"]), (&"healed".into(), &id.to_string().into()), "{replayed}");
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    site.assert_converged();
}

/// Three replays in vain, then it is parked and says so; what is newer still closes it.
#[test]
fn an_entry_is_parked_after_three_replays_and_closed_by_a_newer_version() {
    let (site, id, fault, name) = with_one_aside();
    for (attempts, outcome) in [(2, "refused"), (3, "refused"), (4, "parked")] {
        let replayed = quarantine(&site, 3, &["replay", &name[..6]]).remove(0);
        assert_eq!((&replayed["outcome"], &replayed["attempts"]), (&outcome.into(), &attempts.into()), "{replayed}");
    }
    assert_eq!(quarantine(&site, 0, &["list"])[0]["state"], "parked");
    site.library.clear_journal();
    site.bench.run(&["quarantine", "replay", &name]).ends(2).complains("was tried 4 times and is parked");
    assert!(quarantine(&site, 0, &["replay"]).is_empty(), "what is parked is not chosen by itself");
    assert_eq!(site.library.calls(), []);
    site.library.with(|simulator| simulator.cancel(fault));
    site.library.edits(|world| world.edit_bib(id)).unwrap();
    site.library.pass_a_second();
    site.sync_well();
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    site.assert_converged();
}

/// A Sierra that is down has tried nothing: the entry stands as it was.
#[test]
fn a_replay_that_could_not_ask_does_not_count() {
    let (site, _, _, name) = with_one_aside();
    site.library.plan(Fault::Html { status: 503 }.at(Endpoint::Bibs));
    let arguments = ["quarantine", "replay", &name, "--json", "--set", "retry.max_attempts=1"];
    let run = site.bench.run(&arguments);
    let replayed = run.json_lines().remove(0);
    assert_eq!((&replayed["outcome"], &replayed["attempts"]), (&"not_read".into(), &1.into()), "{replayed}");
    assert_ne!(run.code, Some(0));
    assert_eq!(quarantine(&site, 0, &["list"])[0]["attempts"], 1);
}

#[test]
fn a_service_replays_for_the_command() {
    let (site, _, fault, _) = with_one_aside();
    site.configure(|text| format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n"));
    let service = site.bench.start(&["run", "--log-format", "json"]);
    super::support::patiently("the service", || service.stderr().contains("service_started").then_some(()));
    site.library.with(|simulator| simulator.cancel(fault));
    let replayed = quarantine(&site, 0, &["replay"]);
    // Its own first pass may have come first.
    assert!(replayed.is_empty() || replayed[0]["outcome"] == "healed", "{replayed:?}");
    assert!(quarantine(&site, 0, &["list"]).is_empty());
    service.signal("TERM");
    service.ended().ends(0);
    site.assert_converged();
}
