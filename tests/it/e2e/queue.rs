//! `queue` and `quarantine`: what waits and what was set aside, with and without a service.

use serde_json::Value;
use sierra_sync::cli::schema::SchemaName;
use sierra_sync::simulator::Kind;

use super::support::{Site, assert_valid};

fn pause(text: &str, sink: &str, paused: bool) -> String {
    text.replace(&format!("path = \"./{sink}\""), &format!("path = \"./{sink}\"\npaused = {paused}"))
}

fn queue(site: &Site, arguments: &[&str]) -> Vec<Value> {
    site.bench.run(&[&["queue", "--json"], arguments].concat()).ends(0).json_lines()
}

/// A10, A12, BR-027: what waits for a sink is listed as it is kept, can be looked at, and is delivered on demand, once; a
/// deletion that is held back lies in the state, whatever process comes and goes.
#[test]
fn what_waits_for_a_paused_sink_is_listed_shown_exported_and_drained() {
    let site = Site::loaded();
    site.configure(|text| pause(&text, "xml", true));
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    site.library.edits(|world| {
        world.edit_bib(bibs[1]).unwrap();
        world.delete(Kind::Bibs, bibs[2]).unwrap();
        world.set_status(items[1], 'm').unwrap();
    });
    site.sync(&[]).ends(0);

    let listed = queue(&site, &["list"]);
    let ids: Vec<(&str, &str, &str)> = listed
        .iter()
        .map(|line| (line["id"].as_str().unwrap(), line["op"].as_str().unwrap(), line["format"].as_str().unwrap()))
        .collect();
    let (edited, deleted) = (bibs[1].to_string(), bibs[2].to_string());
    assert_eq!(ids, [(edited.as_str(), "upsert", "marcxml"), (deleted.as_str(), "delete", "json")]);
    assert!(
        listed.iter().all(|line| line["pending"] == serde_json::json!(["xml"]) && line["bytes"].as_u64() > Some(0))
    );
    assert_eq!(queue(&site, &["list", "--limit", "1"]).len(), 1);
    assert_eq!(queue(&site, &["list", "--stream", "items"]).len(), 0);
    assert_eq!(queue(&site, &["list", "--sink", "lines"]).len(), 0);
    site.bench.run(&["queue", "list", "--sink", "xlm"]).ends(2).complains("there are: lines, xml");

    let seq = listed[0]["seq"].to_string();
    let shown = queue(&site, &["show", &seq]).remove(0);
    assert_eq!((&shown["key"], &shown["id"]), (&listed[0]["key"], &listed[0]["id"]));
    assert!(shown["marcxml"].as_str().unwrap().starts_with("<record"));
    site.bench.run(&["queue", "show", "1"]).ends(2).complains("nothing waits under seq 1");

    let exported = queue(&site, &["export"]);
    assert_valid(SchemaName::Change, &exported);
    assert_eq!(exported.len(), 2);
    assert_eq!(queue(&site, &["verify"])[0]["sound"], true);

    site.configure(|text| pause(&text, "xml", false));
    let drained = queue(&site, &["drain"]).remove(0);
    assert_eq!(drained["sinks"]["xml"]["pending"], 0);
    site.assert_converged();
    assert_eq!(queue(&site, &["list"]).len(), 0);
}

#[test]
fn the_state_is_written_anew_on_demand_and_works_on() {
    let site = Site::loaded();
    site.bench.run(&["queue", "compact"]).ends(2).complains("say it again with --yes");
    let compacted = queue(&site, &["compact", "--yes"]).remove(0);
    assert!(compacted["bytes_after"].as_u64() > Some(0), "{compacted}");
    let bibs = site.library.ids(Kind::Bibs);
    site.library.edits(|world| world.edit_bib(bibs[1]).unwrap());
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 1);
    site.assert_converged();
}
