//! The decisions after each attempt, on a clock that tests move by hand.

use std::time::Duration;

use rand::rngs::StdRng;
use tokio::time::Instant;

use super::*;
use crate::resilience::retry_tokens::RetryTokens;
use crate::resilience::settings::RetrySettings;
use crate::resilience::span::Span;
use crate::resilience::taxonomy::{Decision, Evidence, Mark};
use crate::seed::RootSeed;

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    machine: RetryMachine,
    tokens: RetryTokens,
    now: Instant,
    rng: StdRng,
}

impl Bench {
    fn new(settings: RetrySettings, seed: u64) -> Self {
        let now = Instant::now();
        let machine = RetryMachine::starting(settings, now).expect("sound settings");
        Self { machine, tokens: RetryTokens::default(), now, rng: RootSeed::new(seed).generator("retry") }
    }

    /// One attempt that takes no time and fails so; sleeps are slept.
    fn fail(&mut self, failed: Failed) -> Step {
        self.machine.sending(self.now);
        let step = self.machine.failed(&failed, &mut self.tokens, self.now, &mut self.rng);
        if let Step::Sleep { delay, .. } = step {
            self.now += delay;
        }
        step
    }
}

fn status(status: u16) -> Failed {
    let decision = Decision::of(&Evidence { status: Some(status), ..Evidence::default() });
    Failed { decision, status: Some(status), retry_after: None, gated: false }
}

fn retry_after(code: u16, seconds: u64) -> Failed {
    Failed { retry_after: Some(Span::whole_seconds(seconds)), ..status(code) }
}

fn ending(step: Step) -> Option<Ending> {
    match step {
        Step::End { ending, .. } => Some(ending),
        _ => None,
    }
}

/// Repeats one failure until the call ends; returns the sleeps and the ending.
fn series(settings: RetrySettings, seed: u64, failed: Failed) -> (Vec<Duration>, Ending) {
    let mut bench = Bench::new(settings, seed);
    let mut sleeps = Vec::new();
    loop {
        match bench.fail(failed) {
            Step::Sleep { delay, .. } => sleeps.push(delay),
            Step::End { ending, .. } => return (sleeps, ending),
            other => panic!("neither slept nor ended: {other:?}"),
        }
    }
}

/// A1, C10, BR-104: every wait but the last is drawn from U(0, min(cap, base × 2^attempt)); the last makes up for lucky
/// draws, so that all waits together are at least the base; none is above its ceiling.
#[test]
fn waits_are_drawn_from_zero_to_the_ceiling_and_add_up_to_the_base() {
    let mut sums = [0.0_f64; 4];
    for seed in 0..10_000 {
        let (sleeps, ending) = series(RetrySettings::default(), seed, status(503));
        assert_eq!(ending, Ending::BudgetExhausted { budget: Budget::Attempts });
        assert_eq!(sleeps.len(), 4, "five attempts have four waits between them");
        for (attempt, sleep) in sleeps.iter().enumerate() {
            assert!(*sleep <= SECOND * (1 << attempt));
            sums[attempt] += sleep.as_secs_f64();
        }
        assert!(sleeps.iter().sum::<Duration>() >= SECOND, "{sleeps:?}");
    }
    for (attempt, sum) in sums.into_iter().enumerate() {
        let (mean, expected) = (sum / 10_000.0, f64::from(1_u32 << attempt) / 2.0);
        assert!((mean / expected - 1.0).abs() < 0.03, "attempt {attempt}: mean {mean}");
    }
}

/// C10: a terminal error makes exactly one attempt.
#[test]
fn a_terminal_error_ends_the_call_at_once() {
    for code in [400, 403, 404, 405, 413, 415, 422, 501, 507, 418, 599] {
        let step = Bench::new(RetrySettings::default(), 1).fail(status(code));
        assert!(matches!(ending(step), Some(Ending::Permanent { .. })), "{code}: {step:?}");
    }
    for decision in [Decision::Declared, Decision::NarrowRange] {
        let failed = Failed { decision, ..status(500) };
        assert_eq!(ending(Bench::new(RetrySettings::default(), 1).fail(failed)), Some(Ending::Permanent { decision }));
    }
}

