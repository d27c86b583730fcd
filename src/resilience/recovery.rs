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
/// … over at least so many answers: fewer cannot show one in a hundred.
const ANSWERS: u32 = 100;

/// Whether the service is re-engaging after a stall. Pure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    engaged: Option<Counts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    answers: u32,
    refusals: u32,
    left_is_enough: bool,
}

impl Recovery {
    /// Begins to re-engage.
    pub fn engage(&mut self) {
        self.engaged = Some(Counts { left_is_enough: true, ..Counts::default() });
    }

    /// Whether calls go slower and one at a time.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.engaged.is_some()
    }

    /// An answer came. Returns true when this ends the re-engagement.
    pub fn on_answer(&mut self, limit: Option<u32>, remaining: Option<u32>, is_429: bool) -> bool {
        let Some(counts) = &mut self.engaged else { return false };
        counts.answers += 1;
        counts.refusals += u32::from(is_429);
        if let (Some(limit), Some(remaining)) = (limit, remaining) {
            counts.left_is_enough = f64::from(remaining) > f64::from(limit) * ENOUGH_LEFT;
        }
        if counts.answers < ANSWERS {
            return false;
        }
        let few = f64::from(counts.refusals) < f64::from(counts.answers) * FEW_REFUSALS;
        if few && counts.left_is_enough {
            self.engaged = None;
            return true;
        }
        if !few {
            *counts = Counts { left_is_enough: counts.left_is_enough, ..Counts::default() };
        }
        false
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
        assert!(!recovery.on_answer(Some(1000), Some(900), true));
        for _ in 1..ANSWERS {
            assert!(!recovery.on_answer(Some(1000), Some(900), false), "one in a hundred is not under 1 %");
        }
        for _ in 0..ANSWERS {
            assert!(!recovery.on_answer(Some(1000), Some(300), false), "30 % is not more than 30 %");
        }
        assert!(recovery.on_answer(Some(1000), Some(301), false));
        assert_eq!(recovery.apply(RetrySettings::default()), RetrySettings::default());
    }

    #[test]
    fn without_headers_only_the_refusals_count() {
        let mut recovery = Recovery::default();
        recovery.engage();
        let ended = (0..ANSWERS).filter(|_| recovery.on_answer(None, None, false)).count();
        assert_eq!((ended, recovery.is_engaged()), (1, false));
    }
}
