//! Outages: how much we send into them, and how soon we are back.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sierra_sync::resilience::breaker::{BreakerEvent, ProbeTarget, Scope};
use sierra_sync::resilience::endpoint::{Endpoint, PerEndpoint};
use sierra_sync::resilience::health::{HealthCheck, ProbePass, mark_of, run_health_checks};
use sierra_sync::resilience::retry::{Answer, Attempt, Call};
use sierra_sync::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings};
use sierra_sync::resilience::taxonomy::Mark;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::scripted::{Bench, Reply, context};

const SECOND: Duration = Duration::from_secs(1);

/// How an endpoint that is down behaves.
#[derive(Debug, Clone, Copy)]
enum Down {
    Answers(u16),
    Hangs,
}

/// A Sierra that is down for a while, in whole or in part.
struct World {
    down: Down,
    from: Instant,
    until: Instant,
    is_affected: fn(Endpoint) -> bool,
    /// Requests of any kind that reached it while it was down.
    into_the_outage: AtomicU32,
    /// When a list call was served for the first time after the outage.
    back: Mutex<Option<Instant>>,
}

impl World {
    async fn request(&self, endpoint: Endpoint) -> Reply {
        sleep(Duration::from_millis(50)).await;
        let now = Instant::now();
        let is_down = now >= self.from && now < self.until;
        self.into_the_outage.fetch_add(u32::from(is_down), Ordering::Relaxed);
        if is_down && (self.is_affected)(endpoint) {
            return match self.down {
                Down::Answers(status) => Reply::status(status),
                Down::Hangs => pending().await,
            };
        }
        if now >= self.until && endpoint.is_list() && (self.is_affected)(endpoint) {
            self.back.lock().expect("unpoisoned").get_or_insert(now);
        }
        Reply::status(200)
    }
}

struct ListCall {
    world: Arc<World>,
    endpoint: Endpoint,
}

impl Call for ListCall {
    type Value = u16;
    type Error = String;

    async fn send(&mut self, _attempt: Attempt) -> Answer<u16, String> {
        self.world.request(self.endpoint).await.into_answer()
    }

    fn overdue(&mut self, attempt: Attempt) -> String {
        format!("no answer within {:?}", attempt.timeout)
    }
}

/// Asks `/info/token` after a token call, or the one endpoint.
struct Check {
    world: Arc<World>,
}

impl HealthCheck for Check {
    async fn check(&mut self, target: ProbeTarget, pass: &ProbePass<'_>) -> Mark {
        let endpoints: &[Endpoint] = match target {
            ProbeTarget::Health => &[Endpoint::Token, Endpoint::TokenInfo],
            ProbeTarget::Endpoint(ref endpoint) => std::slice::from_ref(endpoint),
        };
        for endpoint in endpoints {
            let attempt = async { self.world.request(*endpoint).await.into_answer() };
            match pass.send(*endpoint, attempt).await {
                None => return Mark::Neutral,
                Some(answer) if mark_of(&answer) == Mark::Healthy => {}
                Some(answer) => return mark_of(&answer),
            }
        }
        Mark::Healthy
    }
}

fn bench(seed: u64) -> Bench {
    bench_with(seed, BreakerSettings::default())
}

fn bench_with(seed: u64, breaker: BreakerSettings) -> Bench {
    let quota = QuotaSettings { rate: 100.0, concurrency: PerEndpoint::from_fn(|_| 4), ..QuotaSettings::default() };
    Bench::with_breaker(seed, RetrySettings::default(), quota, breaker)
}

/// Calls at a steady rate, alternating between bibs and items, through ten minutes of outage.
async fn ten_minutes_down(down: Down, calls_per_second: f64, is_affected: fn(Endpoint) -> bool) -> (u32, Duration) {
    ten_minutes_down_with(BreakerSettings::default(), down, calls_per_second, is_affected).await
}

async fn ten_minutes_down_with(
    breaker: BreakerSettings,
    down: Down,
    calls_per_second: f64,
    is_affected: fn(Endpoint) -> bool,
) -> (u32, Duration) {
    let bench = Arc::new(bench_with(31, breaker));
    let start = Instant::now();
    let (from, until) = (start + 60 * SECOND, start + 660 * SECOND);
    let (into_the_outage, back) = (AtomicU32::new(0), Mutex::new(None));
    let world = Arc::new(World { down, from, until, is_affected, into_the_outage, back });
    let mut tasks = JoinSet::new();
    let (line, mut check) = (bench.line.clone(), Check { world: world.clone() });
    tasks.spawn(async move {
        run_health_checks(&line, &mut check).await;
    });
    let mut number = 0_u32;
    while Instant::now() < until + 400 * SECOND && world.back.lock().expect("unpoisoned").is_none() {
        let endpoint = if number.is_multiple_of(2) { Endpoint::Bibs } else { Endpoint::Items };
        let (bench, world) = (bench.clone(), world.clone());
        tasks.spawn(async move {
            let mut call = ListCall { world, endpoint };
            // How it ends is not the point here.
            drop(bench.line.call(&context(endpoint), &mut call, bench.recorder.as_ref()).await);
        });
        number += 1;
        sleep(Duration::from_secs_f64(1.0 / calls_per_second)).await;
    }
    tasks.shutdown().await;
    let back = world.back.lock().expect("unpoisoned").expect("back some time");
    (world.into_the_outage.load(Ordering::Relaxed), back - until)
}