/// B2, C3, C5, C10: whichever budget ends first, on the monotonic clock.
#[test]
fn a_perpetual_failure_ends_within_both_budgets() {
    let patient = RetrySettings { max_attempts: 1_000, ..RetrySettings::default() };
    for seed in 0..200 {
        let mut bench = Bench::new(patient, seed);
        let start = bench.now;
        let ending = loop {
            // Every attempt takes two seconds, and the bucket is kept full: only the clock is left to end it.
            bench.tokens = RetryTokens::default();
            bench.now += SECOND * 2;
            if let Step::End { ending, .. } = bench.fail(status(500)) {
                break ending;
            }
        };
        assert_eq!(ending, Ending::BudgetExhausted { budget: Budget::WallClock });
        assert!(bench.now - start <= SECOND * 92);
    }
}

#[test]
fn an_attempt_may_not_outlast_the_budget() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    assert_eq!(bench.machine.sending(bench.now), (1, SECOND * 60));
    assert_eq!(bench.machine.sending(bench.now + SECOND * 50), (2, SECOND * 40));
    bench.machine.excuse(SECOND * 30, true);
    assert_eq!(bench.machine.sending(bench.now + SECOND * 100), (3, SECOND * 20));
    assert!(!bench.machine.has_time(bench.now + SECOND * 120));
}

/// B3: the server's wait replaces the computed one, to the letter.
#[test]
fn a_retry_after_replaces_the_jitter() {
    let step = Bench::new(RetrySettings::default(), 1).fail(retry_after(503, 17));
    assert!(matches!(step, Step::Sleep { delay, honored_retry_after: true, .. } if delay == SECOND * 17), "{step:?}");
    for useless in [status(503), retry_after(503, 0)] {
        let step = Bench::new(RetrySettings::default(), 1).fail(useless);
        assert!(matches!(step, Step::Sleep { delay, honored_retry_after: false, .. } if delay <= SECOND), "{step:?}");
    }
}

/// B4, C4, BR-103: a wait that reaches past the budget parks the call at once; a hostile one parks it no longer than the cap.
#[test]
fn a_retry_after_past_the_budget_parks_the_call() {
    for (asked, parked) in [(91, 91), (1_800, 1_800), (4_000, 3_600), (999_999_999, 3_600)] {
        let mut bench = Bench::new(RetrySettings::default(), 1);
        let resume_at = bench.now + SECOND * parked;
        let expected = Ending::Parked { reason: ParkReason::RetryAfter, resume_at };
        assert_eq!(ending(bench.fail(retry_after(503, asked))), Some(expected), "{asked}");
    }
    let late = &mut Bench::new(RetrySettings::default(), 1);
    late.now += SECOND * 80;
    assert!(matches!(ending(late.fail(retry_after(503, 11))), Some(Ending::Parked { .. })), "only 10 s are left");
}

/// A8: the first 401 is repeated at once with a new token and charged to nothing; the second is terminal.
#[test]
fn one_401_is_forgiven_and_the_second_is_final() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    assert_eq!(bench.fail(status(401)), Step::Reauthenticate);
    assert_eq!((bench.machine.tally(bench.now).attempts, bench.tokens.level()), (0, 100));
    assert!(matches!(bench.fail(status(503)), Step::Sleep { .. }));
    let step = bench.fail(status(401));
    assert_eq!(ending(step), Some(Ending::Permanent { decision: Decision::Unauthorised }));
}

/// The breaker learns nothing from the first 401, and that the other side works from the second.
#[test]
fn a_401_is_neutral_before_its_refresh() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    assert_eq!(bench.machine.mark(&status(401)), Mark::Neutral);
    bench.fail(status(401));
    assert_eq!(bench.machine.mark(&status(401)), Mark::Healthy);
}

/// BR-033: an empty reply is repeated at once, the first time; then it is a failure like any other.
#[test]
fn an_empty_reply_is_repeated_at_once_the_first_time() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    let empty = Failed { decision: Decision::EmptyReply, ..status(200) };
    assert!(matches!(bench.fail(empty), Step::Sleep { delay: Duration::ZERO, .. }));
    assert!(matches!(bench.fail(empty), Step::Sleep { delay, .. } if delay > Duration::ZERO));
    assert_eq!(bench.machine.mark(&empty), Mark::Failed);
}

