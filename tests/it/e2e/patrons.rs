//! Patrons, once they are configured: nobody can be recognised in anything that is written or said.

use std::collections::BTreeSet;

use sierra_sync::simulator::{Endpoint, Fault, Kind};

use super::support::{Library, Run, Site};

const TRACE: [&str; 4] = ["--log", "trace", "--log-format", "json"];

fn site() -> Site {
    let site = Site::new(Library::sized(40, 60, 30));
    site.configure(|text| {
        text.replace("[quota]", "[streams.patrons]\nsettle = \"0s\"\npage_size = 10\n\n[quota]")
            .replace("path = \"./lines\"", "path = \"./lines\"\nstreams = [\"bibs\", \"items\", \"patrons\"]")
    });
    let (items, patrons) = (site.library.ids(Kind::Items), site.library.ids(Kind::Patrons));
    site.library.edits(|world| {
        for (item, patron) in items.iter().zip(&patrons).take(20) {
            world.check_out(*item, *patron, 14).unwrap();
        }
        items.iter().take(10).for_each(|item| world.check_in(*item).unwrap());
    });
    site
}

/// Whether `text` stands in `bytes`; a number only where it is a word of its own, not among other digits.
fn stands_in(text: &str, bytes: &[u8]) -> bool {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_apart = |at: usize| bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    memchr::memmem::find_iter(bytes, text.as_bytes())
        .any(|at| !is_number || at.checked_sub(1).is_none_or(is_apart) && is_apart(at + text.len()))
}

#[track_caller]
fn assert_nobody_in(what: &str, bytes: &[u8], canaries: &[String]) {
    let found: Vec<&String> = canaries.iter().filter(|canary| stands_in(canary, bytes)).collect();
    assert!(found.is_empty(), "{found:?} in {what}");
}

#[track_caller]
fn assert_private(site: &Site, runs: &[Run]) {
    let canaries = site.library.with(|simulator| simulator.world.canaries());
    assert!(canaries.len() > 200, "{}", canaries.len());
    for run in runs {
        assert_nobody_in("stdout", run.stdout.as_bytes(), &canaries);
        assert_nobody_in("stderr", run.stderr.as_bytes(), &canaries);
    }
    for (name, bytes) in site.bench.files("").contents() {
        assert_nobody_in(&name.display().to_string(), bytes, &canaries);
    }
    // In the state numbers would stand as bytes. A few of them may come about by chance, all of them may not.
    let state: Vec<u8> = site.bench.files("state").contents().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    let patrons = site.library.ids(Kind::Patrons);
    let numbers = patrons.iter().filter(|id| memchr::memmem::find(&state, &id.to_be_bytes()).is_some());
    assert!(numbers.count() < 3, "patron numbers stand in the state");
}

/// PRV-1, BR-124: names, cards, addresses and record numbers of patrons stand in no output, no log line and no file of
/// the state, through a load, edits, deletions, and failures of patron calls.
#[test]
fn nobody_can_be_recognised_in_outputs_logs_and_state() {
    let site = site();
    let first = site.sync(&TRACE).ends(0);
    assert_eq!(first.summary()["streams"]["patrons"]["changed"], 30);
    let outputs = site.outputs();
    let ids: BTreeSet<String> =
        outputs.of("patrons").iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 30);
    for event in outputs.of("patrons") {
        assert!(event["id"].as_str().unwrap().len() == 32 && event["record"]["id"] == event["id"], "{event}");
        assert_eq!(event["record"].get("names"), None);
        assert!(event["record"]["patronType"].is_number(), "{event}");
    }
    site.assert_converged();

    let patrons = site.library.ids(Kind::Patrons);
    let seq = outputs.highest_seq();
    site.library.edits(|world| {
        world.edit(Kind::Patrons, patrons[3]).unwrap();
        world.delete(Kind::Patrons, patrons[4]).unwrap();
    });
    site.library.plan(Fault::MalformedJson.first(3).at(Endpoint::Patrons));
    let second = site.sync(&TRACE).ends(0);
    let outputs = site.outputs();
    let since = outputs.since(seq);
    let ops: Vec<&str> = since.iter().map(|event| event["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["upsert", "delete"]);
    assert!(since.iter().all(|event| ids.contains(event["id"].as_str().unwrap())), "pseudonyms stay");

    // A stream that fails for good talks most.
    site.library.edits(|world| world.edit(Kind::Patrons, patrons[5])).unwrap();
    site.library.plan(Fault::error(130).first(20).at(Endpoint::Patrons));
    let third = site.sync(&TRACE);
    assert_ne!(third.code, Some(0));
    let status = site.bench.run(&["status", "--json", "--log", "trace"]).ends(0);
    assert_private(&site, &[first, second, third, status]);
}

/// Without the key that made them, every pseudonym would change and nobody be told.
#[test]
fn a_privacy_key_that_is_gone_is_missed_before_anything_is_done() {
    let site = site();
    site.sync(&[]).ends(0);
    let key = site.bench.path("state/keys/privacy.keys");
    let content = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let before = site.bench.files("lines");
    site.sync(&[])
        .ends(74)
        .complains("it is gone, and patrons were given pseudonyms with it; restore it from a backup");
    assert!(site.bench.files("lines") == before, "something was delivered");
    assert!(!key.exists());
    std::fs::write(&key, content).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(site.sync_well()["streams"]["patrons"]["changed"], 0);
}