/// At most 30 requests of any kind go into ten minutes of outage, and calls are served again within 75 s of its end.
#[tokio::test(start_paused = true)]
async fn ten_minutes_of_outage_see_few_requests_and_end_soon() {
    for down in [Down::Answers(503), Down::Answers(500), Down::Hangs] {
        // The highest rate once: it takes the longest to simulate, and an open breaker does not tell rates apart.
        let rates: &[f64] = if matches!(down, Down::Answers(503)) { &[0.2, 1.0, 5.0, 20.0] } else { &[0.2, 5.0] };
        for calls_per_second in rates.iter().copied() {
            let (requests, back) = ten_minutes_down(down, calls_per_second, |_| true).await;
            println!("{down:?} at {calls_per_second}/s: {requests} requests, back after {back:?}");
            assert!(requests <= 30, "{down:?} at {calls_per_second}/s: {requests} requests");
            assert!(back <= 75 * SECOND, "{down:?} at {calls_per_second}/s: back after {back:?}");
        }
    }
}

/// What `[breaker]` trades: short open times cost requests, long ones cost time after the outage (docs/tuning.md).
#[tokio::test(start_paused = true)]
async fn open_times_trade_requests_for_delay() {
    let mut before = u32::MAX;
    for (open_for, open_cap, threshold) in [(5, 10, 10), (30, 60, 10), (120, 300, 10), (30, 60, 5), (30, 60, 30)] {
        let settings =
            BreakerSettings { failure_threshold: threshold, open_for: open_for * SECOND, open_cap: open_cap * SECOND };
        let (requests, back) = ten_minutes_down_with(settings, Down::Answers(503), 1.0, |_| true).await;
        println!("open {open_for} s to {open_cap} s, threshold {threshold}: {requests} requests, back after {back:?}");
        assert!(back <= (open_cap + 15) * SECOND, "{back:?}");
        if threshold == 10 {
            assert!(requests < before, "{requests} after {before}");
            before = requests;
        }
    }
}

/// The same when `/info/token` works and only the lists fail: the health check that passes must not cost a call of its
/// own in every window.
#[tokio::test(start_paused = true)]
async fn lists_that_fail_behind_a_working_token_see_few_requests() {
    for calls_per_second in [0.2, 1.0, 5.0] {
        let (requests, back) = ten_minutes_down(Down::Answers(500), calls_per_second, Endpoint::is_list).await;
        println!("lists only, at {calls_per_second}/s: {requests} requests, back after {back:?}");
        assert!(requests <= 30, "at {calls_per_second}/s: {requests} requests");
        assert!(back <= 75 * SECOND, "at {calls_per_second}/s: back after {back:?}");
    }
}

/// The night in which /bibs fails for four hours and items work: items never stop, one alert, one recovery notice.
#[tokio::test(start_paused = true)]
async fn the_night_in_which_bibs_fail_leaves_items_alone() {
    for offset in [0, 20, 150] {
        let bench = Arc::new(bench(32));
        let start = Instant::now();
        let (from, until) = (start + 1_800 * SECOND, start + (1_800 + 4 * 3_600) * SECOND);
        let is_affected = |endpoint| endpoint == Endpoint::Bibs;
        let (into_the_outage, back) = (AtomicU32::new(0), Mutex::new(None));
        let world = Arc::new(World { down: Down::Answers(500), from, until, is_affected, into_the_outage, back });
        let mut tasks = JoinSet::new();
        let (line, mut check) = (bench.line.clone(), Check { world: world.clone() });
        tasks.spawn(async move {
            run_health_checks(&line, &mut check).await;
        });
        let stopped = Arc::new(AtomicU32::new(0));
        for (endpoint, offset) in [(Endpoint::Bibs, 0), (Endpoint::Items, offset)] {
            let (bench, world, stopped) = (bench.clone(), world.clone(), stopped.clone());
            tasks.spawn(async move {
                for poll in 0..72_u32 {
                    sleep_until(start + (poll * 300 + offset) * SECOND).await;
                    for _ in 0..3 {
                        let mut call = ListCall { world: world.clone(), endpoint };
                        let outcome = bench.line.call(&context(endpoint), &mut call, bench.recorder.as_ref()).await;
                        if outcome.is_err() {
                            stopped.fetch_add(u32::from(endpoint == Endpoint::Items), Ordering::Relaxed);
                            break;
                        }
                    }
                }
            });
        }
        sleep_until(start + 6 * 3_600 * SECOND).await;
        tasks.shutdown().await;
        assert_eq!(stopped.load(Ordering::Relaxed), 0, "offset {offset}: items never stop");
        let transitions = bench.recorder.transitions();
        let of = |name| transitions.iter().filter(|event| event.name() == name).count();
        assert_eq!((of("breaker_opened"), of("breaker_recovered")), (1, 1), "offset {offset}: {transitions:?}");
        assert!(transitions.iter().all(|event| event.scope() == Scope::Endpoint(Endpoint::Bibs)));
        let requests = world.into_the_outage.load(Ordering::Relaxed);
        let of_items = 3 * 4 * 12;
        println!("offset {offset} s: {requests} requests into four hours, {of_items} of them for items");
        assert!(requests <= of_items + 4 * 3_600 / 48 + 12, "one a window: {requests}");
        let recovered = transitions.iter().find_map(|event| match event {
            BreakerEvent::Recovered { after, .. } => Some(*after),
            _ => None,
        });
        assert!(recovered.is_some_and(|after| after >= 4 * 3_600 * SECOND - 600 * SECOND));
    }
}
