//! `recover` and `breaker` between runs of `sync`, against a Sierra that refuses, is down, or has enabled a key again.

use std::net::TcpListener;

use serde_json::Value;
use sierra_sync::simulator::{Endpoint, Fault, Kind, RateLimit, Unauthorized};
use sierra_sync::store::StateLock;

use super::support::{Run, SECRET, Site};

#[track_caller]
fn recover(site: &Site, exit: i32, arguments: &[&str]) -> (Value, Run) {
    let run = site.bench.run(&[&["recover", "--json"], arguments].concat()).ends(exit);
    let report = run.json_lines().pop().expect("a report");
    assert_eq!((&report["exit"], &report["ok"]), (&exit.into(), &(exit == 0).into()), "{report}");
    (report, run)
}

/// A site whose key is refused, then enabled again with the same secret: it is locked out until the hourly trial.
fn locked_out() -> Site {
    let site = Site::loaded();
    let refusal = site.library.plan(Fault::Unauthorized(Unauthorized::Bare).at(Endpoint::Token));
    site.library.with(|simulator| simulator.revoke_tokens());
    site.sync(&[]).ends(77);
    assert_eq!(site.library.count(Endpoint::Token), 2);
    site.library.with(|simulator| simulator.cancel(refusal));
    site.library.clear_journal();
    let run = site.sync(&[]).ends(77);
    assert_eq!(site.library.calls(), [], "the latch is closed");
    let hint = run.summary()["streams"]["bibs"]["error"]["hint"].as_str().expect("a hint").to_owned();
    assert!(hint.contains("`sierra-sync recover`") && hint.contains("breaker reset --yes"), "{hint}");
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert!(status["message"].as_str().is_some_and(|message| message.contains("`sierra-sync recover`")), "{status}");
    site
}

/// A18: one command. The gates are forgotten, the token is new, one call goes at a time, and it ends once more than 30 %
/// of the quota is left and no answer in a hundred is a 429.
#[test]
fn recover_ends_a_stall_with_one_careful_call_at_a_time() {
    let site = Site::loaded();
    let refusal = Fault::TooManyRequests {
        limit: Some("1000".into()),
        remaining: Some("0".into()),
        reset: Some("3000".into()),
        retry_after: None,
    };
    let storm = site.library.plan(refusal.always());
    site.sync(&[]).ends(75);
    site.library.with(|simulator| {
        simulator.cancel(storm);
        simulator.limit_rate(Some(RateLimit { calls: 1000, ..RateLimit::default() }));
    });
    site.library.clear_journal();
    site.sync(&[]).ends(75);
    assert_eq!(site.library.calls(), [], "the stall: a gate stands for fifty minutes although Sierra is well");

    let (report, run) = recover(&site, 0, &["--reason", "the gateway was mended"]);
    assert_eq!((&report["answers"], &report["needed"], &report["refusals"]), (&100.into(), &100.into(), &0.into()));
    assert_eq!((&report["limit"], report["remaining"].as_u64().is_some_and(|left| left > 300)), (&1000.into(), true));
    for told in ["re-engaging one call at a time", "of 100 answers", "the quota holds"] {
        assert!(run.stderr.contains(told), "{told}: {}", run.stderr);
    }
    let calls = site.library.calls();
    assert_eq!(site.library.count(Endpoint::Token), 1, "a fresh token, once");
    assert!(
        calls.len() <= 101 && site.library.count(Endpoint::Bibs) >= 30 && site.library.count(Endpoint::Items) >= 30
    );
    assert!(calls.iter().all(|call| call.entries <= 1), "the smallest questions there are");
    site.sync_well();
    let history = site.bench.run(&["breaker", "history"]).ends(0).stdout;
    assert!(history.contains("recover: \"the gateway was mended\"; The quota holds"), "{history}");
}

