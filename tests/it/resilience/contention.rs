//! What jitter is for: many clients that failed together.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use sierra_sync::resilience::backoff::{Backoff, Jitter};
use sierra_sync::resilience::retry::{Failed, RetryMachine, Step};
use sierra_sync::resilience::retry_tokens::RetryTokens;
use sierra_sync::resilience::settings::RetrySettings;
use sierra_sync::resilience::taxonomy::Decision;
use sierra_sync::seed::RootSeed;

/// C10: 200 workers that failed three times together leave no tenth of a second with more than a small share of them.
#[test]
fn two_hundred_workers_do_not_come_back_together() {
    let mut buckets = BTreeMap::<u128, u32>::new();
    let seed = RootSeed::new(41);
    for worker in 0..200 {
        let mut rng = seed.generator(&format!("worker {worker}"));
        let now = tokio::time::Instant::now();
        let mut machine = RetryMachine::starting(RetrySettings::default(), now).expect("sound settings");
        let mut tokens = RetryTokens::default();
        let mut at = Duration::ZERO;
        for _ in 0..3 {
            machine.sending(now + at);
            let failed = Failed { decision: Decision::Transient, status: Some(503), retry_after: None, gated: false };
            let Step::Sleep { delay, .. } = machine.failed(&failed, &mut tokens, now + at, &mut rng) else {
                panic!("three failures leave attempts");
            };
            at += delay;
        }
        *buckets.entry(at.as_millis() / 100).or_default() += 1;
    }
    let fullest = buckets.values().max().copied().unwrap_or_default();
    println!("fullest tenth of a second: {fullest} of 200 workers");
    assert!(fullest <= 16, "{buckets:?}");
}

/// The published study of full jitter: 100 clients write one row under optimistic concurrency control, network delay
/// N(10 ms, 2 ms) each way; a write that finds the row changed is tried again. Base 5 ms, cap 2 s; the study counts
/// attempts from 1 where we count from 0 (A1), which makes its first ceiling 10 ms.
#[test]
fn a_hundred_contending_clients_finish_with_few_calls() {
    let backoff = |jitter| {
        Backoff::new(Duration::from_millis(10), Duration::from_secs(2), jitter).expect("base is below the cap")
    };
    let runs = 20;
    let mean = |delay: &dyn Fn(u32, &mut StdRng) -> Duration| {
        let (calls, seconds) = (0..runs)
            .map(|run| contend(100, delay, &mut RootSeed::new(run).generator("contention")))
            .fold((0, 0.0), |(calls, seconds), (more, longer)| (calls + more, seconds + longer));
        (calls as f64 / runs as f64, seconds / runs as f64)
    };
    let full = mean(&|attempt, rng| backoff(Jitter::Full).delay(attempt, None, rng));
    let equal = mean(&|attempt, rng| backoff(Jitter::Equal).delay(attempt, None, rng));
    let unjittered = mean(&|attempt, _| backoff(Jitter::Full).ceiling(attempt));
    for (name, (calls, seconds)) in [("full", full), ("equal", equal), ("none", unjittered)] {
        println!("{name} jitter: {calls:.0} calls, {seconds:.2} s");
    }
    assert!(full.0 <= 840.0 && full.1 <= 5.2, "{full:?}");
    assert!(unjittered.0 > full.0 * 1.5, "jitter must pay: {unjittered:?} against {full:?}");
}

/// What a client does next.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Read,
    Write { seen: u64 },
    Done { is_written: bool },
}

/// Returns calls (reads are not counted, as in the study) and seconds until all have written.
fn contend(clients: usize, delay: &dyn Fn(u32, &mut StdRng) -> Duration, rng: &mut StdRng) -> (u64, f64) {
    let mut queue = BTreeMap::<(u64, u64), (u32, Turn)>::new();
    let (mut order, mut version, mut calls, mut left, mut last) = (0, 0_u64, 0_u64, clients, 0_u64);
    let mut push = |queue: &mut BTreeMap<_, _>, at: u64, attempts: u32, turn: Turn| {
        order += 1;
        queue.insert((at, order), (attempts, turn));
    };
    for _ in 0..clients {
        push(&mut queue, network(rng), 0, Turn::Read);
    }
    while left > 0 {
        let ((now, _), (attempts, turn)) = queue.pop_first().expect("clients are left");
        match turn {
            Turn::Read => {
                let at = now + network(rng) + network(rng);
                push(&mut queue, at, attempts, Turn::Write { seen: version });
            }
            Turn::Write { seen } => {
                calls += 1;
                let is_written = seen == version;
                version += u64::from(is_written);
                push(&mut queue, now + network(rng), attempts, Turn::Done { is_written });
            }
            Turn::Done { is_written: true } => {
                left -= 1;
                last = now;
            }
            Turn::Done { is_written: false } => {
                let wait = delay(attempts, rng).as_micros() as u64;
                push(&mut queue, now + wait + network(rng), attempts + 1, Turn::Read);
            }
        }
    }
    (calls, last as f64 / 1e6)
}

/// Microseconds of one way through the network: the absolute value of N(10 ms, 2 ms).
fn network(rng: &mut impl Rng) -> u64 {
    let (a, b): (f64, f64) = (rng.random_range(f64::MIN_POSITIVE..1.0), rng.random_range(0.0..1.0));
    let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
    ((10.0 + 2.0 * normal).abs() * 1_000.0) as u64
}
