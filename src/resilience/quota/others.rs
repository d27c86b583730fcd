//! What others who share the API key use, and how much of the window to leave them.
//!
//! The key may be shared with a discovery layer or a self-check that nobody told us about. What the server counted
//! and we did not send is theirs. Their use so far in this window, and in the last ones, is projected to its end, and
//! that much stays untouched; the nearer the end, the less is kept, so that nothing is wasted on a guess.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Windows remembered.
const REMEMBERED: usize = 3;
/// Projections are rounded up by this.
const MARGIN: f64 = 1.1;
/// What they used in earlier windows is kept in full until this part of the window is left.
const HELD_UNTIL: f64 = 0.25;
/// After a window in which they took all that was left, they may have wanted more.
const HUNGER: f64 = 1.25;
/// Use is projected once this part of the window has passed; before, it is noise.
const SETTLED: f64 = 0.05;

#[derive(Debug, Clone, Default)]
pub(super) struct Others {
    /// Calls of others in the last windows.
    earlier: VecDeque<f64>,
    used: f64,
    observed_at: Option<Instant>,
    went_short: bool,
    /// When less than our reserve was left for the last time.
    short_at: Option<Instant>,
}

impl Others {
    /// Notes that by `now` the server had counted `used` calls in this window that were not ours, and whether less
    /// than our reserve was left.
    pub(super) fn observe(&mut self, used: u32, limit: u32, went_short: bool, now: Instant) {
        // A call or two on either side of a window's edge are not a neighbour.
        let noise = 2 + limit / 200;
        self.used = f64::from(if used > noise { used } else { 0 });
        self.went_short = went_short && self.used > 0.0;
        if self.went_short {
            self.short_at = Some(now);
        }
        self.observed_at = Some(now);
    }

    /// The window is over.
    pub(super) fn close_window(&mut self) {
        if self.observed_at.take().is_none() {
            return;
        }
        let hunger = if self.went_short { HUNGER } else { 1.0 };
        self.earlier.push_back(self.used * hunger);
        if self.earlier.len() > REMEMBERED {
            self.earlier.pop_front();
        }
        self.used = 0.0;
        self.went_short = false;
    }

    /// Calls to leave to others until the window ends. `began` and `length` describe the window.
    pub(super) fn expected(&self, began: Instant, length: Duration, now: Instant) -> u32 {
        let length = length.as_secs_f64();
        let seen = self.observed_at.map_or(0.0, |at| at.saturating_duration_since(began).as_secs_f64());
        let left = length - now.saturating_duration_since(began).as_secs_f64();
        if length <= 0.0 || left <= 0.0 {
            return 0;
        }
        let earlier = self.earlier.iter().copied().fold(0.0, f64::max);
        let present_rate = if seen >= length * SETTLED { self.used / seen } else { 0.0 };
        let projected = present_rate.max(earlier / length) * left * MARGIN;
        let held = (earlier - self.used).max(0.0) * (left / (length * HELD_UNTIL)).min(1.0);
        projected.max(held).ceil() as u32
    }

    /// Calls to leave to others from `now` for `horizon`, where the server counts over the last `length` at any moment.
    pub(super) fn expected_during(&self, horizon: Duration, length: Duration, now: Instant) -> u32 {
        if length.is_zero() {
            return 0;
        }
        let remembered = length * REMEMBERED as u32;
        let is_hungry = self.short_at.is_some_and(|at| now.saturating_duration_since(at) < remembered);
        let wanted = self.used * if is_hungry { HUNGER } else { 1.0 };
        (wanted / length.as_secs_f64() * horizon.as_secs_f64() * MARGIN).ceil() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    #[test]
    fn steady_use_is_projected_to_the_end_of_the_window() {
        let start = Instant::now();
        let mut others = Others::default();
        assert_eq!(others.expected(start, WINDOW, start), 0, "nobody has been seen");
        others.observe(20, 1000, false, start + WINDOW / 10);
        let expected = others.expected(start, WINDOW, start + WINDOW / 10);
        assert!((190..=200).contains(&expected), "{expected}");
        assert!(others.expected(start, WINDOW, start + WINDOW * 9 / 10) <= 25);
        assert_eq!(others.expected(start, WINDOW, start + WINDOW), 0);
    }

    #[test]
    fn earlier_windows_are_remembered_for_a_while() {
        let start = Instant::now();
        let mut others = Others::default();
        others.observe(200, 1000, true, start + WINDOW / 2);
        others.close_window();
        assert_eq!(others.expected(start, WINDOW, start), 276, "they went short, so they may want more");
        for _ in 0..REMEMBERED {
            others.observe(0, 1000, false, start + WINDOW / 2);
            others.close_window();
        }
        assert_eq!(others.expected(start, WINDOW, start), 0);
    }

    #[test]
    fn a_stray_call_is_not_a_neighbour() {
        let start = Instant::now();
        let mut others = Others::default();
        others.observe(6, 1000, false, start + WINDOW / 10);
        assert_eq!(others.expected(start, WINDOW, start + WINDOW / 10), 0);
    }
}
