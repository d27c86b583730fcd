//! Whole calls through the line, against a stand-in server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sierra_sync::resilience::breaker::BreakerState;
use sierra_sync::resilience::endpoint::Endpoint;
use sierra_sync::resilience::quota::{Patience, QuotaSnapshot};
use sierra_sync::resilience::retry::{
    Answer, Attempt, Budget, Call, CallContext, Ended, Ending, ParkReason, RetryEventKind,
};
use sierra_sync::resilience::settings::{QuotaSettings, RetrySettings};
use tokio::time::{Instant, sleep, timeout};

use super::scripted::{Bench, Reply, Scripted, context};

const SECOND: Duration = Duration::from_secs(1);

fn quota(bench: &Bench) -> QuotaSnapshot {
    bench.quota().snapshot(jiff::Timestamp::UNIX_EPOCH)
}

/// A15: 429 with nothing left and a reset of zero, 429, 200: the third call succeeds.
#[tokio::test(start_paused = true)]
async fn a_throttle_without_a_wait_succeeds_on_the_third_call() {
    let bench = Bench::seeded(1);
    let mut call = Scripted::new(|send| match send {
        1 => Reply::status(429).header("x-ratelimit-remaining", 0).header("x-ratelimit-reset", 0),
        2 => Reply::status(429),
        _ => Reply::status(200),
    });
    let success = bench.call(Endpoint::Bibs, &mut call).await.expect("the third call succeeds");
    assert_eq!((success.tally.sends, success.tally.attempts), (3, 2));
    let steps = bench.recorder.steps();
    let kinds: Vec<_> = steps.iter().map(|step| step.kind.name()).collect();
    assert_eq!(kinds, ["retry_scheduled", "retry_scheduled", "retry_succeeded"]);
    assert_eq!(quota(&bench).refused, 2);
    assert_eq!(bench.line.breaker().state(), BreakerState::Closed);
}

/// A13, C9: every step carries the masked facts of its attempt, and what is logged as delay is what was slept.
#[tokio::test(start_paused = true)]
async fn the_logged_delay_is_the_slept_delay() {
    for seed in 0..50 {
        let bench = Bench::seeded(seed);
        let mut sent_at = Vec::new();
        let mut call = Scripted::new(|send| {
            sent_at.push(Instant::now());
            match send {
                1 => Reply::status(503).header("x-ratelimit-remaining", 70),
                2 => Reply::status(503).header("retry-after", 7),
                3 => Reply::status(429).header("retry-after", 11),
                _ => Reply::status(200),
            }
        });
        bench.call(Endpoint::Bibs, &mut call).await.expect("the fourth call succeeds");
        let steps = bench.recorder.steps();
        for (step, pair) in steps.iter().zip(sent_at.windows(2)) {
            let slept = pair[1] - pair[0];
            // Our own pace of ten calls a second may hold the next attempt back for a moment longer.
            assert!(slept == step.delay || slept == Duration::from_millis(100), "{step:?}, slept {slept:?}");
        }
        let facts: Vec<_> =
            steps.iter().map(|s| (s.kind.name(), s.status_code, s.attempt, s.honored_retry_after)).collect();
        let expected = [
            ("retry_scheduled", Some(503), 1, false),
            ("retry_scheduled", Some(503), 2, true),
            ("retry_waiting_for_quota", Some(429), 3, false),
            ("retry_succeeded", Some(200), 4, false),
        ];
        assert_eq!(facts, expected);
        assert_eq!(steps[0].computed_jitter, Some(steps[0].delay));
        assert_eq!(steps[0].rate_limit_remaining, Some(70));
        assert!(steps[3].elapsed >= 18 * SECOND);
        assert!(steps.iter().all(|step| step.correlation_id == "call-7"));
    }
}

/// A13: a retry storm is found by `status_code == 429 and attempt > 3`: throttled attempts count.
#[tokio::test(start_paused = true)]
async fn throttled_attempts_are_counted_in_the_log() {
    let bench = Bench::seeded(2);
    let mut call = Scripted::new(|send| Reply::status(429).header("retry-after", if send == 5 { 500 } else { 2 }));
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("refused for ever");
    let Ending::Parked { reason: ParkReason::Throttled, resume_at } = ended.ending else { panic!("{ended:?}") };
    assert!(resume_at - Instant::now() >= 500 * SECOND, "not before the gate opens");
    assert_eq!((ended.status, ended.tally.sends, ended.tally.attempts), (Some(429), 5, 0));
    let storm = bench.recorder.steps().into_iter().filter(|step| step.status_code == Some(429) && step.attempt > 3);
    assert_eq!(storm.count(), 2);
}

