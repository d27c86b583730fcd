//! Health checks as they are driven: they wait for quota, are leased, and free their slot whatever becomes of them.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sierra_sync::resilience::breaker::{BreakerState, ProbeTarget};
use sierra_sync::resilience::endpoint::Endpoint;
use sierra_sync::resilience::health::{HealthCheck, ProbePass, mark_of, run_health_checks};
use sierra_sync::resilience::quota::{Class, Patience, Quoted, Waiter};
use sierra_sync::resilience::rate_headers::RateFacts;
use sierra_sync::resilience::span::Span;
use sierra_sync::resilience::taxonomy::Mark;
use tokio::time::{Instant, sleep, timeout};

use super::scripted::{Bench, Reply, Scripted};

const SECOND: Duration = Duration::from_secs(1);

/// Answers health checks from a script; when it has run out, well. `None` hangs.
struct Script {
    replies: VecDeque<Option<Reply>>,
    asked_at: Arc<Mutex<Vec<Instant>>>,
}

impl HealthCheck for Script {
    async fn check(&mut self, _target: ProbeTarget, pass: &ProbePass<'_>) -> Mark {
        let reply = self.replies.pop_front().unwrap_or(Some(Reply::status(200)));
        self.asked_at.lock().expect("unpoisoned").push(Instant::now());
        let attempt = async {
            match reply {
                Some(reply) => reply.into_answer(),
                None => pending().await,
            }
        };
        pass.send(Endpoint::TokenInfo, attempt).await.map_or(Mark::Neutral, |answer| mark_of(&answer))
    }
}

/// Trips the breaker, runs the script until the circuit closes, and returns when each check was asked, since the trip.
async fn run(bench: &Bench, replies: Vec<Option<Reply>>) -> Vec<Duration> {
    let mut call = Scripted::new(|_| Reply::status(503));
    while bench.line.breaker().state() == BreakerState::Closed {
        bench.call(Endpoint::Bibs, &mut call).await.expect_err("an outage");
    }
    let tripped = Instant::now();
    let asked_at = Arc::new(Mutex::new(Vec::new()));
    let mut script = Script { replies: replies.into(), asked_at: asked_at.clone() };
    let closes = async {
        while bench.line.breaker().state() != BreakerState::Closed {
            bench.line.breaker().changed().await;
        }
    };
    tokio::select! {
        () = closes => {}
        _ = run_health_checks(&bench.line, &mut script) => {}
        () = sleep(3_600 * SECOND) => panic!("still open after an hour"),
    }
    asked_at.lock().expect("unpoisoned").iter().map(|at| *at - tripped).collect()
}

/// B7, BR-110: an answer that shows the other side working closes the circuit, whatever it thinks of the request.
#[tokio::test(start_paused = true)]
async fn a_404_or_a_400_is_a_sign_of_health() {
    for status in [200, 400, 403, 404] {
        let bench = Bench::seeded(51);
        assert_eq!(run(&bench, vec![Some(Reply::status(status))]).await.len(), 1, "{status}");
    }
}

/// BR-109, BR-110: a check that hangs is dropped within its lease, and the next follows.
#[tokio::test(start_paused = true)]
async fn a_hanging_health_check_is_dropped_and_repeated() {
    let bench = Bench::seeded(52);
    let asked = run(&bench, vec![None, Some(Reply::status(502))]).await;
    assert_eq!(asked.len(), 3);
    assert!(asked[1] - asked[0] >= 48 * SECOND && asked[1] - asked[0] <= 71 * SECOND, "{asked:?}");
}

/// A 429 to a health check is neutral: it waits for the gate, the open time does not grow, nothing escalates.
#[tokio::test(start_paused = true)]
async fn a_health_check_waits_for_quota_without_growing_the_open_time() {
    let bench = Bench::seeded(53);
    let replies = vec![Some(Reply::status(429).header("retry-after", 300)), Some(Reply::status(503))];
    let asked = run(&bench, replies).await;
    assert_eq!(asked.len(), 3);
    assert!(asked[1] - asked[0] >= 300 * SECOND && asked[1] - asked[0] <= 303 * SECOND, "{asked:?}");
    assert!(asked[2] - asked[1] <= 60 * SECOND, "{asked:?}");
    let names: Vec<_> = bench.recorder.transitions().iter().map(|event| event.name()).collect();
    assert_eq!(names, ["breaker_opened", "breaker_reopened", "breaker_closed"]);
}

/// While the key's gate is closed a due check is not even leased.
#[tokio::test(start_paused = true)]
async fn a_closed_gate_holds_the_health_check_back() {
    let bench = Bench::seeded(54);
    let quota = bench.quota();
    let mut waiter = Waiter::new(Endpoint::Items, Class::Incremental);
    let permit = quota.acquire(&mut waiter, &mut Patience::endless()).await.expect("endless");
    let mut call = Scripted::new(|_| Reply::status(503));
    while bench.line.breaker().state() == BreakerState::Closed {
        bench.call(Endpoint::Bibs, &mut call).await.expect_err("an outage");
    }
    let asked = RateFacts { retry_after: Some(Span::whole_seconds(900)), ..RateFacts::default() };
    permit.answered(&asked, Quoted::Throttled);
    let mut script = Script { replies: VecDeque::new(), asked_at: Arc::default() };
    let checks = run_health_checks(&bench.line, &mut script);
    assert!(timeout(890 * SECOND, checks).await.is_err());
    assert!(script.asked_at.lock().expect("unpoisoned").is_empty());
    assert_eq!(bench.line.breaker().state(), BreakerState::Open, "open, not half-open");
}

/// BR-110: a driver that is cancelled in the middle of a check frees the slot for the next one.
#[tokio::test(start_paused = true)]
async fn a_cancelled_health_check_frees_its_slot() {
    let bench = Bench::seeded(55);
    let mut call = Scripted::new(|_| Reply::status(503));
    while bench.line.breaker().state() == BreakerState::Closed {
        bench.call(Endpoint::Bibs, &mut call).await.expect_err("an outage");
    }
    let mut hanging = Script { replies: vec![None].into(), asked_at: Arc::default() };
    assert!(timeout(35 * SECOND, run_health_checks(&bench.line, &mut hanging)).await.is_err());
    assert_eq!(bench.line.breaker().state(), BreakerState::Open);
    let asked = run(&bench, Vec::new()).await;
    assert!(asked.len() == 1 && asked[0] <= 6 * SECOND, "{asked:?}");
}

/// `sync` waits for one check and ends if that fails.
#[tokio::test(start_paused = true)]
async fn the_outcome_of_the_next_health_check_can_be_awaited() {
    for (status, expected) in [(503, BreakerState::Open), (200, BreakerState::Closed)] {
        let bench = Bench::seeded(56);
        assert_eq!(bench.line.breaker().decided().await, BreakerState::Closed, "calls pass already");
        let mut call = Scripted::new(|_| Reply::status(503));
        while bench.line.breaker().state() == BreakerState::Closed {
            bench.call(Endpoint::Bibs, &mut call).await.expect_err("an outage");
        }
        let mut script = Script { replies: vec![Some(Reply::status(status))].into(), asked_at: Arc::default() };
        let decided = async {
            tokio::select! {
                state = bench.line.breaker().decided() => state,
                _ = run_health_checks(&bench.line, &mut script) => unreachable!("runs for ever"),
            }
        };
        assert_eq!(timeout(31 * SECOND, decided).await.expect("one open time"), expected);
    }
}
