//! `cursor`: where streams stand, and where a person puts them, by the real binary.

use serde_json::{Value, json};
use sierra_sync::simulator::Kind;

use super::support::{Site, patiently};

fn lines(site: &Site, arguments: &[&str]) -> Vec<Value> {
    site.bench.run(&[&["cursor"], arguments, &["--json"]].concat()).ends(0).json_lines()
}

#[test]
fn every_row_is_shown_and_nothing_is_put_unless_it_is_meant() {
    let site = Site::loaded();
    let shown = lines(&site, &["show"]);
    let bibs = shown.iter().find(|line| line["stream"] == "bibs" && line["pass"] == "load").expect("its load");
    assert_eq!(
        (&bibs["window"], &bibs["state"], &bibs["position"]),
        (&json!("all records"), &json!("done"), &json!(null))
    );
    assert_eq!(bibs["attempts"], 0);
    assert!(lines(&site, &["show", "--stream", "items"]).iter().all(|line| line["stream"] == "items"));
    let text = site.bench.run(&["cursor", "show"]).ends(0).stdout;
    assert!(text.contains("all records"), "{text}");
    let before = shown.len();
    for (arguments, sentence) in [
        (&["set", "bibs", "2024-03-09"][..], "say it again with --yes"),
        (&["rewind", "bibs", "3d"], "say it again with --yes"),
        (&["rewind", "--rebuild"], "say it again with --yes"),
        (&["set", "bibs", "soup", "--yes"], "write a time"),
        (&["rewind", "bibs", "soup", "--yes"], "write a time"),
        (&["set", "patrons", "2024-03-09", "--yes"], "[streams.patrons] is not configured"),
        (&["set", "bibs", "2999-01-01", "--yes"], "has not come yet"),
        (&["rewind", "bibs"], "required"),
    ] {
        site.bench.run(&[&["cursor"], arguments].concat()).ends(2).complains(sentence);
    }
    assert_eq!((lines(&site, &["show"]).len(), lines(&site, &["history"])), (before, Vec::<Value>::new()));
    assert_eq!(site.library.calls(), []);
    let empty = Site::new(super::support::Library::sized(1, 1, 1));
    empty.bench.run(&["cursor", "set", "bibs", "2024-03-09", "--yes"]).ends(2).complains("nothing was synced yet");
    assert!(!empty.bench.path("state").exists());
}

#[test]
fn a_rewind_is_read_with_the_next_pass_and_kept_in_the_history() {
    let site = Site::loaded();
    let bib = site.library.ids(Kind::Bibs)[9];
    site.library.with(|simulator| {
        let past = simulator.world.now() - jiff::SignedDuration::from_hours(30);
        simulator.world.dated(past, |world| world.edit_bib(bib)).expect("a bib");
    });
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 0, "no window shows it");
    let put = lines(&site, &["rewind", "bibs", "40h", "--yes", "--reason", "a back-dated load"]).remove(0);
    assert_eq!((&put["action"], &put["changed"], &put["streams"]), (&json!("rewind"), &json!(true), &json!(["bibs"])));
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 1);
    site.assert_converged();
    let history = lines(&site, &["history"]);
    assert_eq!((history.len(), &history[0]["reason"]), (1, &json!("a back-dated load")));
    let all = site.bench.run(&["cursor", "rewind", "--rebuild", "--yes"]).ends(0).stdout;
    assert!(all.contains("bibs, items: a rebuild begins with the next pass"), "{all}");
    let summary = site.sync_well();
    assert!(summary["streams"]["bibs"]["changed"].as_u64().is_some_and(|changed| changed >= 220), "{summary}");
    site.assert_converged();
}

/// The service that holds the state puts it, and reads what is owed by itself.
#[test]
fn a_cursor_is_put_beside_a_running_service() {
    let site = Site::loaded();
    site.configure(|text| {
        let streams = "interval = \"1s\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"";
        format!("{}\n[ops]\nlisten = \"127.0.0.1:0\"\n", text.replace("settle = \"0s\"", streams))
    });
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("the start", || service.stderr().contains("service_started").then_some(()));
    let bib = site.library.ids(Kind::Bibs)[9];
    site.library.with(|simulator| {
        let past = simulator.world.now() - jiff::SignedDuration::from_hours(30);
        simulator.world.dated(past, |world| world.edit_bib(bib)).expect("a bib");
    });
    assert!(!lines(&site, &["show"]).is_empty());
    lines(&site, &["rewind", "bibs", "2d", "--yes"]);
    site.bench.run(&["cursor", "set", "bibs", "2999-01-01", "--yes"]).ends(2).complains("has not come yet");
    assert_eq!(lines(&site, &["history"]).len(), 1);
    patiently("the change in the output", || {
        let outputs = site.outputs();
        outputs.newest("bibs").get(bib.to_string().as_str()).filter(|event| event["source"] == "incremental").map(drop)
    });
    service.signal("TERM");
    service.ended().ends(0);
    site.assert_converged();
}