/// A8, BR-097, BR-100: one renewal after a 401, no attempt charged, no wait; the second 401 ends the call.
#[tokio::test(start_paused = true)]
async fn a_401_renews_the_token_once() {
    let bench = Bench::seeded(3);
    let mut call = Scripted::new(|send| Reply::status(if send == 1 { 401 } else { 200 }));
    let started = Instant::now();
    let success = bench.call(Endpoint::Bibs, &mut call).await.expect("the repeat succeeds");
    assert_eq!((call.renewals, success.tally.sends, success.tally.attempts), (1, 2, 0));
    assert!(started.elapsed() <= Duration::from_millis(100), "no backoff, only our pace");

    let mut call = Scripted::new(|_| Reply::status(401));
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("refused for good");
    assert!(matches!(ended.ending, Ending::Permanent { .. }));
    assert_eq!((call.renewals, call.sends), (1, 2));

    let mut call = Scripted::new(|_| Reply::status(401));
    bench.call(Endpoint::Token, &mut call).await.expect_err("a new token cannot help the token call");
    assert_eq!((call.renewals, call.sends), (0, 1));
}

/// BR-097: a token that dies during a wait for quota is replaced before the next attempt, not by it.
#[tokio::test(start_paused = true)]
async fn what_was_prepared_is_checked_again_after_a_wait() {
    struct Mortal {
        prepared_at: Option<Instant>,
        preparations: u32,
        sends: u32,
    }
    impl Call for Mortal {
        type Value = ();
        type Error = String;

        async fn prepare(&mut self, _renew: bool) -> Result<(), Box<Ended<String>>> {
            if !self.is_prepared() {
                self.preparations += 1;
                self.prepared_at = Some(Instant::now());
            }
            Ok(())
        }

        fn is_prepared(&self) -> bool {
            self.prepared_at.is_some_and(|at| at.elapsed() < 5 * SECOND)
        }

        async fn send(&mut self, _attempt: Attempt) -> Answer<(), String> {
            assert!(self.is_prepared(), "never sent with a dead token");
            self.sends += 1;
            let reply = match self.sends {
                1 => Reply::status(429).header("retry-after", 30),
                _ => Reply::status(200),
            };
            let answer = reply.into_answer();
            Answer { status: answer.status, facts: answer.facts, result: answer.result.map(|_| ()) }
        }

        fn overdue(&mut self, _attempt: Attempt) -> String {
            "overdue".into()
        }
    }
    let bench = Bench::seeded(4);
    let mut call = Mortal { prepared_at: None, preparations: 0, sends: 0 };
    bench.line.call(&context(Endpoint::Bibs), &mut call, bench.recorder.as_ref()).await.expect("served");
    assert_eq!((call.preparations, call.sends), (2, 2), "exactly one token more");

    // Now the wait lies between the preparation and the attempt: the gate was closed by somebody else.
    let mut other = Scripted::new(|_| Reply::status(429).header("retry-after", 70));
    bench.call(Endpoint::Items, &mut other).await.expect_err("too long to be sat out");
    sleep(30 * SECOND).await;
    let mut call = Mortal { prepared_at: None, preparations: 0, sends: 1 };
    bench.line.call(&context(Endpoint::Bibs), &mut call, bench.recorder.as_ref()).await.expect("served");
    assert_eq!((call.preparations, call.sends), (2, 2), "exactly one token more");
}

