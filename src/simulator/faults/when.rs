//! To which calls a fault happens.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Deserialize;

/// A choice among the calls that a planned fault sees. Calls are counted from one, from the moment of planning.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum When {
    /// Every call.
    Always,
    /// The n-th call alone.
    Nth(u64),
    /// The first n calls.
    First(u64),
    /// The calls from one to another, both included.
    Calls {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// Every k-th call.
    Every(u64),
    /// Calls by chance, with this probability.
    Chance(f64),
    /// Calls in a span of time that begins some time after planning.
    Span {
        /// Time from planning to the beginning.
        after: SignedDuration,
        /// How long it lasts; the end is no longer in it.
        lasts: SignedDuration,
    },
    /// Calls at a time of day in the library's zone; a span over midnight is understood.
    Daily {
        /// The beginning.
        from: Time,
        /// The end, no longer in it.
        to: Time,
    },
}

impl When {
    /// Whether the `count`-th call, now, is chosen.
    pub(super) fn chooses(
        &self,
        count: u64,
        now: Timestamp,
        planned: Timestamp,
        zone: &TimeZone,
        rng: &mut StdRng,
    ) -> bool {
        match *self {
            Self::Always => true,
            Self::Nth(n) => count == n,
            Self::First(n) => count <= n,
            Self::Calls { from, to } => (from..=to).contains(&count),
            Self::Every(k) => count.is_multiple_of(k.max(1)),
            Self::Chance(probability) => rng.random_bool(probability.clamp(0.0, 1.0)),
            Self::Span { after, lasts } => {
                let age = now.duration_since(planned);
                age >= after && age < after.saturating_add(lasts)
            }
            Self::Daily { from, to } => {
                let time = zone.to_datetime(now).time();
                if from <= to { from <= time && time < to } else { time >= from || time < to }
            }
        }
    }

    /// Whether no later call can be chosen.
    pub(super) fn is_spent(&self, count: u64, now: Timestamp, planned: Timestamp) -> bool {
        match *self {
            Self::Nth(n) | Self::First(n) => count >= n,
            Self::Calls { to, .. } => count >= to,
            Self::Span { after, lasts } => now.duration_since(planned) >= after.saturating_add(lasts),
            Self::Always | Self::Every(_) | Self::Chance(_) | Self::Daily { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;

    fn chosen(when: &When, count: u64, now: &str) -> bool {
        let mut rng = RootSeed::new(1).generator("test");
        let planned = "2026-01-05T10:00:00Z".parse().unwrap();
        when.chooses(count, now.parse().unwrap(), planned, &TimeZone::UTC, &mut rng)
    }

    #[test]
    fn spans_count_from_planning_and_exclude_their_end() {
        let span = When::Span { after: SignedDuration::from_secs(10), lasts: SignedDuration::from_secs(5) };
        let at = |second: &str| chosen(&span, 1, &format!("2026-01-05T10:00:{second}Z"));
        assert_eq!(["09", "10", "14", "15"].map(at), [false, true, true, false]);
    }

    #[test]
    fn nights_go_over_midnight() {
        let night = When::Daily { from: "23:30".parse().unwrap(), to: "04:15".parse().unwrap() };
        let at = |time: &str| chosen(&night, 1, &format!("2026-01-06T{time}:00Z"));
        assert_eq!(["23:29", "23:30", "00:00", "04:14", "04:15"].map(at), [false, true, true, true, false]);
    }
}
