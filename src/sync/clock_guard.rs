//! How far a run may look: Sierra's clock, checked against itself.
//!
//! Windows end by Sierra's `Date` and never by this machine's clock (BR-132). But Sierra's clock may be stepped too,
//! or two of its back-ends may disagree. Each `Date` is therefore compared with the last one plus the time that has
//! passed on a monotonic clock. A step is coped with, never followed blindly: the run uses the smaller bound, and the
//! next window reaches back further by the size of the step, so that records stamped by either clock are read.
//!
//! After a restart our own clock stands in for the monotonic one, as a witness: it decides nothing by what it shows, but
//! if `Date` went on by more or less than it did, one of them was stepped, and it costs little to reach back.
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
    /// What our own clock showed then.
    #[serde(default)]
    pub last_own: Option<Timestamp>,
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

/// Stamps that Sierra's clock has given twice, or will, since it was set back: before the step and after it. Of two
/// readings of a record they do not tell which is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    from: Timestamp,
    through: Timestamp,
}

impl Doubt {
    /// What is in doubt once a clock that last showed `last` shows `date`, set back by `step`; with what was in `earlier`
    /// doubt, unless that is long over.
    #[must_use]
    pub fn after(step: SignedDuration, last: Option<Timestamp>, date: Timestamp, earlier: Option<Self>) -> Self {
        // It may have been set back at any time since it was last looked at.
        let from = last.map_or(date, |last| last.saturating_sub(step.abs()).unwrap_or(Timestamp::MIN).min(date));
        let through = date.saturating_add(step.abs()).unwrap_or(Timestamp::MAX);
        match earlier.filter(|earlier| from.duration_since(earlier.through) <= FARTHEST) {
            Some(earlier) => Self { from: earlier.from.min(from), through: earlier.through.max(through) },
            None => Self { from, through },
        }
    }

    /// Whether `stamp` tells nothing.
    #[must_use]
    pub fn covers(&self, stamp: Timestamp) -> bool {
        self.from <= stamp && stamp <= self.through
    }
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
            (None, Some(last)) => self.step_since_restart(date, last, own),
            (None, None) => None,
        };
        let step = step.filter(|step| step.abs() > TOLERANCE);
        let expected = step.and_then(|step| date.checked_sub(step).ok()).map(whole_second);
        self.last = Some((date, at));
        self.memory = ClockMemory { last_date: Some(date), last_own: Some(own) };
        SierraTime { now: expected.map_or(date, |expected| expected.min(date)), step, absurd: None }
    }

    /// How far `date` is from what our own clock makes of the `last` one before a restart. A witness that went back, or
    /// is off by more than a day, is not heard; but no less time than none can have passed.
    fn step_since_restart(&self, date: Timestamp, last: Timestamp, own: Timestamp) -> Option<SignedDuration> {
        let passed = self.memory.last_own.map(|before| own.duration_since(before));
        let expected = passed.filter(|passed| !passed.is_negative()).and_then(|passed| last.checked_add(passed).ok());
        let step = expected.map(|expected| date.duration_since(expected)).filter(|step| step.abs() <= FARTHEST);
        step.or_else(|| (date < last).then(|| date.duration_since(last)))
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
        let memory = ClockMemory { last_date: Some(at("2026-01-05T10:00:00Z")), last_own: None };
        let now = Instant::now();
        let forward =
            ClockGuard::new(memory).observe(Some(at("2026-01-09T10:00:00Z")), at("2026-01-09T10:00:00Z"), now);
        assert_eq!(forward.step, None);
        let back = ClockGuard::new(memory).observe(Some(at("2026-01-05T09:00:00Z")), at("2026-01-09T10:00:00Z"), now);
        let step = Some(SignedDuration::from_secs(-3600));
        assert_eq!(back, SierraTime { now: at("2026-01-05T09:00:00Z"), step, absurd: None });
    }

    /// The process was not there when Sierra's clock was stepped; our own went on.
    #[tokio::test(start_paused = true)]
    async fn after_a_restart_our_own_clock_bears_witness_to_a_step() {
        let own = at("2026-01-05T10:00:07Z");
        let memory = ClockMemory { last_date: Some(at("2026-01-05T10:00:00Z")), last_own: Some(own) };
        let seen = |date: &str, own: &str| ClockGuard::new(memory).observe(Some(at(date)), at(own), Instant::now());
        let ahead = seen("2026-01-05T11:20:00Z", "2026-01-05T10:20:07Z");
        let step = Some(SignedDuration::from_hours(1));
        assert_eq!(ahead, SierraTime { now: at("2026-01-05T10:20:00Z"), step, absurd: None });
        let behind = seen("2026-01-05T10:10:00Z", "2026-01-05T10:20:07Z");
        let step = Some(SignedDuration::from_mins(-10));
        assert_eq!(behind, SierraTime { now: at("2026-01-05T10:10:00Z"), step, absurd: None });
        for (date, own) in [
            // Both went on alike.
            ("2026-02-05T10:00:00Z", "2026-02-05T10:00:30Z"),
            // The witness went back, or slept for a month: it is not heard.
            ("2026-01-05T10:20:00Z", "2026-01-05T09:00:00Z"),
            ("2026-01-05T10:20:00Z", "2026-02-05T10:00:00Z"),
        ] {
            assert_eq!(seen(date, own), SierraTime { now: at(date), step: None, absurd: None }, "{date} {own}");
        }
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