/// The same beside a service whose windows are put off for fifty minutes: once the quota holds they are asked for.
#[test]
fn recover_lets_a_service_go_on_with_what_waits_for_quota() {
    let site = Site::loaded();
    site.configure(|text| {
        let streams = "interval = \"1s\"\ndeleted_interval = \"1h\"\nsettle = \"0s\"";
        format!("{}\n[ops]\nlisten = \"127.0.0.1:0\"\n", text.replace("settle = \"0s\"", streams))
    });
    let refusal = Fault::TooManyRequests {
        limit: Some("1000".into()),
        remaining: Some("0".into()),
        reset: Some("3000".into()),
        retry_after: None,
    };
    let storm = site.library.plan(refusal.at(Endpoint::Bibs));
    let service = site.bench.start(&["run"]);
    let is_in_time = |state: &str| {
        let stands = |_| {
            let status = site.bench.run(&["status", "--json"]).json_lines().pop().expect("a status");
            status["started"].is_string() && status["streams"]["bibs"]["state"] == state
        };
        (0..1500).any(stands)
    };
    assert!(is_in_time("waiting_quota"), "no window is put off");
    site.library.with(|simulator| {
        simulator.cancel(storm);
        simulator.limit_rate(Some(RateLimit { calls: 1000, ..RateLimit::default() }));
    });
    let id = site.library.ids(Kind::Bibs)[3];
    site.library.edits(|world| world.edit_bib(id).unwrap());
    recover(&site, 0, &[]);
    assert!(is_in_time("ok"), "the window still waits");
    service.signal("TERM");
    service.ended().ends(0);
    let outputs = site.outputs();
    assert_eq!(outputs.newest("bibs")[id.to_string().as_str()]["source"], "incremental");
}

/// A key that was enabled again with the same secret is taken at once, by either command.
#[test]
fn recover_and_reset_lift_the_lock_on_a_key_that_was_enabled_again() {
    let site = locked_out();
    let (report, _) = recover(&site, 0, &[]);
    assert_eq!(report["latch_lifted"], true, "{report}");
    site.sync_well();

    let site = locked_out();
    let run = site.bench.run(&["breaker", "reset", "--yes", "--json"]).ends(0);
    assert_eq!(run.json_lines()[0]["latch_lifted"], true, "{run:?}");
    assert_eq!(site.library.calls(), [], "the command itself asks nobody");
    site.sync_well();
}

/// Each way in which it can fail has its exit code and says what to do.
#[test]
fn recover_says_why_it_could_not() {
    let mut site = Site::loaded();
    site.give_secret(Some("wrong"));
    let (report, _) = recover(&site, 77, &[]);
    assert!(site.library.count(Endpoint::Token) <= 2, "{:?}", site.library.calls());
    assert_eq!((&report["error"]["kind"], &report["answers"]), (&"credentials".into(), &2.into()), "{report}");
    site.give_secret(Some(SECRET));

    let outage = site.library.plan(Fault::Html { status: 503 }.always());
    let (report, _) = recover(&site, 69, &["--set", "retry.max_attempts=1"]);
    assert_eq!(report["error"]["status_code"], 503, "{report}");
    site.library.with(|simulator| simulator.cancel(outage));

    let refusal = Fault::too_many_requests("0", "3000");
    let refusal = site.library.plan(refusal.always());
    let (report, _) = recover(&site, 75, &[]);
    let message = report["message"].as_str().expect("a sentence");
    assert!(message.contains("run it again after 2") && message.contains("--wait"), "{message}");
    site.library.with(|simulator| simulator.cancel(refusal));
}

/// While less than 30 % is left it waits for the reset instead of spending the rest on finding out.
#[test]
fn recover_waits_for_the_reset_when_too_little_is_left() {
    let site = Site::loaded();
    let limit = RateLimit { calls: 40, seconds: 5, ..RateLimit::default() };
    site.library.with(|simulator| {
        simulator.limit_rate(Some(limit));
        assert!((0..33).all(|_| simulator.spend_as_another()));
    });
    let (report, run) = recover(&site, 0, &[]);
    assert_eq!((&report["needed"], &report["refusals"]), (&13.into(), &0.into()), "{report}\n{}", run.stderr);
    assert!(report["remaining"].as_u64().is_some_and(|left| left > 12), "{report}");
    assert!(site.library.calls().len() <= 20, "{}", site.library.calls().len());
}

/// A person's hold is not run over: `recover` says whose it is.
#[test]
fn recover_respects_a_breaker_that_a_person_opened() {
    let mut site = Site::loaded();
    site.bench.set("LOGNAME", "ann");
    site.bench.run(&["breaker", "open", "--reason", "upgrade"]).ends(0);
    let (report, _) = recover(&site, 69, &[]);
    let message = report["message"].as_str().expect("a sentence");
    assert!(
        message.contains("opened by operator ann: upgrade") && message.contains("breaker reset --yes"),
        "{message}"
    );
    assert_eq!(site.library.calls(), []);
    site.bench.run(&["breaker", "close", "--yes"]).ends(0);
    site.sync_well();
}

