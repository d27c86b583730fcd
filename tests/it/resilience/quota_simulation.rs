//! How much of the grant we use, and what it costs others, over ten windows of a minute.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use jiff::SignedDuration;
use rand::RngExt;
use rand::rngs::StdRng;
use sierra_sync::resilience::endpoint::Endpoint;
use sierra_sync::resilience::quota::{Class, Patience, Quota, Quoted, Waiter};
use sierra_sync::resilience::rate_headers::RateFacts;
use sierra_sync::resilience::settings::QuotaSettings;
use sierra_sync::seed::RootSeed;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use super::quota_server::{Counting, Dialect, QuotaServer};

const WINDOW: Duration = Duration::from_secs(60);
const WINDOWS: u32 = 10;
const LIMIT: u32 = 300;

type Shared<T> = Rc<RefCell<T>>;

/// What came of a run.
#[derive(Debug)]
struct Used {
    served: u32,
    refusals: u32,
    by_neighbour: u32,
}

fn settings() -> QuotaSettings {
    QuotaSettings { rate: 20.0, ..QuotaSettings::default() }
}

fn latency(rng: &mut StdRng) -> Duration {
    Duration::from_millis(rng.random_range(20..150))
}

/// Four workers that always have work, two on each of two endpoints, for ten windows.
async fn run_ours(server: &Shared<QuotaServer>, settings: QuotaSettings, class: Class) -> u32 {
    let seed = RootSeed::new(11);
    let quota = Quota::new(settings, seed.generator("quota"));
    let served = Rc::new(Cell::new(0));
    let end = Instant::now() + WINDOW * WINDOWS;
    let tasks = LocalSet::new();
    for worker in 0..4 {
        let (quota, server, served) = (quota.clone(), server.clone(), served.clone());
        let mut rng = seed.generator(&format!("worker {worker}"));
        let endpoint = if worker % 2 == 0 { Endpoint::Bibs } else { Endpoint::Items };
        tasks.spawn_local(async move {
            while Instant::now() < end {
                let mut waiter = Waiter::new(endpoint, class);
                let permit =
                    quota.acquire(&mut waiter, &mut Patience::endless()).await.expect("endless patience never parks");
                if Instant::now() >= end {
                    break;
                }
                sleep(latency(&mut rng)).await;
                let answer = server.borrow_mut().call();
                sleep(latency(&mut rng)).await;
                served.set(served.get() + u32::from(answer.served));
                let quoted = if answer.served { Quoted::Served } else { Quoted::Throttled };
                permit.answered(&RateFacts::read(&answer.headers), quoted);
            }
        });
    }
    tasks.await;
    served.get()
}

/// Somebody else on the same key, who calls evenly and comes back after a refusal.
async fn run_neighbour(server: Shared<QuotaServer>, calls_per_window: u32) -> u32 {
    let end = Instant::now() + WINDOW * WINDOWS;
    let mut served = 0;
    while Instant::now() < end {
        sleep(WINDOW / calls_per_window).await;
        served += u32::from(server.borrow_mut().call().served);
    }
    served
}

async fn alone(counting: Counting, dialect: Dialect, offset: i64, class: Class) -> Used {
    let server = QuotaServer::new(counting, dialect, LIMIT, WINDOW, SignedDuration::from_secs(offset));
    let server = Rc::new(RefCell::new(server));
    let served = run_ours(&server, settings(), class).await;
    Used { served, refusals: server.borrow().refusals, by_neighbour: 0 }
}

async fn beside_a_neighbour(counting: Counting, dialect: Dialect, class: Class) -> Used {
    let server = QuotaServer::new(counting, dialect, LIMIT, WINDOW, SignedDuration::ZERO);
    let server = Rc::new(RefCell::new(server));
    let neighbour = run_neighbour(server.clone(), LIMIT / 5);
    let (served, by_neighbour) = tokio::join!(run_ours(&server, settings(), class), neighbour);
    Used { served, refusals: 0, by_neighbour }
}

/// QTA-1, A3, A4: the grant is used to the last percent and nothing is ever refused, whatever the server counts, however
/// it writes it, and however wrong our clock is.
#[tokio::test(start_paused = true)]
async fn the_grant_is_used_without_a_single_refusal() {
    let grant = f64::from(settings().grant(LIMIT) * WINDOWS);
    for counting in [Counting::FixedWindow, Counting::MovingWindow, Counting::TokenBucket] {
        for dialect in Dialect::ALL {
            let t = std::time::Instant::now();
            let used = alone(counting, dialect, 0, Class::Incremental).await;
            println!("{:?}", t.elapsed());
            let part = f64::from(used.served) / grant;
            println!("{counting:?} {dialect:?}: {:.1} %, {} refused", part * 100.0, used.refusals);
        }
    }
    for counting in [Counting::FixedWindow, Counting::MovingWindow, Counting::TokenBucket] {
        for class in [Class::Incremental, Class::Paced] {
            let used = beside_a_neighbour(counting, Dialect::DeltaRoundedUp, class).await;
            let all = f64::from(LIMIT * WINDOWS);
            let part = |calls: u32| f64::from(calls) / all * 100.0;
            println!(
                "{counting:?} {class:?}: ours {:.1} %, neighbour {:.1} % of 20, total {:.1} %",
                part(used.served),
                part(used.by_neighbour),
                part(used.served + used.by_neighbour)
            );
        }
    }
    for counting in [Counting::FixedWindow, Counting::MovingWindow, Counting::TokenBucket] {
        let used = alone(counting, Dialect::EpochSeconds, 0, Class::Paced).await;
        let part = f64::from(used.served) / grant;
        println!("{counting:?} paced: {:.1} %, {} refused", part * 100.0, used.refusals);
    }
}
