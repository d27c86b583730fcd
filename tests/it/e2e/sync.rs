//! `sync`: a first load, then what changes between one run and the next.

use sierra_sync::simulator::{Call, Endpoint, Fault, Kind};

use super::support::Site;

/// BR-059: no page is ever asked for by offset or without a limit, in the first load or later.
#[track_caller]
fn assert_asked_well(calls: &[Call]) {
    for call in calls {
        assert_eq!(call.parameter("offset"), None, "{call:?}");
        assert_eq!(call.parameter("limit").is_some(), call.endpoint.is_list(), "{call:?}");
    }
}

#[test]
fn a_first_run_loads_everything_and_a_second_tells_nothing() {
    let site = Site::loaded();
    let (first, calls) = Site::first_load();
    assert_asked_well(calls);
    for (stream, count) in [("bibs", 220), ("items", 260)] {
        let stream = &first["streams"][stream];
        assert_eq!((&stream["state"], &stream["changed"]), (&"caught_up".into(), &count.into()), "{stream}");
    }
    assert_eq!(
        (&first["sinks"]["lines"]["delivered"], &first["sinks"]["xml"]["delivered"]),
        (&480.into(), &220.into())
    );
    site.assert_converged();
    let before = site.outputs().highest_seq();

    let second = site.sync_well();
    for stream in ["bibs", "items"] {
        let stream = &second["streams"][stream];
        assert_eq!((&stream["changed"], &stream["deleted"]), (&0.into(), &0.into()), "{stream}");
    }
    for sink in ["lines", "xml"] {
        assert_eq!(second["sinks"][sink]["delivered"], 0);
    }
    assert_eq!(site.outputs().since(before).len(), 0);
    assert_asked_well(&site.library.calls());
    assert_eq!(site.library.count(Endpoint::Token), 1);
}

/// cron mails every word that is said.
#[test]
fn whoever_asks_for_quiet_hears_of_failures_only() {
    let site = Site::loaded();
    site.library.edits(|world| world.edit_bib(world.ids(Kind::Bibs)[3]).unwrap());
    let run = site.bench.run(&["--quiet", "sync"]).ends(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let run = site.bench.run(&["backfill", "items", "--quiet"]).ends(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    site.bench.run(&["sync", "--quiet", "--json"]).ends(0).summary();
    site.library.plan(Fault::Html { status: 503 }.at(Endpoint::Bibs));
    for command in [&["sync", "-q"][..], &["backfill", "bibs", "-q"]] {
        let run = site.bench.run(command).ends(69).complains("bibs: ");
        assert_eq!(run.stdout, "", "what went wrong is no data");
    }
    site.bench.run(&["sync", "-q", "--config", "nowhere.toml"]).ends(2).complains("there is no such file");
}

/// Patrons are private: without their table nobody asks for one.
#[test]
fn patrons_are_left_alone_unless_they_are_configured() {
    let site = Site::loaded();
    let (first, calls) = Site::first_load();
    site.library.edits(|world| world.create_patron());
    let second = site.sync_well();
    for (summary, calls) in [(first, calls.clone()), (&second, site.library.calls())] {
        assert_eq!(summary["streams"].get("patrons"), None);
        assert!(calls.iter().all(|call| !call.path.contains("patron")), "{calls:?}");
    }
    assert_eq!(site.outputs().of("patrons").len(), 0);
}

/// Records of both streams that the library edits, hides, deletes, adds and moves between two runs.
#[test]
fn what_changes_between_two_runs_arrives_in_both_outputs() {
    let site = Site::loaded();
    let before = site.outputs().highest_seq();
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    let (new_bib, new_item, former) = site.library.edits(|world| {
        let former = world.true_record(Kind::Items, items[0]).unwrap().links[0];
        world.edit_bib(bibs[0]).unwrap();
        world.toggle_suppression(Kind::Bibs, bibs[50]).unwrap();
        world.delete(Kind::Bibs, bibs[100]).unwrap();
        world.move_item(items[0], former, bibs[7]).unwrap();
        world.toggle_suppression(Kind::Items, items[30]).unwrap();
        world.delete(Kind::Items, items[60]).unwrap();
        world.touch(Kind::Bibs, bibs[120]).unwrap();
        let bib = world.create_bib();
        (bib, world.create_item(&[bib]), former)
    });
    let summary = site.sync_well();
    let counts =
        |stream: &str| ["changed", "unchanged", "deleted"].map(|count| summary["streams"][stream][count].clone());
    assert_eq!((counts("bibs"), counts("items")), ([3, 1, 1].map(Into::into), [3, 0, 1].map(Into::into)));
    site.assert_converged();
    let outputs = site.outputs();
    outputs.assert_each_seq_once();
    let told = |op: &str, stream: &str| -> Vec<u64> {
        let since = outputs.since(before).into_iter();
        let of = since.filter(|event| event["op"] == op && event["stream"] == stream);
        let mut ids: Vec<u64> = of.map(|event| event["id"].as_str().unwrap().parse().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(told("upsert", "bibs"), [bibs[0], bibs[50], new_bib]);
    assert_eq!(told("delete", "bibs"), [bibs[100]]);
    assert_eq!(told("upsert", "items"), [items[0], items[30], new_item]);
    assert_eq!(told("delete", "items"), [items[60]]);
    assert_eq!(outputs.deleted.iter().copied().collect::<Vec<_>>(), [bibs[100]]);
    let moved = outputs.newest("items")[items[0].to_string().as_str()];
    assert_eq!(moved["unlinked_bib_ids"], serde_json::json!([former.to_string()]));
}

#[test]
fn one_stream_can_be_run_alone() {
    let site = Site::loaded();
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    site.library.edits(|world| {
        world.edit_bib(bibs[3]).unwrap();
        world.edit(Kind::Items, items[3]).unwrap();
        world.set_status(items[4], 'm').unwrap();
    });
    let summary = site.sync(&["--stream", "bibs"]).ends(0).summary();
    assert_eq!(summary["streams"].as_object().unwrap().keys().collect::<Vec<_>>(), ["bibs"]);
    assert_eq!((summary["streams"]["bibs"]["changed"].as_u64(), site.library.count(Endpoint::Items)), (Some(1), 0));
    assert_eq!(site.sync_well()["streams"]["items"]["changed"], 1);
    site.assert_converged();
}

/// A dry run reads and compares: state, outputs and positions are as before, and the real run finds it all.
#[test]
fn a_dry_run_changes_nothing() {
    let site = Site::loaded();
    let bibs = site.library.ids(Kind::Bibs);
    site.library.edits(|world| {
        world.edit_bib(bibs[3]).unwrap();
        world.delete(Kind::Bibs, bibs[4]).unwrap();
    });
    let outputs = ["lines", "xml"].map(|name| site.bench.files(name));
    for _ in 0..2 {
        let summary = site.sync(&["--dry-run"]).ends(0).summary();
        let bibs = &summary["streams"]["bibs"];
        assert_eq!((&bibs["changed"], &bibs["deleted"]), (&1.into(), &1.into()), "{bibs}");
        assert_eq!(summary["sinks"], serde_json::json!({}));
    }
    assert!(["lines", "xml"].map(|name| site.bench.files(name)) == outputs, "an output changed");
    let summary = site.sync_well();
    assert_eq!((&summary["streams"]["bibs"]["changed"], &summary["sinks"]["xml"]["delivered"]), (&1.into(), &2.into()));
    site.assert_converged();
}
