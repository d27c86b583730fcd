//! How far a run may look: Sierra's clock, checked against itself.
//!
//! Windows end by Sierra's `Date` and never by this machine's clock (BR-132). But Sierra's clock may be stepped too,
//! or two of its back-ends may disagree. Each `Date` is therefore compared with the last one plus the time that has
//! passed on a monotonic clock. A step is coped with, never followed blindly: the run uses the smaller bound, and the
//! next window reaches back further by the size of the step, so that records stamped by either clock are read.
//!
//! A `Date` that no clock in service shows is no time at all (`FARTHEST`, `EARLIEST`): it counts as missing.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::sync::window::whole_second;

/// Differences up to this size are the network and the whole seconds of the header.
pub const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// How far our own clock is distrusted when Sierra answers without a `Date`.
pub const WITHOUT_DATE: SignedDuration = SignedDuration::from_mins(5);

/// A `Date` this far ahead of our own clock is absurd: believed, it would close windows that have not begun, and lift
/// the order of changes for ever. One this far *behind* it is absurd only if Sierra's clock was right before, since our
/// own may be the one that is ahead, and the smaller bound loses nothing.
pub const FARTHEST: SignedDuration = SignedDuration::from_hours(24);

/// Sierra had no REST API before 2013: an earlier `Date` is a machine's that does not know the time.
const EARLIEST: Timestamp = Timestamp::constant(1_356_998_400, 0);

/// Watches Sierra's clock. Kept across restarts as [`ClockMemory`].
#[derive(Debug, Clone)]
pub struct ClockGuard {
    last: Option<(Timestamp, Instant)>,
    memory: ClockMemory,
}

/// What survives a restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMemory {
    /// Sierra's last `Date`.
    pub last_date: Option<Timestamp>,
}

/// What one sign of life says about the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SierraTime {
    /// The time that a run may trust, before `settle` is taken off; whole seconds.
    pub now: Timestamp,
    /// How far Sierra's clock was stepped since the last sign of life, when that is more than [`TOLERANCE`]:
    /// positive forward, negative back.
    pub step: Option<SignedDuration>,
    /// The `Date` that was not believed.
    pub absurd: Option<Timestamp>,
}

impl ClockGuard {
    /// A guard that goes on from what was remembered.
    #[must_use]
    pub fn new(memory: ClockMemory) -> Self {
        Self { last: None, memory }
    }

    /// Takes note of Sierra's `date`, read at the monotonic moment `at`; without one, or with an absurd one, of our own
    /// clock's `own` time less [`WITHOUT_DATE`].
    pub fn observe(&mut self, date: Option<Timestamp>, own: Timestamp, at: Instant) -> SierraTime {
        let (date, absurd) = match date.map(whole_second) {
            Some(date) if self.is_absurd(date, own) => (None, Some(date)),
            date => (date, None),
        };
        let Some(date) = date else {
            let now = whole_second(own.checked_sub(WITHOUT_DATE).unwrap_or(own));
            return SierraTime { now, step: None, absurd };
        };
        let step = match (self.last, self.memory.last_date) {
            (Some((last, then)), _) => {
                let passed = SignedDuration::try_from(at.saturating_duration_since(then)).unwrap_or_default();
                let expected = last.checked_add(passed).unwrap_or(last);
                Some(date.duration_since(expected))
            }
            // After a restart it is unknown how much time has passed, but it cannot have been less than none.
            (None, Some(last)) if date < last => Some(date.duration_since(last)),
            (None, _) => None,
        };
        let step = step.filter(|step| step.abs() > TOLERANCE);
        let expected = step.and_then(|step| date.checked_sub(step).ok()).map(whole_second);
        self.last = Some((date, at));
        self.memory.last_date = Some(date);
        SierraTime { now: expected.map_or(date, |expected| expected.min(date)), step, absurd: None }
    }

    fn is_absurd(&self, date: Timestamp, own: Timestamp) -> bool {
        let was_right = |last: Timestamp| last.duration_since(own).abs() <= FARTHEST;
        let is_behind = own.duration_since(date) > FARTHEST && self.memory.last_date.is_some_and(was_right);
        date < EARLIEST || date.duration_since(own) > FARTHEST || is_behind
    }

