//! The ops endpoint of the real service: actions, and crowds that do not disturb the sync.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;
use sierra_sync::clock::{Clock, SystemClock};
use sierra_sync::simulator::{Fault, Garble, Kind};

use super::support::{Running, Site, patiently};

/// A loaded site whose service looks at its interval, with a token for actions.
fn site(interval: &str) -> Site {
    let site = Site::loaded();
    let token = site.bench.write("token", "correct-horse-battery\n");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("ours");
    site.configure(|text| {
        let streams = format!("interval = \"{interval}\"\ndeleted_interval = \"{interval}\"\nsettle = \"0s\"");
        let ops = "\n[ops]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"./token\"\n";
        format!("{}{ops}", text.replace("settle = \"0s\"", &streams))
    });
    site
}

/// Starts the service and tells its address.
fn start(site: &Site) -> (Running, String) {
    let service = site.bench.start(&["run", "--log-format", "json"]);
    let address = patiently("the address", || {
        let log = service.stderr();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>();
        let address = lines.iter().find(|line| line["event"] == "ops_listening")?["address"].as_str()?.to_owned();
        lines.iter().any(|line| line["event"] == "service_started").then_some(address)
    });
    (service, address)
}

fn call(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer correct-horse-battery\r\nContent-Type: \
         application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or(Value::Null)))
}

fn act(address: &str, name: &str, body: &str) -> Value {
    let (status, answer) = call(address, "POST", &format!("/actions/{name}"), body).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    answer
}

fn status(site: &Site) -> Value {
    site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0)
}

fn shown(address: &str) -> Value {
    call(address, "GET", "/status", "").expect("an answer").1
}

/// Whether every stream has had a pass and waits for its next one, a while from now.
/// Waits for the end of the pass that each stream of a service that was just started begins with.
///
/// The next run is planned when a pass begins, and the earlier `sync` has read deletions, too: only a success that is
/// later than `before` tells that a pass of this service is over.
fn passed(address: &str, before: jiff::Timestamp) {
    let is_later = |at: &Value| at.as_str().is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok_and(|at| at > before));
    patiently("the first passes", || {
        let status = shown(address);
        let mut streams = status["streams"].as_object().expect("streams").values();
        streams.all(|stream| is_later(&stream["last_success"])).then_some(())
    });
}

fn has_arrived(site: &Site, bib: u64) -> Option<()> {
    let outputs = site.outputs();
    let newest = outputs.newest("bibs");
    newest.get(bib.to_string().as_str()).is_some_and(|event| event["source"] == "incremental").then_some(())
}

