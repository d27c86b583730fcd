//! Our own ceiling on calls per second: governor with a burst of one, on a clock that is told the time.
//!
//! A quota of governor's cannot be changed in place, so a new rate means a new limiter. A fresh limiter would let
//! one call go at once; the gap since the last call is kept here instead, so that a change of rate brings neither a
//! burst nor a stall. governor's own waiting (`until_ready`) sleeps on a timer of its own and is not used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota as Cells, RateLimiter};
use tokio::time::Instant;

/// After a refusal the rate is halved, but no more than once in this time: one burst of refusals is one event.
const ONE_BURST: Duration = Duration::from_secs(10);
/// Without a refusal for this long, the rate grows by a quarter, up to the configured one.
const RECOVERY_STEP: Duration = Duration::from_secs(30);
/// Refusals never slow us below this part of the configured rate.
const SLOWEST: f64 = 1.0 / 16.0;

/// Spaces calls evenly at the present rate. The first call goes at once.
#[derive(Debug)]
pub(super) struct Pacer {
    limiter: RateLimiter<NotKeyed, InMemoryState, ToldClock, NoOpMiddleware<Nanos>>,
    clock: ToldClock,
    origin: Instant,
    configured: f64,
    /// The part of the configured rate that is in force, after refusals.
    factor: f64,
    last_call: Option<Instant>,
    /// The gap that a swapped limiter does not know about.
    not_before: Option<Instant>,
    last_change: Instant,
}

impl Pacer {
    /// `rate` in calls per second, positive and finite.
    pub(super) fn new(rate: f64, now: Instant) -> Self {
        let clock = ToldClock::default();
        Self {
            limiter: limiter(rate, clock.clone()),
            clock,
            origin: now,
            configured: rate,
            factor: 1.0,
            last_call: None,
            not_before: None,
            last_change: now,
        }
    }

    /// Calls per second in force.
    pub(super) fn rate(&self) -> f64 {
        self.configured * self.factor
    }

    /// Takes the next slot, or says when it comes.
    pub(super) fn check(&mut self, now: Instant) -> Result<(), Instant> {
        self.recover(now);
        if let Some(not_before) = self.not_before.filter(|not_before| now < *not_before) {
            return Err(not_before);
        }
        let told = self.clock.tell(now.saturating_duration_since(self.origin));
        match self.limiter.check() {
            Ok(()) => {
                self.last_call = Some(now);
                self.not_before = None;
                Ok(())
            }
            Err(denied) => Err(now + denied.wait_time_from(told)),
        }
    }

    /// A new configured rate, from now on.
    pub(super) fn set_rate(&mut self, rate: f64) {
        if rate.to_bits() != self.configured.to_bits() {
            self.configured = rate;
            self.swap();
        }
    }

    /// The server refused a call: halve the rate (BR-076).
    pub(super) fn slow_down(&mut self, now: Instant) {
        if self.factor >= 1.0 || now.saturating_duration_since(self.last_change) >= ONE_BURST {
            self.factor = (self.factor / 2.0).max(SLOWEST);
            self.last_change = now;
            self.swap();
        }
    }

    fn recover(&mut self, now: Instant) {
        if self.factor < 1.0 && now.saturating_duration_since(self.last_change) >= RECOVERY_STEP {
            self.factor = (self.factor * 1.25).min(1.0);
            self.last_change = now;
            self.swap();
        }
    }

    fn swap(&mut self) {
        self.limiter = limiter(self.rate(), self.clock.clone());
        self.not_before = self.last_call.map(|last| last + period(self.rate()));
    }
}

fn limiter(rate: f64, clock: ToldClock) -> RateLimiter<NotKeyed, InMemoryState, ToldClock, NoOpMiddleware<Nanos>> {
    let cells = Cells::with_period(period(rate)).expect("the period is at least a microsecond");
    RateLimiter::direct_with_clock(cells, clock)
}

/// Between a microsecond and a day, whatever the rate.
fn period(rate: f64) -> Duration {
    Duration::try_from_secs_f64(1.0 / rate)
        .unwrap_or(Duration::from_secs(1))
        .clamp(Duration::from_micros(1), Duration::from_secs(24 * 3600))
}

