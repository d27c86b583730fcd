//! Settings that change what events mean: the stream is loaded again, `check` and the log say so, and the outputs are
//! right afterwards.

use serde_json::Value;
use sierra_sync::simulator::{Endpoint, Fault, Kind, When};

use super::support::{Outputs, Site};

/// Every stream of the site with its records.
const STREAMS: [(&str, u64); 2] = [("bibs", 220), ("items", 260)];

/// Changes the configuration, asks `check`, syncs, and expects that `streams` alone were read and emitted again. Returns
/// the highest seq before it, and the outputs after it.
#[track_caller]
fn changed(site: &Site, streams: &[&str], edit: impl FnOnce(String) -> String) -> (u64, Outputs) {
    let before = site.outputs().highest_seq();
    site.configure(edit);
    let of_settings = |site: &Site| {
        let lines = site.bench.run(&["check", "--offline", "--json"]).ends(0).json_lines();
        lines.into_iter().find(|line| line["probe"] == "settings")
    };
    let line = of_settings(site).expect("check says so");
    let sentence = format!("the settings that shape the events of {} changed", streams.join(", "));
    assert!(line["message"].as_str().is_some_and(|message| message.starts_with(&sentence)), "{line}");
    let mut run = site.sync(&[]).ends(0);
    let summary = run.summary();
    for (stream, records) in STREAMS {
        let is_changed = streams.contains(&stream);
        let sentence = format!("the settings that shape the events of {stream} changed");
        assert_eq!(run.stderr.contains(&sentence), is_changed, "{}", run.stderr);
        run = if is_changed { run.complains("is read and emitted again") } else { run };
        let counts = &summary["streams"][stream];
        assert_eq!(counts["changed"], if is_changed { records } else { 0 }, "{counts}");
        assert_eq!(counts["state"], "caught_up");
    }
    assert_eq!(of_settings(site), None, "it is done");
    let quiet = site.sync_well();
    assert!(STREAMS.iter().all(|(stream, _)| quiet["streams"][stream]["changed"] == 0), "{quiet}");
    (before, site.outputs())
}

fn adding(to: &'static str, lines: &'static str) -> impl FnOnce(String) -> String {
    move |text| text.replacen(to, &format!("{to}\n{lines}"), 1)
}

/// What came after `seq`, which must all be of a backfill.
fn emitted_since(outputs: &Outputs, seq: u64) -> Vec<&Value> {
    let told = outputs.since(seq);
    assert!(told.iter().all(|event| event["source"] == "backfill"), "{told:?}");
    told
}

#[test]
fn other_fields_load_the_stream_again() {
    let site = Site::loaded();
    assert!(site.outputs().of("bibs").iter().all(|event| event["record"].get("normTitle").is_none()));
    let fields = "fields = [\"default\", \"fixedFields\", \"varFields\", \"locations\", \"normTitle\"]";
    let (before, outputs) = changed(&site, &["bibs"], adding("[streams.bibs]", fields));
    assert_eq!(emitted_since(&outputs, before).len(), 220);
    let newest = outputs.newest("bibs");
    assert!(newest.values().all(|event| event["record"]["normTitle"].is_string()));
    site.assert_converged();
}

/// What lies outside the new locations is deleted, and comes back with the old ones.
#[test]
fn other_locations_load_the_stream_again() {
    let site = Site::loaded();
    let (before, outputs) = changed(&site, &["items"], adding("[streams.items]", "locations = [\"main*\"]"));
    let told = emitted_since(&outputs, before);
    assert_eq!(told.len(), 260);
    for event in outputs.newest("items").values() {
        let id = event["id"].as_str().and_then(|id| id.parse().ok()).expect("a number");
        let truth = site.library.with(|simulator| simulator.world.true_record(Kind::Items, id)).expect("it lives");
        let is_main = truth.value()["location"]["code"].as_str().is_some_and(|code| code.starts_with("main"));
        let expected = if is_main { ("upsert", Value::Null) } else { ("delete", "filtered".into()) };
        let held = (event["op"].as_str().expect("a text"), event.get("reason").cloned().unwrap_or_default());
        assert_eq!(held, expected, "{event}");
    }
    let deleted = told.iter().filter(|event| event["op"] == "delete").count();
    assert!((50..250).contains(&deleted), "{deleted}");
    changed(&site, &["items"], |text| text);
    site.assert_converged();
}

/// Nothing of what privacy now drops is in what is emitted from then on, in either output.
#[test]
fn another_privacy_loads_the_stream_again() {
    let site = Site::loaded();
    let has_title = |marcxml: &str| marcxml.contains("tag=\"245\"");
    let marcxml = |event: &Value| event["marcxml"].as_str().expect("a text").to_owned();
    assert!(site.outputs().of("bibs").iter().all(|event| has_title(&marcxml(event))));
    let (before, outputs) = changed(&site, &["bibs"], |text| text + "\n[privacy]\nmarc_drop = [\"245\"]\n");
    let told = emitted_since(&outputs, before);
    assert_eq!(told.len(), 220);
    assert!(told.iter().all(|event| !has_title(&marcxml(event))));
    assert!(outputs.collection.len() == 220 && outputs.collection.values().all(|record| !has_title(record)));
    let (before, outputs) = changed(&site, &["items"], |text| {
        text + "\n[privacy]\nmarc_drop = [\"245\"]\nitem_fixed_drop = [\"61\", \"66\", \"67\"]\n"
    });
    let told = emitted_since(&outputs, before);
    assert!(told.len() == 260 && told.iter().all(|event| event["record"]["fixedFields"].get("61").is_none()));
}