/// BR-044, BR-135: Sierra's own refusal pauses that endpoint for the stated minutes, under whatever status; breaker and
/// attempts are untouched, other endpoints go on, and the call is parked until then.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_one_endpoint_parks_the_call_and_leaves_the_rest_alone() {
    for status in [429, 500, 503] {
        let bench = Bench::seeded(5);
        let body =
            r#"{"code":999,"httpStatus":500,"name":"Rate exceeded for endpoint","description":"wait 12 minutes"}"#;
        let mut call = Scripted::new(|_| Reply::status(status).body(body));
        let started = Instant::now();
        let ended = bench.call(Endpoint::BibsMarc, &mut call).await.expect_err("refused");
        let Ending::Parked { reason: ParkReason::Quota, resume_at } = ended.ending else { panic!("{ended:?}") };
        assert!(resume_at - started >= 720 * SECOND && resume_at - started <= 723 * SECOND);
        assert_eq!((ended.tally.sends, ended.tally.attempts), (1, 0));
        assert_eq!(started.elapsed(), Duration::ZERO, "no worker sleeps");

        let ended = bench.call(Endpoint::BibsMarc, &mut call).await.expect_err("still refused");
        assert_eq!((ended.tally.sends, ended.status), (0, None), "not even sent");
        for endpoint in [Endpoint::Bibs, Endpoint::Items] {
            let mut other = Scripted::new(|_| Reply::status(200));
            bench.call(endpoint, &mut other).await.expect("other endpoints go on");
        }
        assert!(bench.recorder.transitions().is_empty());
        tokio::time::sleep_until(resume_at).await;
        let mut again = Scripted::new(|_| Reply::status(200));
        bench.call(Endpoint::BibsMarc, &mut again).await.expect("served after the stated time");
    }
}

/// BR-101: waits for quota up to a minute are sat out and charged to neither budget; longer ones are parked.
#[tokio::test(start_paused = true)]
async fn short_waits_for_quota_are_sat_out_and_long_ones_parked() {
    let bench = Bench::with(
        6,
        RetrySettings { total_budget: 10 * SECOND, ..RetrySettings::default() },
        QuotaSettings::default(),
    );
    let mut call = Scripted::new(|send| match send {
        1 => Reply::status(429).header("retry-after", 55),
        2 => Reply::status(503),
        _ => Reply::status(200),
    });
    let success = bench.call(Endpoint::Bibs, &mut call).await.expect("the wait is not charged to the budget of 10 s");
    assert!(success.tally.quota_waited >= 55 * SECOND && success.tally.attempts == 1);
    let slow = QuotaSettings { rate: 0.1, ..QuotaSettings::default() };
    let paced = Bench::with(6, RetrySettings::default(), slow);
    for _ in 0..3 {
        let success = paced.call(Endpoint::Bibs, &mut Scripted::new(|_| Reply::status(200))).await.expect("served");
        assert_eq!(success.tally.quota_waited, Duration::ZERO, "our own pace is no wait for quota");
    }
    assert!(quota(&bench).waited >= 55 * SECOND);

    let mut call = Scripted::new(|_| Reply::status(429).header("retry-after", 61));
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("too long for a worker");
    assert!(matches!(ended.ending, Ending::Parked { reason: ParkReason::Quota, .. }));

    let bench = Bench::seeded(7);
    let mut call = Scripted::new(|_| Reply::status(429).header("retry-after", 50));
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("two minutes in all are enough");
    assert_eq!(ended.tally.sends, 3);

    let patient = CallContext { patience: Patience::endless(), ..context(Endpoint::Bibs) };
    let bench = Bench::seeded(8);
    let mut call = Scripted::new(|send| match send {
        1 => Reply::status(429).header("retry-after", 900),
        _ => Reply::status(200),
    });
    bench.line.call(&patient, &mut call, bench.recorder.as_ref()).await.expect("asked to wait, it waits");
}

/// B8, B9: a call that meets an open breaker ends as such and charges nothing.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_ends_the_call_and_charges_nothing() {
    let bench = Bench::seeded(9);
    bench.line.breaker().hold(None, "test", None);
    let mut call = Scripted::new(|_| Reply::status(200));
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("held open");
    assert!(matches!(ended.ending, Ending::CircuitOpen { .. }));
    assert_eq!((ended.tally.sends, ended.tally.attempts, call.sends), (0, 0, 0));

    bench.line.breaker().reset();
    let breaker = bench.line.breaker().clone();
    let mut call = Scripted::new(|_| {
        breaker.hold(None, "opens while the call is out", None);
        Reply::status(503)
    });
    let started = Instant::now();
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("opened meanwhile");
    assert!(matches!(ended.ending, Ending::CircuitOpen { .. }));
    assert_eq!((ended.status, started.elapsed()), (Some(503), Duration::ZERO), "it does not back off first");
}