/// A clock that knows only what it was told last. It never goes back.
#[derive(Debug, Clone, Default)]
struct ToldClock(Arc<AtomicU64>);

impl ToldClock {
    fn tell(&self, since_origin: Duration) -> Nanos {
        let nanos = u64::try_from(since_origin.as_nanos()).unwrap_or(u64::MAX);
        Nanos::from(self.0.fetch_max(nanos, Ordering::Relaxed).max(nanos))
    }
}

impl Clock for ToldClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments of the calls that a tireless caller gets to make until `until`.
    fn calls(pacer: &mut Pacer, from: Instant, until: Instant) -> Vec<Instant> {
        let (mut now, mut made) = (from, Vec::new());
        while now < until {
            match pacer.check(now) {
                Ok(()) => made.push(now),
                Err(next) => {
                    assert!(next > now, "a refused caller is never told to come back at once");
                    now = next;
                }
            }
        }
        made
    }

    #[test]
    fn calls_are_spaced_evenly_and_never_burst() {
        let start = Instant::now();
        let mut pacer = Pacer::new(10.0, start);
        let made = calls(&mut pacer, start, start + Duration::from_secs(10));
        assert_eq!(made.len(), 100);
        for pair in made.windows(2) {
            assert_eq!(pair[1] - pair[0], Duration::from_millis(100));
        }
        // Idleness earns no burst.
        let later = start + Duration::from_secs(100);
        assert_eq!(calls(&mut pacer, later, later + Duration::from_millis(250)).len(), 3);
    }

    /// Lowering or raising the rate while calls flow: the next call comes one new period after the last one.
    #[test]
    fn a_change_of_rate_brings_neither_burst_nor_stall() {
        let start = Instant::now();
        for (before, after) in [(10.0, 2.0), (2.0, 10.0), (10.0, 10.0)] {
            let mut pacer = Pacer::new(before, start);
            let last = *calls(&mut pacer, start, start + Duration::from_secs(3)).last().expect("calls were made");
            let change = last + Duration::from_millis(30);
            pacer.set_rate(after);
            let made = calls(&mut pacer, change, change + Duration::from_secs(4));
            assert_eq!(made[0], last + period(after), "{before} to {after}");
            for pair in made.windows(2) {
                assert_eq!(pair[1] - pair[0], period(after), "{before} to {after}");
            }
        }
    }

    /// BR-105: only the time that is told moves the limiter, and told time never runs back.
    #[test]
    fn cells_come_back_only_with_monotonic_time() {
        let start = Instant::now();
        let mut pacer = Pacer::new(1.0, start);
        assert_eq!(pacer.check(start + Duration::from_secs(5)), Ok(()));
        for _ in 0..100 {
            assert!(pacer.check(start + Duration::from_secs(5)).is_err(), "no time passed");
            assert!(pacer.check(start).is_err(), "an earlier reading frees nothing");
        }
        assert_eq!(pacer.check(start + Duration::from_secs(6)), Ok(()));
        assert_eq!(pacer.check(start + Duration::from_secs(3600)), Ok(()), "an hour asleep");
        assert!(pacer.check(start + Duration::from_secs(3600)).is_err(), "earns one call, not a burst");
    }

    /// BR-076: a burst of refusals halves the rate once; quiet brings it back slowly.
    #[test]
    fn refusals_halve_the_rate_and_quiet_restores_it() {
        let start = Instant::now();
        let mut pacer = Pacer::new(8.0, start);
        for second in 0..5 {
            pacer.slow_down(start + Duration::from_secs(second));
        }
        assert_eq!(pacer.rate(), 4.0);
        pacer.slow_down(start + Duration::from_secs(60));
        assert_eq!(pacer.rate(), 2.0);
        let mut now = start + Duration::from_secs(60);
        while pacer.rate() < 8.0 {
            now += RECOVERY_STEP;
            let before = pacer.rate();
            assert!(pacer.check(now).is_ok());
            assert!(pacer.rate() > before && pacer.rate() <= before * 1.25 + 1e-9);
        }
        assert!(now - start > Duration::from_secs(180));
    }
}
