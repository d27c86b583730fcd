//! What the calls of the last minute taught us, counted in one-second buckets.

use std::time::Duration;

use tokio::time::Instant;

/// How far back calls count, in seconds.
const BUCKETS: usize = 60;

/// One second. Small, since there are many.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    second: u32,
    successes: u16,
    failures: u16,
    /// Milliseconds into the second at which the first failure came.
    first_failure: u16,
}

/// The record of one endpoint.
#[derive(Debug, Clone)]
pub(super) struct History {
    origin: Instant,
    buckets: [Bucket; BUCKETS],
    /// Failures since the last success.
    pub(super) consecutive: u32,
    /// When the present row of failures began.
    streak_began: Option<Instant>,
    pub(super) last_success: Option<Instant>,
    last_failure: Option<Instant>,
}

impl History {
    pub(super) fn new(origin: Instant) -> Self {
        Self {
            origin,
            buckets: [Bucket::default(); BUCKETS],
            consecutive: 0,
            streak_began: None,
            last_success: None,
            last_failure: None,
        }
    }

    pub(super) fn succeeded(&mut self, now: Instant) {
        self.consecutive = 0;
        self.streak_began = None;
        self.last_success = Some(now);
        let bucket = self.bucket(now);
        bucket.successes = bucket.successes.saturating_add(1);
    }

    pub(super) fn failed(&mut self, now: Instant) {
        self.consecutive = self.consecutive.saturating_add(1);
        self.streak_began.get_or_insert(now);
        self.last_failure = Some(now);
        let millisecond = now.saturating_duration_since(self.origin).subsec_millis() as u16;
        let bucket = self.bucket(now);
        if bucket.failures == 0 {
            bucket.first_failure = millisecond;
        }
        bucket.failures = bucket.failures.saturating_add(1);
    }

    /// Failures and all calls of the last minute.
    pub(super) fn recent(&self, now: Instant) -> (u32, u32) {
        self.live(now).fold((0, 0), |(failures, calls), bucket| {
            let (failed, succeeded) = (u32::from(bucket.failures), u32::from(bucket.successes));
            (failures + failed, calls + failed + succeeded)
        })
    }

    /// The first failure of the last minute, or of the present row of failures if that is longer.
    pub(super) fn first_failure(&self, now: Instant) -> Option<Instant> {
        let failing = self.live(now).filter(|bucket| bucket.failures > 0);
        let moments = failing.map(|bucket| {
            let second = Duration::from_secs(u64::from(bucket.second.saturating_sub(1)));
            self.origin + second + Duration::from_millis(u64::from(bucket.first_failure))
        });
        moments.chain(self.streak_began).min()
    }

    /// Whether the latest thing we know about it is good.
    pub(super) fn is_well(&self) -> bool {
        self.last_success.is_some_and(|success| self.last_failure.is_none_or(|failure| success >= failure))
    }

    /// Forgets the failures, as when they have led to an opening; remembers when it last answered well.
    pub(super) fn forgive(&mut self) {
        self.buckets = [Bucket::default(); BUCKETS];
        self.consecutive = 0;
        self.streak_began = None;
    }

    fn live(&self, now: Instant) -> impl Iterator<Item = &Bucket> {
        let oldest = (self.second(now) + 1).saturating_sub(BUCKETS as u32);
        self.buckets.iter().filter(move |bucket| bucket.second >= oldest)
    }

    #[expect(clippy::indexing_slicing, reason = "the index is a remainder of the array's length")]
    fn bucket(&mut self, now: Instant) -> &mut Bucket {
        let second = self.second(now);
        let bucket = &mut self.buckets[second as usize % BUCKETS];
        if bucket.second != second {
            *bucket = Bucket { second, ..Bucket::default() };
        }
        bucket
    }

    fn second(&self, now: Instant) -> u32 {
        // Buckets that were never used read as second 0, so that real seconds begin at 1.
        u32::try_from(now.saturating_duration_since(self.origin).as_secs() + 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_older_than_a_minute_do_not_count() {
        let start = Instant::now();
        let mut history = History::new(start);
        history.failed(start);
        history.failed(start + Duration::from_secs(30));
        history.succeeded(start + Duration::from_secs(31));
        assert_eq!(history.recent(start + Duration::from_secs(59)), (2, 3));
        assert_eq!(history.recent(start + Duration::from_secs(60)), (1, 2));
        assert_eq!(history.recent(start + Duration::from_secs(89)), (1, 2));
        assert_eq!(history.recent(start + Duration::from_secs(95)), (0, 0));
        assert_eq!(history.recent(start + Duration::from_secs(100_000)), (0, 0));
    }

    #[test]
    fn a_long_row_of_failures_is_remembered_from_its_beginning() {
        let start = Instant::now();
        let mut history = History::new(start);
        history.failed(start);
        let later = start + Duration::from_secs(300);
        history.failed(later);
        assert_eq!(history.first_failure(later), Some(start));
        assert!(!history.is_well());
        history.succeeded(later);
        assert!(history.is_well());
        assert_eq!(history.first_failure(later), Some(later), "it still is a failure of the last minute");
    }
}
