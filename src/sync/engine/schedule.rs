//! When a stream is due: pure, on the monotonic clock.

use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::time::Instant;

/// Each interval is drawn from this share around its length, so that many installations do not call at once.
const JITTER: f64 = 0.05;

/// One thing that is done every so often. Ticks that were missed run once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticker {
    interval: Duration,
    due: Instant,
}

impl Ticker {
    /// A ticker that is due at once.
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self { interval, due: now }
    }

    /// Whether it is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due <= now
    }

    /// When it is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// It was done: due again an interval after it was due last, or after now if more than one has passed.
    pub(super) fn done(&mut self, now: Instant, generator: &mut impl Rng) {
        let stretched = self.interval.mul_f64(generator.random_range(1.0 - JITTER..=1.0 + JITTER));
        let next = self.due + stretched;
        self.due = if next > now { next } else { now + stretched };
    }

    /// It could not be done: due again soon, and no later than it would have been.
    pub(super) fn again_within(&mut self, now: Instant, soon: Duration) {
        self.due = now + soon.min(self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_ticker_keeps_its_pace_within_its_jitter() {
        let mut generator = RootSeed::new(1).generator("schedule");
        let start = Instant::now();
        let mut ticker = Ticker::new(5 * MINUTE, start);
        assert!(ticker.is_due(start));
        for _ in 0..100 {
            let before = ticker.due();
            ticker.done(before + MINUTE, &mut generator);
            let gap = ticker.due() - before;
            assert!(gap >= Duration::from_secs(285) && gap <= Duration::from_secs(315), "{gap:?}");
            assert!(!ticker.is_due(before + MINUTE));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn missed_ticks_run_once() {
        let mut generator = RootSeed::new(1).generator("schedule");
        let start = Instant::now();
        let mut ticker = Ticker::new(5 * MINUTE, start);
        let late = start + 600 * MINUTE;
        ticker.done(late, &mut generator);
        assert!(ticker.due() > late + 4 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_done_is_due_soon() {
        let start = Instant::now();
        let mut ticker = Ticker::new(5 * MINUTE, start);
        ticker.again_within(start, Duration::from_secs(30));
        assert_eq!(ticker.due(), start + Duration::from_secs(30));
        let mut quick = Ticker::new(Duration::from_secs(2), start);
        quick.again_within(start, Duration::from_secs(30));
        assert_eq!(quick.due(), start + Duration::from_secs(2));
    }
}