/// A refusal that says how long to wait is charged to neither budget, nor to the bucket (BR-101).
#[test]
fn a_gated_refusal_costs_nothing() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    for _ in 0..4 {
        assert_eq!(bench.fail(Failed { gated: true, ..status(429) }), Step::AwaitQuota);
        assert_eq!(bench.machine.mark(&status(429)) == Mark::Failed, bench.machine.tally(bench.now).sends == 4);
    }
    let tally = bench.machine.tally(bench.now);
    assert_eq!((tally.sends, tally.attempts, bench.tokens.level()), (4, 0, 100));
}

/// A15: a refusal without a usable wait costs an attempt, with full jitter.
#[test]
fn a_refusal_without_a_wait_backs_off_and_costs_an_attempt() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    assert!(matches!(bench.fail(status(429)), Step::Sleep { delay, .. } if delay <= SECOND));
    assert_eq!((bench.machine.tally(bench.now).attempts, bench.tokens.level()), (1, 95));
}

/// Five refusals in a row park the call and count as one failure of the other side.
#[test]
fn five_refusals_in_a_row_park_the_call() {
    let mut bench = Bench::new(RetrySettings::default(), 1);
    for gated in [true, false, true, true] {
        let failed = Failed { gated, ..status(429) };
        assert_eq!(bench.machine.mark(&failed), Mark::Neutral);
        assert!(ending(bench.fail(failed)).is_none());
    }
    assert_eq!(bench.machine.mark(&status(429)), Mark::Failed);
    assert!(matches!(ending(bench.fail(status(429))), Some(Ending::Parked { reason: ParkReason::Throttled, .. })));
}

#[test]
fn another_failure_between_refusals_starts_the_row_anew() {
    let patient = RetrySettings { max_attempts: 20, ..RetrySettings::default() };
    let mut bench = Bench::new(patient, 1);
    for _ in 0..3 {
        for _ in 0..3 {
            assert_eq!(bench.fail(Failed { gated: true, ..status(429) }), Step::AwaitQuota);
        }
        assert!(matches!(bench.fail(status(503)), Step::Sleep { .. }));
    }
}

/// In a long outage first attempts go on, but the retries on top of them dry up.
#[test]
fn an_empty_bucket_of_tokens_ends_retries() {
    let mut bench = Bench::new(RetrySettings { max_attempts: 50, ..RetrySettings::default() }, 1);
    for _ in 0..10 {
        bench.now = Instant::now();
        assert!(matches!(bench.fail(status(503)), Step::Sleep { .. }));
    }
    let step = bench.fail(status(503));
    assert_eq!(ending(step), Some(Ending::BudgetExhausted { budget: Budget::RetryTokens }));
    bench.machine.succeeded(&mut bench.tokens);
    assert_eq!(bench.tokens.level(), 100, "success gives back what the call had paid");
}

/// C1: equal jitter guarantees half of each ceiling; decorrelated never goes below the base.
#[test]
fn the_strategy_is_a_setting() {
    use crate::resilience::backoff::Jitter;
    for seed in 0..500 {
        let equal = RetrySettings { jitter: Jitter::Equal, ..RetrySettings::default() };
        let (sleeps, _) = series(equal, seed, status(500));
        for (attempt, sleep) in sleeps.iter().enumerate() {
            assert!(*sleep >= SECOND * (1 << attempt) / 2 && *sleep <= SECOND * (1 << attempt));
        }
        let decorrelated = RetrySettings { jitter: Jitter::Decorrelated, ..RetrySettings::default() };
        let (sleeps, _) = series(decorrelated, seed, status(500));
        assert!(sleeps.iter().all(|sleep| *sleep >= SECOND && *sleep <= SECOND * 30));
    }
}

/// What is logged must be what is slept: timers keep whole milliseconds.
#[test]
fn every_sleep_is_a_whole_number_of_milliseconds() {
    for seed in 0..100 {
        let (sleeps, _) = series(RetrySettings::default(), seed, status(500));
        assert!(sleeps.iter().all(|sleep| sleep.subsec_nanos() % 1_000_000 == 0));
    }
}