/// B6, B9: one storm trips the breaker once for all work in flight; the call that is backing off ends at once with its
/// last status.
#[tokio::test(start_paused = true)]
async fn a_storm_trips_the_breaker_once_for_everybody() {
    let bench = Arc::new(Bench::seeded(10));
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..6 {
        let bench = bench.clone();
        tasks.spawn(async move {
            let endpoint = [Endpoint::Bibs, Endpoint::Items, Endpoint::Patrons][worker % 3];
            let mut call = Scripted::new(|_| Reply::status(503).after(Duration::from_millis(80)));
            (bench.call(endpoint, &mut call).await.expect_err("an outage"), call.sends)
        });
    }
    let ended = tasks.join_all().await;
    assert_eq!(bench.recorder.transitions().len(), 1, "{:?}", bench.recorder.transitions());
    let sends: u32 = ended.iter().map(|(_, sends)| sends).sum();
    assert!((10..=16).contains(&sends), "{sends}");
    for (ended, _) in &ended {
        assert!(matches!(ended.ending, Ending::CircuitOpen { .. } | Ending::BudgetExhausted { .. }), "{ended:?}");
        assert_eq!(ended.status, Some(503));
    }
}

/// D1, D2: a body that forbids the retry ends the call after that attempt, and says nothing against the other side.
#[tokio::test(start_paused = true)]
async fn a_declared_error_makes_exactly_one_attempt() {
    let bench = Bench::seeded(11);
    for _ in 0..20 {
        let mut call = Scripted::new(|_| Reply::status(503).body(r#"{"code":5,"retryable":false}"#));
        let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("declared final");
        assert_eq!((call.sends, ended.error.as_deref()), (1, Some("status 503")));
    }
    assert!(bench.recorder.transitions().is_empty(), "the provider is healthy (B5)");
    let mut call = Scripted::new(|_| Reply::status(400).body(r#"{"retryable":true}"#));
    bench.call(Endpoint::Bibs, &mut call).await.expect_err("a verdict never starts a retry");
    assert_eq!(call.sends, 1);
}

/// BR-029: an attempt that never ends is dropped when its time is over, and counts as no status at all.
#[tokio::test(start_paused = true)]
async fn a_hanging_attempt_is_dropped_in_time() {
    let bench = Bench::seeded(12);
    let mut call = Scripted::new(|send| Reply::status(200).after(if send == 1 { 9_999 * SECOND } else { SECOND }));
    let started = Instant::now();
    let success = bench.call(Endpoint::Bibs, &mut call).await.expect("the second attempt answers");
    assert_eq!(success.tally.sends, 2);
    assert!(started.elapsed() <= 63 * SECOND);
    let step = &bench.recorder.steps()[0];
    assert_eq!((step.kind, step.status_code), (RetryEventKind::Scheduled, None));
}

/// B2, C3, BR-029: the wall budget holds even when every attempt hangs.
#[tokio::test(start_paused = true)]
async fn hanging_attempts_end_with_the_wall_budget() {
    let bench = Bench::seeded(13);
    let mut call = Scripted::new(|_| Reply::status(200).after(9_999 * SECOND));
    let started = Instant::now();
    let ended = bench.call(Endpoint::Bibs, &mut call).await.expect_err("hangs for ever");
    assert_eq!(ended.ending, Ending::BudgetExhausted { budget: Budget::WallClock });
    assert!(started.elapsed() <= 91 * SECOND, "{:?}", started.elapsed());
}

/// Cancelling a call frees every slot it holds: endpoint, gate and breaker go on as if it had not been.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_frees_its_slots() {
    let bench = Bench::seeded(14);
    for _ in 0..20 {
        let mut call = Scripted::new(|_| Reply::status(200).after(100 * SECOND));
        let cancelled = timeout(SECOND, bench.call(Endpoint::Bibs, &mut call)).await;
        assert!(cancelled.is_err());
    }
    let mut call = Scripted::new(|_| Reply::status(200));
    timeout(SECOND, bench.call(Endpoint::Bibs, &mut call)).await.expect("no slot is lost").expect("served");
    assert!(bench.recorder.transitions().is_empty(), "neutral");
}

/// A19: never more calls at once on an endpoint than allowed, whatever happens to them.
#[tokio::test(start_paused = true)]
async fn concurrency_is_capped_for_each_endpoint() {
    let bench = Arc::new(Bench::seeded(15));
    let flying = Arc::new(std::sync::Mutex::new(BTreeMap::<&str, (u32, u32)>::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..24 {
        let (bench, flying) = (bench.clone(), flying.clone());
        tasks.spawn(async move {
            let endpoint = [Endpoint::Bibs, Endpoint::Items, Endpoint::Patrons][worker % 3];
            let mut call = Flying { endpoint, flying };
            bench.line.call(&context(endpoint), &mut call, bench.recorder.as_ref()).await.expect("served");
        });
    }
    tasks.join_all().await;
    let peaks: Vec<_> = flying.lock().expect("unpoisoned").values().map(|(_, peak)| *peak).collect();
    assert_eq!(peaks, [2, 2, 2]);

    struct Flying {
        endpoint: Endpoint,
        flying: Arc<std::sync::Mutex<BTreeMap<&'static str, (u32, u32)>>>,
    }
    impl Call for Flying {
        type Value = ();
        type Error = String;

        async fn send(&mut self, _attempt: Attempt) -> Answer<(), String> {
            let change = |by: i64| {
                let mut flying = self.flying.lock().expect("unpoisoned");
                let (now, peak) = flying.entry(self.endpoint.name()).or_default();
                *now = now.checked_add_signed(by as i32).expect("never below zero");
                *peak = (*peak).max(*now);
            };
            change(1);
            sleep(SECOND).await;
            change(-1);
            Answer { status: Some(200), facts: Default::default(), result: Ok(()) }
        }

        fn overdue(&mut self, _attempt: Attempt) -> String {
            "overdue".into()
        }
    }
}

/// A18: after `recover` calls go one at a time and wait from a base of two seconds, until a hundred answers show that the
/// quota holds.
#[tokio::test(start_paused = true)]
async fn recovery_from_a_stall_is_slow_until_the_quota_holds() {
    let bench = Bench::seeded(16);
    let mut storm = Scripted::new(|_| Reply::status(429).header("retry-after", 600));
    bench.call(Endpoint::Bibs, &mut storm).await.expect_err("refused");
    bench.line.recover();
    assert!(bench.line.is_recovering());
    for _ in 0..100 {
        let mut call = Scripted::new(|_| {
            Reply::status(200).header("x-ratelimit-limit", 1000).header("x-ratelimit-remaining", 800)
        });
        bench.call(Endpoint::Bibs, &mut call).await.expect("the old gate is forgotten");
    }
    assert!(!bench.line.is_recovering());
}

/// A18: a process that ends before the quota holds leaves the next one as careful: one worker, waits from two seconds.
#[tokio::test(start_paused = true)]
async fn a_recovery_that_is_not_over_survives_a_restart() {
    let date: jiff::Timestamp = "2026-01-05T10:00:00Z".parse().expect("a date");
    let first = Bench::seeded(17);
    first.line.recover();
    let kept = serde_json::to_string(&first.quota().snapshot(date)).expect("plain data");
    let kept: QuotaSnapshot = serde_json::from_str(&kept).expect("and back");
    let bench = Bench::restored(18, &kept, date);
    assert!(bench.line.is_recovering());
    let mut call = Scripted::new(|send| Reply::status(if send < 5 { 503 } else { 200 }));
    bench.call(Endpoint::Bibs, &mut call).await.expect("the fifth is served");
    let drawn: Vec<_> = bench.recorder.steps().iter().filter_map(|step| step.computed_jitter).collect();
    assert!(
        drawn.len() == 4 && drawn.iter().zip([2, 4, 8, 16]).all(|(wait, most)| *wait <= SECOND * most),
        "{drawn:?}"
    );

    let old = serde_json::to_string(&Bench::seeded(19).quota().snapshot(date)).expect("plain data");
    let old: QuotaSnapshot = serde_json::from_str(&old.replace(",\"cautious\":false", "")).expect("an older form");
    assert!(!Bench::restored(20, &old, date).line.is_recovering());
}

/// Draining waits for what is under way, however it ends, and for nothing else.
#[tokio::test(start_paused = true)]
async fn draining_waits_for_what_is_under_way() {
    let bench = Arc::new(Bench::seeded(21));
    timeout(SECOND, bench.quota().drained()).await.expect("nothing is under way");
    let mut tasks = tokio::task::JoinSet::new();
    for (endpoint, seconds) in [(Endpoint::Bibs, 20), (Endpoint::Items, 7)] {
        let bench = bench.clone();
        tasks.spawn(async move {
            let mut call = Scripted::new(|_| Reply::status(200).after(SECOND * seconds));
            drop(timeout(SECOND * 15, bench.call(endpoint, &mut call)).await);
        });
    }
    sleep(SECOND).await;
    let started = Instant::now();
    bench.quota().drained().await;
    assert_eq!(started.elapsed().as_secs(), 14, "one was answered, the other given up");
}
