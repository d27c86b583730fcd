//! The ledger's decisions, on a clock that tests move by hand.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::*;
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::rate_headers::RateFacts;
use crate::resilience::settings::QuotaSettings;
use crate::resilience::span::Span;
use crate::seed::RootSeed;

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    ledger: Ledger,
    now: Instant,
    rng: StdRng,
}

impl Bench {
    fn new() -> Self {
        let settings =
            QuotaSettings { rate: 1_000.0, concurrency: PerEndpoint::from_fn(|_| 1_000), ..QuotaSettings::default() };
        let now = Instant::now();
        Self { ledger: Ledger::new(settings, now), now, rng: RootSeed::new(9).generator("ledger") }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn ask(&mut self, endpoint: Endpoint) -> Admission {
        self.ledger.admit(&mut Waiter::new(endpoint, Class::Incremental), self.now, &mut self.rng)
    }

    fn send(&mut self) -> Grant {
        self.wait(Duration::from_millis(1));
        match self.ask(Endpoint::Bibs) {
            Admission::Go(grant) => grant,
            Admission::Wait { until, cause } => panic!("waits for {cause:?} until {:?}", until - self.now),
        }
    }

    fn hear(&mut self, grant: Grant, facts: RateFacts) -> &mut Self {
        self.ledger.answered(grant, &facts, Quoted::Served, self.now);
        self
    }

    fn call(&mut self, facts: RateFacts) -> &mut Self {
        let grant = self.send();
        self.hear(grant, facts)
    }

    /// How long a call to bibs has to wait for quota.
    fn wait_of(&mut self, endpoint: Endpoint) -> Duration {
        self.wait(Duration::from_millis(10));
        match self.ask(endpoint) {
            Admission::Go(grant) => {
                self.ledger.returned(grant, self.now);
                Duration::ZERO
            }
            Admission::Wait { until, cause } => {
                assert!(cause.is_quota(), "{cause:?}");
                until - self.now
            }
        }
    }

    fn remaining(&self) -> Option<u32> {
        self.ledger.snapshot(self.now, jiff::Timestamp::UNIX_EPOCH, Duration::ZERO).remaining
    }

    fn nonsense(&self) -> u64 {
        self.ledger.snapshot(self.now, jiff::Timestamp::UNIX_EPOCH, Duration::ZERO).nonsense
    }
}

fn facts(limit: u32, remaining: u32, reset: u64) -> RateFacts {
    let reset = Some(Span::whole_seconds(reset));
    RateFacts { limit: Some(limit), remaining: Some(remaining), reset, ..RateFacts::default() }
}

fn refusal(retry_after: Option<u64>, reset: Option<u64>) -> RateFacts {
    RateFacts {
        remaining: Some(0),
        retry_after: retry_after.map(Span::whole_seconds),
        reset: reset.map(Span::whole_seconds),
        ..RateFacts::default()
    }
}

/// What every answer says about the end of one window is put together, and the gate opens at the upper end.
#[test]
fn what_several_answers_say_about_the_end_is_intersected() {
    let mut bench = Bench::new();
    // Each statement alone is good to a second either way: [29, 31], then [28.9, 30.9], then [29.3, 31.3].
    bench.call(facts(1000, 500, 30)).wait(Duration::from_millis(900)).call(facts(1000, 499, 29));
    bench.wait(Duration::from_millis(400)).call(facts(1000, 2, 29));
    let wait = bench.wait_of(Endpoint::Bibs);
    let expected = Duration::from_millis(29_600);
    assert!(wait.abs_diff(expected) < Duration::from_millis(20), "{wait:?}");
}

/// `remaining = min(local, server − sent since)`: calls in flight may not have been counted yet.
#[test]
fn calls_in_flight_are_taken_off_what_the_server_says() {
    let mut bench = Bench::new();
    let early: Vec<_> = (0..4).map(|_| bench.send()).collect();
    let mut early = early.into_iter();
    bench.hear(early.next().expect("four calls"), facts(1000, 100, 60));
    assert_eq!(bench.remaining(), Some(97));
    bench.hear(early.next().expect("four calls"), facts(1000, 105, 60));
    assert_eq!(bench.remaining(), Some(97), "an older, more hopeful answer frees nothing");
    bench.hear(early.next().expect("four calls"), facts(1000, 60, 60));
    assert_eq!(bench.remaining(), Some(59), "somebody else used the key");
    let grant = bench.send();
    assert_eq!(bench.remaining(), Some(58));
    bench.ledger.returned(grant, bench.now);
    assert_eq!(bench.remaining(), Some(59), "a call that was not made");
}

#[test]
fn an_answer_from_the_last_window_says_nothing_about_this_one() {
    let mut bench = Bench::new();
    bench.call(facts(1000, 500, 10));
    let late = bench.send();
    bench.wait(12 * SECOND).call(facts(1000, 999, 60));
    bench.hear(late, facts(1000, 1, 0));
    assert_eq!(
        (bench.remaining(), bench.wait_of(Endpoint::Bibs)),
        (Some(998), Duration::ZERO),
        "999, and one in flight"
    );
}

#[test]
fn a_new_window_brings_a_new_grant() {
    let mut bench = Bench::new();
    bench.call(facts(20, 19, 30));
    for _ in 0..12 {
        bench.call(RateFacts::default());
    }
    assert!(bench.wait_of(Endpoint::Bibs) > 25 * SECOND, "20 × 0.9 − 5 = 13 calls");
    // The caller that waited above had the first place and did not come back; the next one takes it a little later.
    bench.wait(34 * SECOND).call(facts(20, 19, 30)).wait(3 * SECOND);
    for _ in 0..12 {
        bench.call(RateFacts::default());
    }
    assert!(bench.wait_of(Endpoint::Bibs) > 20 * SECOND);
}

/// BR-102: statements that contradict what was said before are counted, and the longer wait is believed.
#[test]
fn an_end_that_suddenly_comes_earlier_is_not_believed_at_once() {
    let mut bench = Bench::new();
    bench.call(facts(1000, 500, 50)).call(facts(1000, 3, 10));
    assert!(bench.wait_of(Endpoint::Bibs) > 48 * SECOND);
    assert_eq!(bench.nonsense(), 1);
    let mut bench = Bench::new();
    bench.call(facts(1000, 500, 50));
    for _ in 0..3 {
        bench.call(facts(1000, 100, 10));
    }
    bench.call(facts(1000, 3, 10));
    assert!(bench.wait_of(Endpoint::Bibs) < 12 * SECOND, "a server that insists is right");
}

/// Nonsense leaves the local rate as it is, and is counted.
#[test]
fn nonsense_stops_nothing() {
    let mut bench = Bench::new();
    let absurd = RateFacts { reset: Some(Span::exactly(SECOND * 40_000_000)), nonsense: 3, ..RateFacts::default() };
    for _ in 0..50 {
        bench.call(absurd);
    }
    assert_eq!(bench.nonsense(), 200);
}

/// A4: the longer of `Retry-After` and reset closes the key's gate; a wait of zero or none closes nothing and slows us.
#[test]
fn a_429_closes_the_gate_of_the_key_when_it_says_how_long() {
    for (retry_after, reset, expected) in [(Some(20), None, 20), (Some(20), Some(40), 41), (Some(50), Some(40), 50)] {
        let mut bench = Bench::new();
        let grant = bench.send();
        let wait = bench.ledger.answered(grant, &refusal(retry_after, reset), Quoted::Throttled, bench.now);
        assert_eq!(wait, Some(SECOND * expected));
        for endpoint in [Endpoint::Bibs, Endpoint::Items, Endpoint::Token] {
            let wait = bench.wait_of(endpoint);
            assert!(wait > SECOND * (expected - 1) && wait <= SECOND * (expected + 2), "{endpoint}: {wait:?}");
        }
    }
    let mut bench = Bench::new();
    let rate = bench.ledger.rate();
    let grant = bench.send();
    assert_eq!(bench.ledger.answered(grant, &RateFacts::default(), Quoted::Throttled, bench.now), None);
    assert_eq!((bench.wait_of(Endpoint::Items), bench.ledger.rate()), (Duration::ZERO, rate / 2.0));
}

/// BR-044: Sierra's own refusal closes the gate of that endpoint and no other.
#[test]
fn a_refusal_closes_the_gate_of_its_endpoint_alone() {
    let mut bench = Bench::new();
    let grant = bench.send();
    let quoted = Quoted::Refused(SECOND * 720);
    assert_eq!(bench.ledger.answered(grant, &RateFacts::default(), quoted, bench.now), Some(SECOND * 720));
    assert!(bench.wait_of(Endpoint::Bibs) > SECOND * 719);
    assert_eq!(bench.wait_of(Endpoint::Items), Duration::ZERO);
}

/// A second refusal while the gate is closed only ever lengthens the wait.
#[test]
fn a_shorter_refusal_does_not_open_a_closed_gate() {
    let mut bench = Bench::new();
    let (first, second) = (bench.send(), bench.send());
    bench.ledger.answered(first, &refusal(Some(100), None), Quoted::Throttled, bench.now);
    bench.ledger.answered(second, &refusal(Some(3), None), Quoted::Throttled, bench.now);
    assert!(bench.wait_of(Endpoint::Bibs) > SECOND * 99);
}

/// A window of a day may be true: one call an hour looks, and the others keep to their share of it.
#[test]
fn a_window_of_a_day_is_looked_at_hourly_and_keeps_its_share() {
    let mut bench = Bench::new();
    let day_ends = bench.now + SECOND * 24 * 3_600;
    let until_then = |bench: &Bench, left| facts(100, left, (day_ends - bench.now).as_secs());
    for left in (15..=99).rev() {
        let answer = until_then(&bench, left);
        bench.call(answer);
    }
    for hour in 1..=3 {
        let wait = bench.wait_of(Endpoint::Bibs);
        assert!(wait > SECOND * 3_590 && wait <= SECOND * 3_602, "hour {hour}: {wait:?}");
        bench.wait(wait + SECOND * 2);
        let answer = until_then(&bench, 15 - hour);
        bench.call(answer).wait(SECOND * 3);
    }
    // The fourth look finds a new window that nobody had announced.
    let wait = bench.wait_of(Endpoint::Bibs);
    bench.wait(wait + SECOND * 2).call(facts(100, 99, 600)).wait(SECOND * 3);
    assert_eq!(bench.wait_of(Endpoint::Bibs), Duration::ZERO);
}

/// A18: what the server said can be forgotten.
#[test]
fn limits_and_gates_can_be_forgotten() {
    let mut bench = Bench::new();
    bench.call(facts(1000, 0, 600));
    assert!(bench.wait_of(Endpoint::Bibs) > SECOND * 500);
    bench.ledger.forget(bench.now);
    assert_eq!((bench.wait_of(Endpoint::Bibs), bench.remaining()), (Duration::ZERO, None));
    bench.ledger.set_cautious(true);
    let grant = bench.send();
    for endpoint in [Endpoint::Bibs, Endpoint::Items] {
        let cautious = bench.ask(endpoint);
        assert!(matches!(cautious, Admission::Wait { cause: WaitCause::Concurrency, .. }), "one worker: {endpoint}");
    }
    bench.wait(SECOND);
    assert!(matches!(bench.ask(Endpoint::Token), Admission::Go(_)), "it needs its token");
    bench.hear(grant, RateFacts::default());
}

/// Whatever servers say, in whatever order, and whatever happens to calls: a patient caller always gets to go within
/// hours, and is never told to ask again at once.
#[test]
fn no_sequence_of_answers_stops_us_for_good() {
    let mut rng = RootSeed::new(77).generator("answers");
    for sequence in 0..3_000_u32 {
        let mut bench = Bench::new();
        let mut flying = Vec::new();
        for _ in 0..rng.random_range(5..60) {
            match rng.random_range(0..10) {
                0..4 => {
                    let endpoint = [Endpoint::Bibs, Endpoint::Items][rng.random_range(0..2)];
                    match bench.ask(endpoint) {
                        Admission::Go(grant) => flying.push(grant),
                        Admission::Wait { until, .. } => assert!(until > bench.now, "sequence {sequence}"),
                    }
                }
                4..7 if !flying.is_empty() => {
                    let grant = flying.swap_remove(rng.random_range(0..flying.len()));
                    let quoted = match rng.random_range(0..10) {
                        0..6 => Quoted::Served,
                        6..9 => Quoted::Throttled,
                        _ => Quoted::Refused(SECOND * rng.random_range(5..3_600)),
                    };
                    bench.ledger.answered(grant, &any_facts(&mut rng), quoted, bench.now);
                }
                7 if !flying.is_empty() => bench.ledger.lost(flying.remove(0), bench.now),
                8 if !flying.is_empty() => bench.ledger.returned(flying.remove(0), bench.now),
                _ => {
                    bench.wait(Duration::from_millis(rng.random_range(0..40_000)));
                }
            }
        }
        let begun = bench.now;
        let mut waiter = Waiter::new(Endpoint::Bibs, Class::Paced);
        while let Admission::Wait { until, cause } = bench.ledger.admit(&mut waiter, bench.now, &mut bench.rng) {
            assert!(until > bench.now, "sequence {sequence}: told to ask again at once for {cause:?}");
            bench.now = until;
            assert!(bench.now - begun < SECOND * 4 * 3_600, "sequence {sequence} is stuck with {cause:?}");
        }
    }
}

fn any_facts(rng: &mut StdRng) -> RateFacts {
    let maybe = |rng: &mut StdRng, value: u32| rng.random_bool(0.7).then_some(value);
    let limit = rng.random_range(1..500);
    let remaining = rng.random_range(0..=limit + 3);
    let reset = [0, 1, 30, 60, 86_400][rng.random_range(0..5)];
    let retry_after = rng.random_bool(0.2).then(|| Span::whole_seconds(rng.random_range(0..100_000)));
    RateFacts {
        limit: maybe(rng, limit),
        remaining: maybe(rng, remaining),
        reset: maybe(rng, reset).map(|reset| Span::whole_seconds(u64::from(reset))),
        retry_after,
        window: rng.random_bool(0.1).then_some(SECOND * 60),
        nonsense: 0,
    }
}
