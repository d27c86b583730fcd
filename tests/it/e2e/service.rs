//! `run`: the service, and the commands beside it.

use serde_json::Value;
use sierra_sync::cli::schema::SchemaName;
use sierra_sync::simulator::Kind;

use super::support::{Running, Site, assert_valid, patiently};

/// A loaded site whose service looks every second, on a port of its own.
fn site() -> Site {
    let site = Site::loaded();
    configure(&site, "1s");
    site
}

fn configure(site: &Site, interval: &str) {
    site.configure(|text| {
        let streams = format!("interval = \"{interval}\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"");
        format!("{}\n[ops]\nlisten = \"127.0.0.1:0\"\n", text.replace("settle = \"0s\"", &streams))
    });
}

fn start(site: &Site) -> Running {
    let service = site.bench.start(&["run", "--log-format", "json"]);
    said(&service, "service_started", 1);
    service
}

/// Waits until the event was logged so many times, and gives its lines.
#[track_caller]
fn said(service: &Running, event: &str, times: usize) -> Vec<Value> {
    patiently(event, || {
        let log = service.stderr();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found: Vec<Value> = lines.filter(|line| line["event"] == event).collect();
        (found.len() >= times).then_some(found)
    })
}

fn status(site: &Site) -> Value {
    let run = site.bench.run(&["status", "--json"]).ends(0);
    let status = run.json_lines().remove(0);
    assert_valid(SchemaName::Status, [&status]);
    status
}

/// What the service was told about is in both outputs when it has stopped, and `status` asks the service itself.
#[test]
fn the_service_follows_and_stops_in_order_and_other_commands_look_into_it() {
    let site = site();
    let service = start(&site);
    let ids = site.library.ids(Kind::Bibs);
    site.library.edits(|world| {
        world.edit_bib(ids[3]).unwrap();
        world.delete(Kind::Bibs, ids[7]).unwrap();
    });
    patiently("both changes in the output", || {
        let outputs = site.outputs();
        let newest = outputs.newest("bibs");
        let is_gone = newest.get(ids[7].to_string().as_str()).is_some_and(|event| event["op"] == "delete");
        let is_edited = newest.get(ids[3].to_string().as_str()).is_some_and(|event| event["source"] == "incremental");
        (is_gone && is_edited).then_some(())
    });

    let seen = status(&site);
    assert!(seen["started"].is_string(), "the service tells, not the state: {seen}");
    assert!(seen["streams"]["bibs"]["next_run"].is_string(), "{seen}");
    site.sync(&[]).ends(75).complains("it is held by sierra-sync run");
    // Who holds the state is told before what else is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("ops.listen={}", taken.local_addr().expect("bound"));
    site.bench.run(&["run", "--set", &address]).ends(75).complains("it is held by sierra-sync run");

    service.signal("TERM");
    let run = service.ended().ends(0);
    assert!(run.stderr.contains("service_stopping"), "{}", run.stderr);
    assert!(!site.bench.path("state/control.sock").exists());
    site.assert_converged();
    let after = site.sync_well();
    assert_eq!((&after["streams"]["bibs"]["changed"], &after["streams"]["bibs"]["deleted"]), (&0.into(), &0.into()));
}

#[test]
fn a_hangup_reads_the_configuration_again_and_says_what_changed() {
    let site = site();
    let service = start(&site);
    configure(&site, "2s");
    service.signal("HUP");
    said(&service, "service_started", 2);
    let changes = said(&service, "config_changed", 2);
    assert_eq!(changes[0]["message"], "streams.bibs.interval: \"1s\" is now \"2s\"");

    // A wrong one changes nothing, and is told of as at the start.
    site.configure(|text| text.replace("cap = \"400ms\"", "cap = \"4 moons\""));
    service.signal("HUP");
    said(&service, "reload_refused", 1);
    let problems = said(&service, "config_problem", 1);
    assert_eq!(problems[0]["key"], "retry.cap");

    // One that is well-formed and cannot be obeyed leaves the service as it was.
    configure(&site, "3s");
    site.configure(|text| text.replace("[state]\npath = \"./state\"", "[state]\npath = \"/proc/nowhere\""));
    service.signal("HUP");
    said(&service, "reload_failed", 1);
    said(&service, "service_started", 3);
    let ids = site.library.ids(Kind::Bibs);
    site.library.edits(|world| world.edit_bib(ids[5]).unwrap());
    patiently("the change in the output", || {
        let outputs = site.outputs();
        let newest = outputs.newest("bibs");
        newest.get(ids[5].to_string().as_str()).filter(|event| event["source"] == "incremental").map(drop)
    });
    service.signal("TERM");
    service.ended().ends(0);
    site.assert_converged();
}

/// BR-062: nothing that a killed service leaves behind keeps the next one, or any other command, from its work.
#[test]
fn a_killed_service_leaves_nothing_in_the_way() {
    let site = site();
    let service = start(&site);
    service.signal("KILL");
    assert_eq!(service.ended().code, None);
    assert!(site.bench.path("state/control.sock").exists(), "it had no time to tidy up");
    assert!(status(&site)["started"].is_null(), "the state tells, nobody holds it");
    let service = start(&site);
    assert!(status(&site)["started"].is_string());
    service.signal("TERM");
    service.ended().ends(0);
}

/// While a service holds the state it runs the backfill, beside its streams, and delivers as ever.
#[test]
fn a_backfill_runs_inside_the_service() {
    let site = site();
    let service = start(&site);
    let bib = site.library.ids(Kind::Bibs)[9];
    site.library.edits(|world| world.silently(|world| world.edit_bib(bib))).unwrap();
    let plan = site.bench.run(&["backfill", "bibs", "--plan", "--json"]).ends(0).json_lines().remove(0);
    assert!(plan["calls"].as_u64().is_some_and(|calls| calls >= 3), "{plan}");
    let summary = site.bench.run(&["backfill", "bibs", "--json"]).ends(0).summary();
    assert_eq!(
        (&summary["streams"]["bibs"]["fetched"], &summary["streams"]["bibs"]["changed"]),
        (&220.into(), &1.into())
    );
    patiently("the change in the output", || {
        let outputs = site.outputs();
        let newest = outputs.newest("bibs");
        newest.get(bib.to_string().as_str()).is_some_and(|event| event["source"] == "backfill").then_some(())
    });
    site.bench.run(&["backfill", "bibs", "--sink", "nowhere", "--force"]).ends(2).complains("no sink is called");
    service.signal("TERM");
    service.ended().ends(0);
    site.assert_converged();
}