    /// What must survive a restart.
    #[must_use]
    pub fn memory(&self) -> ClockMemory {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn guard_at(date: &str) -> (ClockGuard, Instant) {
        let start = Instant::now();
        let mut guard = ClockGuard::new(ClockMemory::default());
        assert_eq!(
            guard.observe(Some(at(date)), at(date), start),
            SierraTime { now: at(date), step: None, absurd: None }
        );
        (guard, start)
    }

    /// BR-132: our own clock plays no part while Sierra tells the time.
    #[tokio::test(start_paused = true)]
    async fn sierras_date_is_taken_whatever_our_clock_says() {
        let (mut guard, start) = guard_at("2026-01-05T10:00:00Z");
        let later = start + Duration::from_secs(300);
        let time = guard.observe(Some(at("2026-01-05T10:05:20Z")), at("2031-01-01T00:00:00Z"), later);
        assert_eq!(time, SierraTime { now: at("2026-01-05T10:05:20Z"), step: None, absurd: None });
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_in_either_direction_is_told_and_the_smaller_bound_taken() {
        for (date, expected_now, step) in [
            ("2026-01-05T11:05:00Z", "2026-01-05T10:05:00Z", 3600),
            ("2026-01-05T09:05:00Z", "2026-01-05T09:05:00Z", -3600),
        ] {
            let (mut guard, start) = guard_at("2026-01-05T10:00:00Z");
            let later = start + Duration::from_secs(300);
            let time = guard.observe(Some(at(date)), at(date), later);
            assert_eq!(
                time,
                SierraTime { now: at(expected_now), step: Some(SignedDuration::from_secs(step)), absurd: None },
                "{date}"
            );
            // The stepped clock is the new reference: the step is told once.
            let next = guard.observe(Some(at(date) + SignedDuration::from_secs(60)), at(date), later + TOLERANCE_STEP);
            assert_eq!(next.step, None, "{date}");
        }
    }

    const TOLERANCE_STEP: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn without_a_date_our_own_clock_is_distrusted_by_five_minutes() {
        let (mut guard, start) = guard_at("2026-01-05T10:00:00Z");
        let time = guard.observe(None, at("2026-01-05T10:10:00.7Z"), start + Duration::from_secs(600));
        assert_eq!(time, SierraTime { now: at("2026-01-05T10:05:00Z"), step: None, absurd: None });
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_restart_only_time_running_backwards_is_a_step() {
        let memory = ClockMemory { last_date: Some(at("2026-01-05T10:00:00Z")) };
        let now = Instant::now();
        let forward =
            ClockGuard::new(memory).observe(Some(at("2026-01-09T10:00:00Z")), at("2026-01-09T10:00:00Z"), now);
        assert_eq!(forward.step, None);
        let back = ClockGuard::new(memory).observe(Some(at("2026-01-05T09:00:00Z")), at("2026-01-09T10:00:00Z"), now);
        let step = Some(SignedDuration::from_secs(-3600));
        assert_eq!(back, SierraTime { now: at("2026-01-05T09:00:00Z"), step, absurd: None });
    }

    /// A `Date` that cannot be is neither followed nor remembered: the next good one is no step.
    #[tokio::test(start_paused = true)]
    async fn an_absurd_date_counts_as_missing() {
        let own = at("2026-01-05T10:10:00Z");
        for date in ["2100-01-01T00:00:00Z", "2026-01-07T00:00:00Z", "1970-01-01T00:00:10Z", "2025-12-31T23:00:00Z"] {
            let (mut guard, start) = guard_at("2026-01-05T10:00:00Z");
            let then = start + Duration::from_secs(600);
            let time = guard.observe(Some(at(date)), own, then);
            assert_eq!(time, SierraTime { now: at("2026-01-05T10:05:00Z"), step: None, absurd: Some(at(date)) });
            assert_eq!(guard.memory().last_date, Some(at("2026-01-05T10:00:00Z")));
            let next = guard.observe(Some(at("2026-01-05T10:10:00Z")), own, then);
            assert_eq!(next, SierraTime { now: own, step: None, absurd: None }, "{date}");
        }
    }

    /// At the first sight of each other nobody knows whose clock is right: the smaller bound loses nothing.
    #[tokio::test(start_paused = true)]
    async fn our_own_clock_may_be_the_one_that_is_ahead() {
        let mut guard = ClockGuard::new(ClockMemory::default());
        let time = guard.observe(Some(at("2026-01-05T10:00:00Z")), at("2031-01-01T00:00:00Z"), Instant::now());
        assert_eq!(time, SierraTime { now: at("2026-01-05T10:00:00Z"), step: None, absurd: None });
        let time = guard.observe(Some(at("1970-01-01T00:00:00Z")), at("2026-01-05T10:00:00Z"), Instant::now());
        assert_eq!(time.absurd, Some(at("1970-01-01T00:00:00Z")));
    }
}