/// An operator's breaker ends by itself: the first run after that makes its health check and goes on.
#[test]
fn a_breaker_that_was_opened_for_a_second_ends_by_itself() {
    let site = Site::loaded();
    site.bench.run(&["breaker", "open", "--for", "1s"]).ends(0);
    assert!((0..200).any(|_| site.sync(&[]).code == Some(0)), "it is held for more than a second");
    assert!(site.library.count(Endpoint::TokenInfo) >= 1);
    site.assert_converged();
}

/// After an outage `sync` waits for the health check that is due, instead of ending because it came a moment too early;
/// if that fails it ends with 69.
#[test]
fn sync_waits_for_one_health_check() {
    let site = Site::loaded();
    let slow = ["--set", "breaker.open_for=2s", "--set", "breaker.open_cap=2s", "--set", "breaker.failure_threshold=3"];
    let outage = site.library.plan(Fault::Html { status: 503 }.always());
    site.sync(&slow).ends(69);
    site.library.clear_journal();
    let run = site.sync(&slow).ends(69);
    assert_eq!(site.library.calls().len(), 1, "one health check, then it gave up: {run:?}");
    let message = run.summary()["streams"]["bibs"]["error"]["message"].as_str().expect("a sentence").to_owned();
    assert!(message.contains("the breaker is open: "), "{message}");
    site.library.with(|simulator| simulator.cancel(outage));
    site.sync(&slow).ends(0);
}

/// A suspended endpoint comes back with the first run after it is well, although the run's other streams need only a
/// moment: its first call waits for its own health check.
#[test]
fn sync_waits_for_the_check_of_a_suspended_endpoint() {
    let site = Site::loaded();
    let slow = ["--set", "breaker.open_for=2s", "--set", "breaker.open_cap=2s", "--set", "breaker.failure_threshold=3"];
    let fault = site.library.plan(Fault::Html { status: 503 }.at(Endpoint::Bibs));
    // Items must answer between the first failure of bibs and the third, or everything is halted.
    let is_suspended = (0..30).any(|_| {
        site.sync(&slow);
        let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
        let suspended = status["breaker"]["suspended_endpoints"] == serde_json::json!(["bibs"]);
        if !suspended {
            site.bench.run(&["breaker", "reset", "--yes"]).ends(0);
        }
        suspended
    });
    assert!(is_suspended);
    site.library.with(|simulator| simulator.cancel(fault));
    site.sync(&slow).ends(0);
    site.assert_converged();
}

/// A process that holds the state is told through its socket: what is said takes hold there, at once, and is kept.
#[test]
fn a_running_process_is_told_through_its_socket() {
    let mut site = Site::loaded();
    site.bench.set("USER", "ann");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let base_url = format!("sierra.base_url=http://{address}/iii/sierra-api/v6");
    let mut arguments = vec!["sync", "--json", "--set", &base_url, "--set", "sierra.request_timeout=3s"];
    arguments.extend(["--set", "retry.max_attempts=2", "--set", "retry.base=1ms"]);
    let holder = site.bench.start(&arguments);
    let asked = silent.accept();
    let open = ["breaker", "open", "--reason", "upgrade", "--for", "1h", "--json"];
    assert_eq!(site.bench.run(&open).ends(0).json_lines()[0]["breaker"]["state"], "open");
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!(status["breaker"]["reason"], "opened by operator ann: upgrade");
    let (report, _) = recover(&site, 69, &[]);
    assert!(report["message"].as_str().is_some_and(|message| message.contains("breaker reset --yes")), "{report}");
    let told = site.bench.run(&["breaker", "history", "--json"]).ends(0).json_lines();
    assert_eq!(told.iter().map(|line| &line["command"]).collect::<Vec<_>>(), ["breaker open", "recover"]);
    let ended = holder.ended().ends(69);
    assert!(asked.is_ok());
    let message = ended.summary()["streams"]["bibs"]["error"]["message"].as_str().expect("a sentence").to_owned();
    assert!(message.contains("opened by operator ann: upgrade (until 2"), "{message}");
    site.sync(&[]).ends(69);
}

/// A process that holds the state and does not answer is named, and nothing is changed.
#[test]
fn a_state_whose_holder_does_not_answer_is_left_alone() {
    let site = Site::loaded();
    let _lock = StateLock::acquire(&site.bench.path("state")).expect("nobody holds it");
    let pid = format!("(pid {})", std::process::id());
    // Each waits a while for an answer, all at once here.
    let commands = [&["recover"][..], &["breaker", "open"], &["breaker", "reset", "--yes"], &["breaker", "history"]];
    for command in commands.map(|command| site.bench.start(command)) {
        command.ended().ends(75).complains(&pid);
    }
}
