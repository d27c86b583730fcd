//! Coming back after a stall (A18): for a while slower and one at a time, until the quota holds.
//!
//! `recover` drains, clears what was remembered of the server's limits, forces a new token, and re-engages through
//! this state machine.

use std::time::Duration;

use super::settings::RetrySettings;

/// The base of waits while re-engaging.
const CAUTIOUS_BASE: Duration = Duration::from_secs(2);
/// Re-engaging ends when more than this part of the window is left …
const ENOUGH_LEFT: f64 = 0.30;
/// … and less than this part of the last answers was 429 …
const FEW_REFUSALS: f64 = 0.01;
/// … over at least so many answers: fewer cannot show one in a hundred. Of a grant so small that these would eat into
/// what must be left, a third has to do, without a single refusal.
const ANSWERS: u32 = 100;
/// And so many in any case.
const FEWEST_ANSWERS: u32 = 10;

/// Whether the service is re-engaging after a stall. Pure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    engaged: Option<Counts>,
    /// How the last re-engagement stood when the quota held.
    ended: Option<RecoveryProgress>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    answers: u32,
    refusals: u32,
    limit: Option<u32>,
    remaining: Option<u32>,
}

/// How far a re-engagement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Answers counted so far.
    pub answers: u32,
    /// Answers that it takes.
    pub needed: u32,
    /// 429 among them.
    pub refusals: u32,
    /// Calls that the server grants per window, if it says so.
    pub limit: Option<u32>,
    /// Calls that are left of them, if it says so.
    pub remaining: Option<u32>,
}

impl RecoveryProgress {
    /// More than 30 % of the window is left, as far as the server tells.
    #[must_use]
    pub fn has_enough_left(&self) -> bool {
        match (self.limit, self.remaining) {
            (Some(limit), Some(remaining)) => f64::from(remaining) > f64::from(limit) * ENOUGH_LEFT,
            _ => true,
        }
    }

    /// Less than one in a hundred answers was a refusal.
    #[must_use]
    pub fn has_few_refusals(&self) -> bool {
        self.refusals == 0 || f64::from(self.refusals) < f64::from(self.answers) * FEW_REFUSALS
    }

    /// There are enough answers to judge by.
    #[must_use]
    pub const fn has_enough_answers(&self) -> bool {
        self.answers >= self.needed
    }

    /// The quota holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.has_enough_answers() && self.has_few_refusals() && self.has_enough_left()
    }
}

impl Counts {
    fn progress(self) -> RecoveryProgress {
        let needed = self.limit.map_or(ANSWERS, |limit| (limit / 3).clamp(FEWEST_ANSWERS, ANSWERS));
        let Self { answers, refusals, limit, remaining } = self;
        RecoveryProgress { answers, needed, refusals, limit, remaining }
    }
}

impl Recovery {
    /// Begins to re-engage.
    pub fn engage(&mut self) {
        self.engaged = Some(Counts::default());
    }

    /// Whether calls go slower and one at a time.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.engaged.is_some()
    }

    /// How far it is, or how it ended; `None` when it never began.
    #[must_use]
    pub fn progress(&self) -> Option<RecoveryProgress> {
        self.engaged.map(Counts::progress).or(self.ended)
    }

    /// An answer came. Returns how the re-engagement stood when this ended it.
    pub fn on_answer(&mut self, limit: Option<u32>, remaining: Option<u32>, is_429: bool) -> Option<RecoveryProgress> {
        let counts = self.engaged.as_mut()?;
        counts.answers = counts.answers.saturating_add(1);
        counts.refusals = counts.refusals.saturating_add(u32::from(is_429));
        counts.limit = limit.or(counts.limit);
        counts.remaining = remaining.or(counts.remaining);
        let progress = counts.progress();
        if progress.holds() {
            (self.engaged, self.ended) = (None, Some(progress));
            return Some(progress);
        }
        if progress.has_enough_answers() && !progress.has_few_refusals() {
            *counts = Counts { answers: 0, refusals: 0, ..*counts };
        }
        None
    }

    /// The retry settings in force.
    #[must_use]
    pub fn apply(&self, settings: RetrySettings) -> RetrySettings {
        if self.engaged.is_none() {
            return settings;
        }
        let base = settings.base.max(CAUTIOUS_BASE);
        RetrySettings { base, cap: settings.cap.max(base), ..settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A18: base 2.0 s and one call at a time until more than 30 % are left and the rate of 429 is under 1 %.
    #[test]
    fn re_engagement_ends_only_when_quota_holds() {
        let mut recovery = Recovery::default();
        assert!(!recovery.is_engaged());
        recovery.engage();
        assert_eq!(recovery.apply(RetrySettings::default()).base, CAUTIOUS_BASE);
        assert_eq!(recovery.on_answer(Some(1000), Some(900), true), None);
        for _ in 1..ANSWERS {
            assert_eq!(recovery.on_answer(Some(1000), Some(900), false), None, "one in a hundred is not under 1 %");
        }
        for _ in 0..ANSWERS {
            assert_eq!(recovery.on_answer(Some(1000), Some(300), false), None, "30 % is not more than 30 %");
        }
        let ended = recovery.on_answer(Some(1000), Some(301), false).expect("the quota holds");
        assert_eq!((ended.answers, ended.refusals, ended.remaining), (ANSWERS + 1, 0, Some(301)));
        assert_eq!(recovery.apply(RetrySettings::default()), RetrySettings::default());
    }

    #[test]
    fn without_headers_only_the_refusals_count() {
        let mut recovery = Recovery::default();
        recovery.engage();
        let ended = (0..ANSWERS).filter(|_| recovery.on_answer(None, None, false).is_some()).count();
        assert_eq!((ended, recovery.is_engaged()), (1, false));
    }

    /// A hundred calls out of a grant of a hundred would leave nothing: a third shows enough if none is refused.
    #[test]
    fn a_small_grant_is_not_spent_on_finding_out() {
        for (limit, needed) in [(100, 33), (20, 10), (12, 10), (1000, 100)] {
            let mut recovery = Recovery::default();
            recovery.engage();
            for sent in 1..needed {
                assert_eq!(recovery.on_answer(Some(limit), Some(limit - sent.min(limit / 2)), false), None, "{limit}");
            }
            let ended = recovery.on_answer(Some(limit), Some(limit), false).expect("the quota holds");
            assert_eq!((ended.answers, ended.needed), (needed, needed));

            recovery.engage();
            let refused = (0..needed).filter(|sent| recovery.on_answer(Some(limit), Some(limit), *sent == 0).is_some());
            assert_eq!(refused.count(), 0, "{limit}: one refusal in so few is not under 1 %");
        }
    }
}
