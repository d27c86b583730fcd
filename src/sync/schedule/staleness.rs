//! How old a stream may be: as old as its own schedule makes it, and the patience of people on top.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::CronSchedule;
use crate::sync::settings::Cadence;

/// Sierra's clock and ours may differ by so much, and a pass needs its moment to begin.
const SLACK: Duration = Duration::from_secs(60);

/// From what lag on a stream is stale.
#[derive(Debug, Clone)]
pub struct Staleness {
    rhythm: Rhythm,
    /// What people sit out, beyond what the schedule explains.
    patience: Duration,
    /// How far behind Sierra's clock a window ends.
    settle: Duration,
}

#[derive(Debug, Clone)]
enum Rhythm {
    Every(Duration),
    Cron(Box<CronSchedule>),
}

impl Staleness {
    /// Of a stream that is read as `cadence` says. A cron expression that cannot be read explains nothing: it is refused
    /// when an engine is opened.
    #[must_use]
    pub fn of(cadence: &Cadence, settle: Duration, patience: Duration) -> Self {
        let rhythm = match cadence {
            Cadence::Every(interval) => Rhythm::Every(*interval),
            Cadence::Cron { expression, zone } => CronSchedule::new(expression, zone)
                .map_or(Rhythm::Every(Duration::ZERO), |schedule| Rhythm::Cron(Box::new(schedule))),
        };
        Self { rhythm, patience, settle }
    }

    /// The lag from which on the stream is stale at `now`: what its schedule explains, how far its windows stay behind, and
    /// the patience. By cron the first follows from the last time whose pass must have ended by now: what was not captured
    /// since is late, whatever lies between two times, a night or a weekend.
    #[must_use]
    pub fn limit(&self, now: Timestamp) -> Duration {
        let explained = match &self.rhythm {
            Rhythm::Every(interval) => *interval,
            Rhythm::Cron(schedule) => {
                let patience = SignedDuration::try_from(self.patience).unwrap_or(SignedDuration::MAX);
                let ended = now.saturating_sub(patience).unwrap_or(Timestamp::MIN);
                let last = schedule.last_until(ended);
                let since = last.map(|last| Duration::try_from(ended.duration_since(last)).unwrap_or_default());
                // A schedule that has not come in years explains any age.
                since.unwrap_or(Duration::MAX)
            }
        };
        explained.saturating_add(self.settle).saturating_add(SLACK).saturating_add(self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1800);
    const SETTLE: Duration = Duration::from_secs(30);

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn cron(expression: &str, zone: &str) -> Staleness {
        let cadence = Cadence::Cron { expression: expression.to_owned(), zone: zone.to_owned() };
        Staleness::of(&cadence, SETTLE, PATIENCE)
    }

    /// Whether a stream that was captured up to `watermark` is stale at `now`.
    fn is_stale(staleness: &Staleness, watermark: &str, now: &str) -> bool {
        let (watermark, now) = (at(watermark), at(now));
        Duration::try_from(now.duration_since(watermark)).expect("the past") > staleness.limit(now)
    }

    #[test]
    fn an_interval_is_explained_and_the_patience_comes_on_top() {
        let hourly = Staleness::of(&Cadence::Every(Duration::from_secs(3600)), SETTLE, PATIENCE);
        assert_eq!(hourly.limit(at("2026-01-05T10:00:00Z")), Duration::from_secs(5400 + 30 + 60));
    }

    /// A window that ends two hours ago is as fresh as such a stream can be.
    #[test]
    fn how_far_windows_stay_behind_is_explained_too() {
        let settle = Duration::from_secs(7200);
        let settled = Staleness::of(&Cadence::Every(Duration::from_secs(300)), settle, PATIENCE);
        assert!(!is_stale(&settled, "2026-01-05T07:59:49Z", "2026-01-05T10:00:00Z"));
        assert!(!is_stale(&settled, "2026-01-05T07:55:00Z", "2026-01-05T10:00:00Z"));
        assert!(is_stale(&settled, "2026-01-05T07:20:00Z", "2026-01-05T10:00:00Z"));
    }

    #[test]
    fn a_nightly_stream_is_fresh_all_day_and_stale_half_an_hour_after_a_night_that_brought_nothing() {
        let nightly = cron("0 2 * * *", "UTC");
        for now in ["2026-01-05T02:10:00Z", "2026-01-05T12:00:00Z", "2026-01-06T01:59:59Z", "2026-01-06T02:29:59Z"] {
            assert!(!is_stale(&nightly, "2026-01-05T01:59:30Z", now), "{now}");
        }
        assert!(is_stale(&nightly, "2026-01-05T01:59:30Z", "2026-01-06T02:30:01Z"));
        assert!(!is_stale(&nightly, "2026-01-06T01:59:30Z", "2026-01-06T02:30:01Z"));
    }

    /// Neither the long gap of a weekend nor the short one after it is taken for the other.
    #[test]
    fn the_times_around_now_decide_and_not_an_average() {
        let weekdays = cron("0 2 * * 1-5", "UTC");
        // The 5th of January 2026 is a Monday.
        for now in ["2026-01-04T23:00:00Z", "2026-01-05T02:20:00Z"] {
            assert!(!is_stale(&weekdays, "2026-01-02T01:59:30Z", now), "{now}");
        }
        assert!(is_stale(&weekdays, "2026-01-02T01:59:30Z", "2026-01-05T02:31:00Z"));
        assert!(is_stale(&weekdays, "2026-01-05T01:59:30Z", "2026-01-06T02:31:00Z"));
        let office = cron("*/15 8-17 * * *", "America/New_York");
        // Closed at 17:45 (22:45 UTC), open again at 08:00 (13:00 UTC).
        assert!(!is_stale(&office, "2026-01-05T22:44:30Z", "2026-01-06T13:20:00Z"));
        assert!(is_stale(&office, "2026-01-05T22:44:30Z", "2026-01-06T13:31:00Z"));
    }

    /// On the night on which the clocks are set back, 02:00 in New York is 25 hours after 02:00.
    #[test]
    fn the_clock_on_the_wall_of_the_zone_counts() {
        let nightly = cron("30 2 * * *", "America/New_York");
        assert!(!is_stale(&nightly, "2026-10-31T06:29:30Z", "2026-11-01T07:55:00Z"));
        assert!(is_stale(&nightly, "2026-10-31T06:29:30Z", "2026-11-01T08:01:00Z"));
    }

    #[test]
    fn what_comes_every_few_years_is_found_too() {
        let leap = cron("0 0 29 2 *", "Europe/Berlin");
        assert!(!is_stale(&leap, "2024-02-28T22:59:30Z", "2027-12-31T12:00:00Z"));
        assert!(is_stale(&leap, "2024-02-28T22:59:30Z", "2028-03-01T12:00:00Z"));
    }
}
