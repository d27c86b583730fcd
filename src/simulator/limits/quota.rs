//! The quota of an API key, as a gateway in front of Sierra would keep it.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::dialect::{Dialect, Reset, RetryAfter};

/// A quota and how it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimit {
    /// Calls that are granted in a window.
    pub calls: u32,
    /// The window, in whole seconds.
    pub seconds: u32,
    /// How calls are counted.
    pub counting: Counting,
    /// Which headers every answer carries.
    pub dialect: Dialect,
    /// How the reset is written where the dialect leaves a choice.
    pub reset: Reset,
    /// What a refusal says besides.
    pub retry_after: RetryAfter,
    /// Whether token calls cost nothing.
    pub free_token_calls: bool,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            calls: 100,
            seconds: 60,
            counting: Counting::FixedWindow,
            dialect: Dialect::XRateLimit,
            reset: Reset::EpochSeconds,
            retry_after: RetryAfter::Absent,
            free_token_calls: false,
        }
    }
}

/// How a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// Windows that follow the clock: each begins at a multiple of its length.
    FixedWindow,
    /// Any span of the window's length.
    MovingWindow,
    /// A bucket as large as the grant that refills evenly.
    TokenBucket,
}

/// The state of a quota. It rides on the true time, not on the clock that Sierra shows.
#[derive(Debug)]
pub(crate) struct Quota {
    limit: RateLimit,
    /// Fixed window: its number and the calls in it.
    window: (i64, u32),
    /// Moving window: when calls were granted.
    granted: VecDeque<Timestamp>,
    /// Token bucket: nanoseconds of refill that are missing, and since when.
    missing: (u128, Option<Timestamp>),
}

/// The answer of a quota to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether the call may go on.
    pub(crate) is_granted: bool,
    /// Calls left after this one.
    pub(crate) remaining: u32,
    /// Until the grant is whole again; for a refused call, until one more is granted.
    pub(crate) reset_in: Duration,
}

impl Quota {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self { limit, window: (i64::MIN, 0), granted: VecDeque::new(), missing: (0, None) }
    }

    pub(crate) fn limit(&self) -> &RateLimit {
        &self.limit
    }

    /// Counts a call at `now`, if it is granted.
    pub(crate) fn take(&mut self, now: Timestamp) -> Verdict {
        match self.limit.counting {
            Counting::FixedWindow => self.take_fixed(now),
            Counting::MovingWindow => self.take_moving(now),
            Counting::TokenBucket => self.take_bucket(now),
        }
    }

    fn window_length(&self) -> Duration {
        Duration::from_secs(u64::from(self.limit.seconds.max(1)))
    }

    fn take_fixed(&mut self, now: Timestamp) -> Verdict {
        let length = i64::from(self.limit.seconds.max(1));
        let number = now.as_second().div_euclid(length);
        if self.window.0 != number {
            self.window = (number, 0);
        }
        let is_granted = self.window.1 < self.limit.calls;
        self.window.1 += u32::from(is_granted);
        let end = Timestamp::from_second((number + 1) * length).unwrap_or(Timestamp::MAX);
        Verdict { is_granted, remaining: self.limit.calls - self.window.1, reset_in: until(now, end) }
    }

    fn take_moving(&mut self, now: Timestamp) -> Verdict {
        let length = SignedDuration::from_secs(i64::from(self.limit.seconds.max(1)));
        while self.granted.front().is_some_and(|granted| now.duration_since(*granted) >= length) {
            self.granted.pop_front();
        }
        let used = u32::try_from(self.granted.len()).unwrap_or(u32::MAX);
        let is_granted = used < self.limit.calls;
        if is_granted {
            self.granted.push_back(now);
        }
        let oldest = self.granted.front().copied().unwrap_or(now);
        let remaining = self.limit.calls.saturating_sub(used + u32::from(is_granted));
        Verdict { is_granted, remaining, reset_in: until(now, oldest.saturating_add(length).unwrap_or(now)) }
    }

    fn take_bucket(&mut self, now: Timestamp) -> Verdict {
        let calls = u128::from(self.limit.calls.max(1));
        let capacity = self.window_length().as_nanos();
        let one = capacity / calls;
        let passed = self.missing.1.map_or(Duration::ZERO, |since| until(since, now)).as_nanos();
        let missing = self.missing.0.saturating_sub(passed);
        let is_granted = missing + one <= capacity;
        let missing = if is_granted { missing + one } else { missing };
        self.missing = (missing, Some(now));
        let remaining = u32::try_from((capacity - missing.min(capacity)) / one.max(1)).unwrap_or(u32::MAX);
        let wait = if is_granted { missing } else { (missing + one).saturating_sub(capacity) };
        let reset_in = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        Verdict { is_granted, remaining, reset_in }
    }
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(counting: Counting) -> Quota {
        Quota::new(RateLimit { calls: 3, seconds: 60, counting, ..RateLimit::default() })
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn granted(quota: &mut Quota, seconds: &[i64]) -> Vec<bool> {
        seconds.iter().map(|second| quota.take(at(*second)).is_granted).collect()
    }

    #[test]
    fn a_fixed_window_forgets_all_at_its_end() {
        let mut quota = quota(Counting::FixedWindow);
        assert_eq!(
            granted(&mut quota, &[50, 51, 52, 53, 59, 60, 60, 60, 60]),
            [true, true, true, false, false, true, true, true, false]
        );
    }

    #[test]
    fn a_moving_window_forgets_call_by_call() {
        let mut quota = quota(Counting::MovingWindow);
        assert_eq!(
            granted(&mut quota, &[0, 20, 40, 59, 60, 61, 79, 80]),
            [true, true, true, false, true, false, false, true]
        );
        assert_eq!(quota.take(at(81)), Verdict { is_granted: false, remaining: 0, reset_in: Duration::from_secs(19) });
    }

    #[test]
    fn a_bucket_refills_evenly() {
        let mut quota = quota(Counting::TokenBucket);
        assert_eq!(
            granted(&mut quota, &[0, 0, 0, 0, 19, 20, 39, 40]),
            [true, true, true, false, false, true, false, true]
        );
    }

    #[test]
    fn a_clock_that_goes_back_breaks_no_count() {
        for counting in [Counting::FixedWindow, Counting::MovingWindow, Counting::TokenBucket] {
            let mut quota = quota(counting);
            for second in [100, 40, 100, 0, 7_000] {
                assert!(quota.take(at(second)).remaining <= 3);
            }
        }
    }
}