/// What is done from the dashboard is done by the same desk as on the command line, kept in the same history, and
/// survives a restart.
#[test]
fn actions_reach_streams_sinks_and_breaker_and_are_remembered() {
    let site = site("1h");
    let before = SystemClock.now();
    let (service, address) = start(&site);
    let bibs = site.library.ids(Kind::Bibs);
    passed(&address, before);
    site.library.edits(|world| world.edit_bib(bibs[3]).unwrap());
    site.library.pass_a_second();
    let answer = act(&address, "sync", r#"{"streams":["bibs"]}"#);
    assert!(answer["message"].as_str().is_some_and(|text| text.contains("A pass over bibs")), "{answer}");
    patiently("the change, an hour early", || has_arrived(&site, bibs[3]));

    act(&address, "pause", r#"{"sink":"xml","by":"ann","reason":"the disk is changed"}"#);
    act(&address, "pause", r#"{"stream":"items","by":"ann"}"#);
    act(&address, "breaker", r#"{"order":"open","minutes":30,"by":"bob","reason":"upgrade"}"#);
    let seen = status(&site);
    assert_eq!(
        (&seen["sinks"]["xml"]["state"], &seen["streams"]["items"]["state"]),
        (&"paused".into(), &"paused".into())
    );
    assert_eq!(seen["sinks"]["xml"]["paused"]["reason"], "the disk is changed");
    assert_eq!(seen["breaker"]["state"], "open");
    let (refused, answer) = call(&address, "POST", "/actions/sync", r#"{"streams":["items"]}"#).expect("an answer");
    assert_eq!(refused, 409, "{answer}");
    assert!(answer["message"].as_str().is_some_and(|text| text.contains("resume --stream items")), "{answer}");
    let (unknown, answer) = call(&address, "POST", "/actions/pause", r#"{"sink":"xlm"}"#).expect("an answer");
    assert_eq!(
        (unknown, answer["message"].as_str().is_some_and(|text| text.contains("lines, xml"))),
        (409, true),
        "{answer}"
    );
    act(&address, "breaker", r#"{"order":"close"}"#);

    let told = site.bench.run(&["breaker", "history", "--json"]).ends(0).json_lines();
    let commands: Vec<&str> = told.iter().map(|line| line["command"].as_str().expect("text")).collect();
    let expected = ["sync now bibs", "pause --sink xml", "pause --stream items", "breaker open", "breaker close"];
    assert_eq!(commands, expected);
    assert_eq!((&told[1]["by"], &told[4]["by"]), (&"ann".into(), &"somebody at the dashboard".into()));
    let past = patiently("the run with one change", || {
        let (_, past) = call(&address, "GET", "/history", "").expect("an answer");
        let runs = past["runs"].as_array().expect("runs");
        runs.iter().any(|run| run["changed"] == 1).then_some(past)
    });
    assert_eq!(past["actions"].as_array().map(Vec::len), Some(5), "{past}");
    service.signal("TERM");
    service.ended().ends(0);

    let (service, address) = start(&site);
    let seen = status(&site);
    assert_eq!(
        (&seen["sinks"]["xml"]["state"], &seen["streams"]["items"]["state"]),
        (&"paused".into(), &"paused".into())
    );
    let (_, past) = call(&address, "GET", "/history", "").expect("an answer");
    assert!(past["runs"].as_array().is_some_and(|runs| !runs.is_empty()), "runs outlive the process: {past}");
    assert!(past["samples"].as_array().is_some_and(|samples| !samples.is_empty()), "so does the day: {past}");
    act(&address, "resume", r#"{"sink":"xml"}"#);
    let run = site.bench.run(&["resume", "--stream", "items", "--reason", "done"]).ends(0);
    assert_eq!(run.stdout, "The stream items goes on.\n");
    patiently("what waited", || {
        let seen = shown(&address);
        (seen["sinks"]["xml"]["pending"] == 0 && seen["message"] == "All streams are fresh.").then_some(())
    });
    site.assert_converged();
    service.signal("TERM");
    service.ended().ends(0);
}

/// A thousand callers at once and a hundred that dawdle disturb nothing: a change arrives meanwhile as ever.
#[test]
fn crowds_do_not_disturb_the_sync() {
    let site = site("1s");
    let (service, address) = start(&site);
    let bibs = site.library.ids(Kind::Bibs);
    let slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).expect("connects");
            stream.write_all(b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ").expect("sends");
            stream
        })
        .collect();
    std::thread::scope(|scope| {
        let crowd: Vec<_> = (0..100)
            .map(|_| {
                let address = &address;
                scope.spawn(move || (0..10).filter_map(|_| call(address, "GET", "/status", "")).count())
            })
            .collect();
        site.library.edits(|world| world.edit_bib(bibs[5]).unwrap());
        patiently("the change", || has_arrived(&site, bibs[5]));
        let answered: usize = crowd.into_iter().map(|caller| caller.join().expect("no panic")).sum();
        assert!(answered >= 900, "{answered}");
    });
    drop(slow);
    let (well, seen) = call(&address, "GET", "/livez", "").expect("an answer");
    assert_eq!((well, seen), (200, Value::Null));
    assert_eq!(status(&site)["state"], "ok");
    service.signal("TERM");
    let run = service.ended().ends(0);
    assert!(!run.stderr.contains("\"ERROR\"") && !run.stderr.contains("correct-horse"), "{}", run.stderr);
    site.assert_converged();
}

/// A record that was set aside is replayed from the dashboard, and what came of it is told and kept.
#[test]
fn what_was_set_aside_is_replayed_from_the_dashboard() {
    let site = site("1h");
    let before = SystemClock.now();
    let (service, address) = start(&site);
    passed(&address, before);
    let bib = site.library.ids(Kind::Bibs)[70];
    site.library.edits(|world| world.edit_bib(bib)).unwrap();
    let fault = site.library.plan(Fault::Garbled { kind: Kind::Bibs, id: bib, how: Garble::WrongTypes });
    site.library.pass_a_second();
    act(&address, "sync", r#"{"streams":["bibs"]}"#);
    patiently("the record that is set aside", || (shown(&address)["quarantine"]["bibs"] == 1).then_some(()));

    let body = r#"{"stream":"bibs","by":"ann","reason":"it was corrected"}"#;
    let (status, answer) = call(&address, "POST", "/actions/replay", body).expect("an answer");
    assert_eq!((status, &answer["message"]), (503, &"Replayed: 1 still refused.".into()), "{answer}");
    site.library.with(|simulator| simulator.cancel(fault));
    let (_, answer) = call(&address, "POST", "/actions/replay", r#"{"ids":["nothing"]}"#).expect("an answer");
    assert!(answer["message"].as_str().is_some_and(|text| text.contains("nothing is set aside as")), "{answer}");
    assert_eq!(act(&address, "replay", body)["message"], "Replayed: 1 good now.");
    let nothing = "Replayed: nothing was set aside that can be replayed.";
    assert_eq!(act(&address, "replay", "{}")["message"], nothing);
    patiently("nothing that is set aside", || (shown(&address)["quarantine"]["bibs"] == 0).then_some(()));
    patiently("the record in the output", || {
        let outputs = site.outputs();
        outputs
            .newest("bibs")
            .get(bib.to_string().as_str())
            .is_some_and(|event| event["source"] != "load")
            .then_some(())
    });

    let told = site.bench.run(&["breaker", "history", "--json"]).ends(0).json_lines();
    let replays: Vec<_> = told.iter().filter(|line| line["command"] != "sync now bibs").collect();
    let outcomes: Vec<&str> = replays.iter().map(|line| line["outcome"].as_str().expect("text")).collect();
    assert_eq!(outcomes, ["1 still refused", "1 good now", &nothing["Replayed: ".len()..nothing.len() - 1]]);
    assert_eq!(
        (&replays[0]["command"], &replays[0]["by"], &replays[0]["reason"]),
        (&"quarantine replay --stream bibs".into(), &"ann".into(), &"it was corrected".into())
    );
    service.signal("TERM");
    service.ended().ends(0);
    site.assert_converged();
}

/// `status --watch` shows things again and again, asks Sierra nothing, moves nothing and goes when it is told to.
#[test]
fn watching_and_checking_beside_the_service_move_nothing() {
    let site = site("1h");
    let before = SystemClock.now();
    let (service, address) = start(&site);
    passed(&address, before);
    let bib = site.library.ids(Kind::Bibs)[3];
    site.library.edits(|world| world.edit_bib(bib)).unwrap();
    let positions = |status: &Value| {
        let streams = status["streams"].as_object().expect("streams").values();
        streams.map(|stream| (stream["watermark"].clone(), stream["deleted_through"].clone())).collect::<Vec<_>>()
    };
    let before = positions(&status(&site));
    site.library.clear_journal();
    let watch = site.bench.start(&["status", "--watch", "--json"]);
    let seen = patiently("three looks", || {
        let seen: Vec<Value> = watch.stdout().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (seen.len() >= 3).then_some(seen)
    });
    assert!(seen.iter().all(|seen| positions(seen) == before), "{seen:#?}");
    assert_eq!(site.library.calls(), [], "watching asks nobody");
    drop(watch);
    let lines = site.bench.run(&["check", "--json"]).ends(0).json_lines();
    assert!(lines.len() >= 8 && lines.iter().all(|line| line["ok"] == true), "{lines:#?}");
    let of_sink = lines.iter().find(|line| line["probe"] == "sink xml").expect("it is probed");
    let in_use = of_sink["message"].as_str().is_some_and(|text| text.starts_with("held by sierra-sync run"));
    assert!(in_use, "{of_sink}");
    assert_eq!(positions(&status(&site)), before, "checking moves nothing");
    assert_eq!(site.outputs().newest("bibs")[bib.to_string().as_str()]["source"], "load");
    service.signal("TERM");
    service.ended().ends(0);
}
