//! `run`: the service, and the commands beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use sierra_sync::cli::schema::SchemaName;
use sierra_sync::ops::control::{ControlSocket, Desk, Reply};
use sierra_sync::simulator::{Call, Endpoint, Fault, Kind};
use sierra_sync::store::StateLock;
use tokio_util::sync::CancellationToken;

use super::support::{Library, Running, Site, assert_valid, patiently};

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

/// A healthy service and all it works on are no finding: who has the sinks is said, and they are left to it.
#[test]
fn check_beside_the_service_finds_nothing_wrong() {
    let site = site();
    let service = start(&site);
    let lines = site.bench.run(&["check", "--json"]).ends(0).json_lines();
    let who = format!("(pid {})", service.id());
    let told = |line: &&Value| line["message"].as_str().is_some_and(|message| message.contains(&who));
    assert_eq!(lines.iter().filter(told).count(), 3, "the state and two sinks: {lines:#?}");
    service.signal("TERM");
    service.ended().ends(0);
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
    let failed = said(&service, "reload_failed", 1);
    let message = failed[0]["message"].as_str().expect("a sentence");
    assert!(message.contains("since the new one cannot be used: "), "{message}");
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

/// While a service reads its configuration again nobody is at the socket: whoever asks just then is patient. A caller who
/// says nothing makes the service take a second over it, so that the others do ask just then.
#[test]
fn whoever_asks_while_the_service_reads_its_configuration_again_is_answered() {
    let site = site();
    let service = start(&site);
    for reload in 1..=2 {
        let silent = UnixStream::connect(site.bench.path("state/control.sock")).expect("it is there");
        service.signal("HUP");
        said(&service, "config_reloaded", reload);
        let paused = site.bench.run(&["pause", "--sink", "xml", "--json"]).ends(0).json_lines().remove(0);
        assert_eq!(paused["sink"], "xml", "{paused}");
        said(&service, "service_started", reload + 1);
        drop(silent);
        assert!(status(&site)["streams"]["bibs"]["state"].is_string());
    }
    service.signal("TERM");
    service.ended().ends(0);
}

/// A holder that answers nobody, and then ends: the question is answered from the state.
#[test]
fn a_command_outwaits_a_holder_that_is_ending() {
    let site = Site::loaded();
    let held = StateLock::acquire(&site.bench.path("state")).expect("nobody holds it");
    let looking = site.bench.start(&["status", "--json", "--log", "debug"]);
    patiently("it to wait", || looking.stderr().contains("holder_awaited").then_some(()));
    drop(held);
    let seen = looking.ended().ends(0).json_lines().remove(0);
    assert!(seen["started"].is_null(), "the state tells, nobody holds it: {seen}");
}

/// A holder that says no, whatever it is asked.
struct Declines;

impl Desk for Declines {
    fn answer<'a>(&'a self, _: &'a str, reply: &'a Reply) -> BoxFuture<'a, u8> {
        Box::pin(async {
            reply.talk("not today").await;
            75
        })
    }
}