#[test]
fn another_marc_policy_loads_the_stream_again() {
    let site = Site::loaded();
    let is_numbered = |id: &str, marcxml: &str| {
        let own = marcxml.split("<controlfield tag=\"001\">").nth(1).and_then(|rest| rest.split('<').next());
        own.is_some_and(|own| own.contains(id))
    };
    let (before, outputs) = changed(&site, &["bibs"], |text| text + "\n[marc]\ncontrol_number = \"sierra\"\n");
    let told = emitted_since(&outputs, before);
    assert_eq!(told.len(), 220);
    for event in told {
        let (id, marcxml) = (event["id"].as_str().expect("a text"), event["marcxml"].as_str().expect("a text"));
        assert!(is_numbered(id, marcxml), "{marcxml}");
    }
    assert!(outputs.collection.iter().all(|(id, record)| is_numbered(&id.to_string(), record)));
}

#[test]
fn what_counts_as_the_same_loads_the_stream_again() {
    let site = Site::loaded();
    changed(&site, &["bibs"], adding("[streams.bibs]", "hash_ignore = [\"84\"]"));
    site.assert_converged();
}

/// Cut off, it says what is left in summary and status and goes on with the next run; and settings that are put back in
/// the middle bring everything back as it was.
#[test]
fn a_load_under_new_settings_that_is_cut_off_is_told_and_can_be_taken_back() {
    for is_taken_back in [false, true] {
        let site = Site::loaded();
        let dropped = "\n[privacy]\nmarc_drop = [\"245\"]\n";
        site.configure(|text| text + dropped);
        site.library.plan(Fault::Html { status: 503 }.when(When::Calls { from: 5, to: u64::MAX }).at(Endpoint::Bibs));
        let run = site.sync(&["--set", "retry.max_attempts=1"]).ends(69);
        let summary = run.complains("the settings that shape the events of bibs changed").summary();
        assert_eq!(summary["streams"]["bibs"]["gaps"].as_array().map(Vec::len), Some(1), "{summary}");
        let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().pop().expect("the status");
        let backfill = &status["streams"]["bibs"]["backfill"];
        assert!(backfill["state"] == "parked" && backfill["done"].as_u64() > Some(0), "{backfill}");
        site.library.recover();
        if is_taken_back {
            site.configure(|text| text);
        }
        site.bench.run(&["breaker", "reset", "--yes"]);
        let run = site.sync(&[]).ends(0).complains("the settings that shape the events of bibs changed");
        let changed = run.summary()["streams"]["bibs"]["changed"].as_u64();
        let bounds = if is_taken_back { 220..221 } else { 60..220 };
        assert!(changed.is_some_and(|changed| bounds.contains(&changed)), "{changed:?}");
        if is_taken_back {
            site.assert_converged();
        } else {
            let outputs = site.outputs();
            assert!(outputs.newest("bibs").values().all(|event| !event["marcxml"].to_string().contains("\\\"245\\\"")));
        }
    }
}

/// What a sink has been told of is chosen by its own settings, too: it alone is loaded again, what it should not have is
/// deleted there, and comes back with the old choice, also when that is put back in the middle of the load.
#[test]
fn another_choice_of_records_loads_the_sink_again() {
    let chosen = "locations = [\"main*\"]\nsuppressed = \"delete\"";
    for is_taken_back in [false, true] {
        let site = Site::loaded();
        let before = site.outputs().highest_seq();
        let held = site.outputs().collection.len();
        site.configure(adding("[sinks.lines]", chosen));
        let lines = site.bench.run(&["check", "--offline", "--json"]).ends(0).json_lines();
        let line = lines.iter().find(|line| line["probe"] == "settings").expect("check says so");
        let sentence = "the settings that choose the records of lines changed";
        assert!(line["message"].as_str().is_some_and(|message| message.starts_with(sentence)), "{line}");
        if is_taken_back {
            site.library
                .plan(Fault::Html { status: 503 }.when(When::Calls { from: 5, to: u64::MAX }).at(Endpoint::Bibs));
            let status =
                site.sync(&["--set", "retry.max_attempts=1"]).ends(69).summary()["sinks"]["lines"]["state"].clone();
            assert_eq!(status, "needs_reload");
            assert!(site.outputs().highest_seq() > before, "it was under way");
            site.library.recover();
            site.bench.run(&["breaker", "reset", "--yes"]);
        } else {
            let summary = site.sync(&[]).ends(0).complains("settings that choose the records of this sink").summary();
            assert_eq!(summary["sinks"]["lines"]["state"], "ok", "{summary}");
            let outputs = site.outputs();
            assert_eq!(outputs.collection.len(), held, "the other sink is left alone");
            for (stream, kind) in [("bibs", Kind::Bibs), ("items", Kind::Items)] {
                let mut kept = 0;
                for event in outputs.newest(stream).values() {
                    let id = event["id"].as_str().and_then(|id| id.parse().ok()).expect("a number");
                    let truth = site.library.with(|simulator| simulator.world.true_record(kind, id)).expect("it lives");
                    let codes = [&truth.value()["locations"], &truth.value()["location"]];
                    let codes = codes.map(|codes| codes.to_string()).concat();
                    let is_kept = codes.contains("\"code\":\"main") && truth.value()["suppressed"] != true;
                    assert_eq!(event["op"] == "upsert", is_kept, "{event} of {codes}");
                    kept += usize::from(is_kept);
                }
                assert!((20..240).contains(&kept), "{kept} of {stream}");
            }
            assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 0);
        }
        site.configure(|text| text);
        site.sync(&[]).ends(0).complains("settings that choose the records of this sink");
        site.assert_converged();
        let quiet = site.sync_well();
        assert_eq!(
            (&quiet["streams"]["bibs"]["changed"], &quiet["sinks"]["lines"]["state"]),
            (&0.into(), &"ok".into())
        );
    }
}