/// A holder that is away for a moment, as one that reads its configuration again: an order is handed over when it is back.
#[test]
fn an_order_outwaits_a_holder_that_is_away() {
    let site = Site::loaded();
    let state = site.bench.path("state");
    let held = StateLock::acquire(&state).expect("nobody holds it");
    let asking = site.bench.start(&["backfill", "bibs", "--log", "debug"]);
    patiently("it to wait", || asking.stderr().contains("holder_awaited").then_some(()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.spawn(async move {
        let socket = ControlSocket::bind(&state).expect("binds");
        socket.serve(Arc::new(Declines), CancellationToken::new()).await;
    });
    asking.ended().ends(75).complains("not today");
    drop(held);
}

/// What a container's health check asks: sick is what needs a person or a new start, not what an outage of Sierra does.
#[test]
fn the_health_check_fails_when_the_service_does_and_not_when_sierra_does() {
    let mut site = site();
    let checked = |site: &Site, code, sentence: &str| {
        let run = site.bench.run(&["--quiet", "status", "--check"]).ends(code);
        assert!(run.stdout.starts_with(sentence) && run.stdout.lines().count() == 1, "{run:?}");
    };
    let service = start(&site);
    patiently("all is well", || (status(&site)["state"] == "ok").then_some(()));
    checked(&site, 0, "ok: ");
    site.library.plan(Fault::Html { status: 503 }.always());
    patiently("an outage to be seen", || (status(&site)["state"] == "degraded").then_some(()));
    checked(&site, 0, "degraded: ");
    site.library.recover();
    service.signal("TERM");
    service.ended().ends(0);

    site.bench.run(&["breaker", "reset", "--yes"]).ends(0);
    site.give_secret(Some("not this one"));
    let service = start(&site);
    patiently("the key to be refused", || (status(&site)["state"] == "failing").then_some(()));
    checked(&site, 77, "failing: ");
    let json = site.bench.run(&["status", "--check", "--json"]).ends(77).json_lines().remove(0);
    assert_valid(SchemaName::Status, [&json]);
    site.bench.run(&["status"]).ends(0);
    service.signal("TERM");
    service.ended().ends(0);
}

/// A hold that the service obeys is obeyed by `check` beside it.
#[test]
fn check_heeds_the_breaker_that_the_service_holds() {
    let site = site();
    let service = start(&site);
    site.bench.run(&["breaker", "open", "--reason", "upgrade"]).ends(0);
    site.library.clear_journal();
    let run = site.bench.run(&["check"]).ends(69);
    assert!(run.stdout.contains("FAIL breaker: held open by operator, reason: upgrade"), "{}", run.stdout);
    assert_eq!(site.library.calls(), []);
    site.bench.run(&["breaker", "close", "--yes"]).ends(0);
    let run = site.bench.run(&["check"]);
    assert!(run.stdout.contains("ok   token") && !run.stdout.contains("breaker"), "{}", run.stdout);
    service.signal("TERM");
    service.ended().ends(0);
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

/// How far it is shows while it runs: page by page, though all of it is one range.
#[test]
fn a_backfill_inside_the_service_is_seen_to_go_on() {
    let site = site();
    let service = site.bench.start(&["run", "--log-format", "json", "--set", "streams.bibs.page_size=10"]);
    said(&service, "service_started", 1);
    site.library.plan(Fault::Delay { milliseconds: 200 }.at(Endpoint::Bibs));
    let running = site.bench.start(&["backfill", "bibs", "--force", "--json"]);
    let mut seen = BTreeMap::new();
    patiently("three steps", || {
        let backfill = status(&site)["streams"]["bibs"]["backfill"].clone();
        let done = backfill["done"].as_u64().filter(|_| backfill["state"] == "running")?;
        seen.insert(done, backfill);
        (seen.keys().filter(|done| (1..220).contains(*done)).count() >= 3).then_some(())
    });
    for backfill in seen.values() {
        assert_eq!(backfill["total"], 220, "{backfill}");
        assert!(backfill["eta"].is_string() && backfill["calls_left"].is_u64(), "{backfill}");
    }
    // About as many as there are pages behind it: numbers of bibs are not spread quite evenly.
    let shares: Vec<f64> = seen.values().filter_map(|backfill| backfill["percent"].as_f64()).collect();
    assert!(shares.windows(2).all(|pair| pair[0] < pair[1]), "{shares:?}");
    site.library.recover();
    let summary = running.ended().ends(0).summary();
    assert_eq!(summary["streams"]["bibs"]["fetched"], 220);
    assert!(status(&site)["streams"]["bibs"]["backfill"].is_null());
    service.signal("TERM");
    service.ended().ends(0);
    site.assert_converged();
}

/// Whether a call is of an update pass or a delete pass.
fn has_times(call: &Call) -> bool {
    call.parameter("updatedDate").is_some() || call.parameter("deletedDate").is_some()
}

/// SIGTERM in a first load: the service ends well, and its next start fetches no page again.
#[test]
fn a_service_that_is_stopped_in_a_load_fetches_no_page_again() {
    let site = Site::new(Library::sized(400, 60, 0));
    site.configure(|text| format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n"));
    site.library.plan(Fault::Delay { milliseconds: 150 }.at(Endpoint::Bibs));
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("some pages", || (site.library.count(Endpoint::Bibs) >= 3).then_some(()));
    service.signal("TERM");
    let run = service.ended().ends(0);
    assert!(!run.stderr.contains("not everything ended in time"), "{}", run.stderr);
    let captured = site.outputs().of("bibs").len() as u64;
    assert!((40..400).contains(&captured), "{captured}");
    site.library.recover();
    let summary = site.sync_well();
    assert_eq!(summary["streams"]["bibs"]["fetched"], 400 - captured);
    let calls = site.library.calls();
    let of_load = |call: &&Call| call.endpoint == Endpoint::Bibs && call.entries > 0 && !has_times(call);
    let pages: Vec<_> = calls.iter().filter(of_load).map(|call| call.parameter("id")).collect();
    assert_eq!(pages.len(), pages.iter().collect::<BTreeSet<_>>().len(), "each page once: {pages:?}");
    assert!(pages.len() >= 10, "{pages:?}");
    site.outputs().assert_each_seq_once();
    site.assert_converged();
}
