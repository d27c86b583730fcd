//! Cron expressions in IANA zones, over every change of the clocks.
//!
//! The expression is asked for times of the calendar alone; which instants these are is decided here, between one change
//! of the zone's offset and the next:
//! - A time that the clocks skip runs at the instant of the change, once, however many such times there are.
//! - A time that the clocks show twice runs the first time. If every hour matches, as in `*/5 * * * *`, it runs both
//!   times, since the expression then means a pace and not an hour: else it would pause for an hour each autumn.

use std::cmp::Ordering;

use croner::Cron;
use croner::errors::CronError as Failure;
use croner::parser::{CronParser, Seconds, Year};
use croner::time::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::sync::window::whole_second;

/// Changes of offset that are looked past for the next time, at most: no zone has more in a hundred years.
const CHANGES: usize = 1000;

/// A cron expression in a zone.
#[derive(Debug, Clone)]
pub struct CronSchedule {
    cron: Cron,
    zone: TimeZone,
    /// Whether the expression means a pace: every hour matches.
    is_pace: bool,
}

/// What is wrong with an expression or a zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// It cannot be read.
    #[error("{expression:?} is not a cron expression: {why}")]
    Expression {
        /// What was given.
        expression: String,
        /// Why.
        why: String,
    },
    /// It names no time at all, such as the 30th of February.
    #[error("{expression:?} never comes")]
    Never {
        /// What was given.
        expression: String,
    },
    /// There is no such zone.
    #[error("{zone:?} is not a time zone")]
    Zone {
        /// What was given.
        zone: String,
    },
}

impl CronSchedule {
    /// Reads a cron expression of five fields (minute, hour, day, month, weekday), or six with seconds in front.
    ///
    /// # Errors
    /// When the expression cannot be read or names no time, or there is no such zone.
    pub fn new(expression: &str, zone: &str) -> Result<Self, CronError> {
        let zone = Self::zone(zone)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let unreadable =
            |why: Failure| CronError::Expression { expression: expression.to_owned(), why: why.to_string() };
        let cron = parser.parse(expression).map_err(unreadable)?;
        let is_pace = (0..24).all(|hour| cron.pattern.hour_match(hour).unwrap_or(false));
        let schedule = Self { cron, zone, is_pace };
        match schedule.next_civil(jiff::civil::date(2024, 1, 1).at(0, 0, 0, 0)) {
            // A leap day, or a weekday on a given day of a month, comes every few years.
            Some(next) if next.year() < 2064 => Ok(schedule),
            _ => Err(CronError::Never { expression: expression.to_owned() }),
        }
    }

    /// The zone of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn zone(name: &str) -> Result<TimeZone, CronError> {
        TimeZone::get(name).map_err(|_| CronError::Zone { zone: name.to_owned() })
    }

    /// The first time after `at`; `None` beyond the end of the calendar.
    #[must_use]
    pub fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        let second = SignedDuration::from_secs(1);
        let mut from = whole_second(at).checked_add(second).ok()?;
        for _ in 0..CHANGES {
            let offset = self.zone.to_offset(from);
            let mut civil = offset.to_datetime(from);
            let begun = self.zone.preceding(from.checked_add(second).ok()?).next().map(|change| change.timestamp());
            if let Some(begun) = begun {
                let before = self.zone.to_offset(begun.checked_sub(second).ok()?).to_datetime(begun);
                let skips = before < offset.to_datetime(begun);
                if skips && begun == from && self.next_civil(before).is_some_and(|next| next < civil) {
                    return Some(from);
                }
                if !skips && !self.is_pace {
                    // What lies before was shown, and run, before the clocks were set back.
                    civil = civil.max(before);
                }
            }
            let next = self.next_civil(civil).and_then(|next| instant(next, offset))?;
            match self.zone.following(from).next().map(|change| change.timestamp()) {
                Some(change) if next >= change => from = change,
                _ => return Some(next),
            }
        }
        None
    }

    /// The last time up to `at`, `at` itself included; `None` when there was none within sixteen years.
    #[must_use]
    pub fn last_until(&self, at: Timestamp) -> Option<Timestamp> {
        const REACHES: u32 = 23;
        let at = whole_second(at);
        let comes_after = |second: i64| {
            let from = Timestamp::from_second(second).ok()?;
            self.next_after(from).filter(|next| *next <= at)
        };
        // Between `late`, behind which nothing comes any more, and `early`, behind which something does.
        let mut late = at.as_second();
        let back = |reach: u32| at.as_second().saturating_sub(60 << reach);
        let mut early = (0..=REACHES).map(back).find(|early| {
            let found = comes_after(*early).is_some();
            late = if found { late } else { *early };
            found
        })?;
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            if comes_after(middle).is_some() { early = middle } else { late = middle }
        }
        comes_after(early)
    }

    /// About how often it comes in a day.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
    pub fn times_per_day(&self) -> f64 {
        const DAYS: i64 = 28;
        let mut at = Timestamp::UNIX_EPOCH;
        let end = at.saturating_add(SignedDuration::from_hours(24 * DAYS)).unwrap_or(at);
        let mut count = 0_u32;
        while let Some(next) = self.next_after(at).filter(|next| *next <= end) {
            (count, at) = (count + 1, next);
        }
        f64::from(count) / DAYS as f64
    }

    /// The first time of the calendar from `from` on.
    fn next_civil(&self, from: DateTime) -> Option<DateTime> {
        self.cron.find_next_occurrence(&Civil(from), true).ok().map(|Civil(next)| next)
    }
}

fn instant(civil: DateTime, offset: Offset) -> Option<Timestamp> {
    offset.to_timestamp(civil).ok()
}

/// A time of the calendar, as the expression is asked about it: every one exists, once.
#[derive(Debug, Clone, Copy)]
struct Civil(DateTime);

impl CronDateTime for Civil {
    fn to_civil(&self) -> CivilDateTime {
        let unsigned = |part: i8| u32::try_from(part).unwrap_or(0);
        let Self(at) = self;
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(i32::from(at.year()), unsigned(at.month()), unsigned(at.day())),
            CivilTime::from_parts_unchecked(unsigned(at.hour()), unsigned(at.minute()), unsigned(at.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::try_from(self.0.weekday().to_sunday_zero_offset()).unwrap_or(0))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, Failure> {
        let small = |part: u32| i8::try_from(part).map_err(|_| Failure::InvalidDate);
        let year = i16::try_from(civil.year()).map_err(|_| Failure::InvalidDate)?;
        let (month, day) = (small(civil.month())?, small(civil.day())?);
        let (hour, minute, second) = (small(civil.hour())?, small(civil.minute())?, small(civil.second())?);
        let at = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| Failure::InvalidDate)?;
        Ok(Resolution::Single(Self(at)))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    /// The times after `from`, up to and including `to`.
    fn times(schedule: &CronSchedule, from: &str, to: &str) -> Vec<Timestamp> {
        let (mut now, end) = (at(from), at(to));
        let mut times = Vec::new();
        while let Some(next) = schedule.next_after(now).filter(|next| *next <= end) {
            assert!(next > now, "time goes on");
            times.push(next);
            now = next;
        }
        times
    }

    fn told(expression: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
        let schedule = CronSchedule::new(expression, zone).expect("sound");
        times(&schedule, from, to).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_skipped_time_runs_when_the_clocks_change_and_a_repeated_one_the_first_time() {
        // New York, 2026: 02:00 is followed by 03:00 on 8 March, and 02:00 by 01:00 on 1 November.
        let nightly = told("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", "2026-03-10T00:00:00Z");
        assert_eq!(nightly, ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
        let nightly = told("30 1 * * *", "America/New_York", "2026-10-31T00:00:00Z", "2026-11-03T00:00:00Z");
        assert_eq!(nightly, ["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]);
        let twice = told("0 1,2 * * *", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T12:00:00Z");
        assert_eq!(twice, ["2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z"], "01:00 once, and 02:00");
        let skipped = told("0,30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z");
        assert_eq!(skipped, ["2026-03-08T07:00:00Z"], "both of them at the change, once");
    }

    /// The tick right before a change is followed by the one at it.
    #[test]
    fn the_instant_of_a_change_is_not_stepped_over() {
        let schedule = CronSchedule::new("0 2 * * *", "America/New_York").expect("sound");
        assert_eq!(schedule.next_after(at("2026-03-08T06:59:59Z")), Some(at("2026-03-08T07:00:00Z")));
        assert_eq!(schedule.next_after(at("2026-03-08T06:59:59.5Z")), Some(at("2026-03-08T07:00:00Z")));
        assert_eq!(schedule.next_after(at("2026-03-08T07:00:00Z")), Some(at("2026-03-09T06:00:00Z")));
    }

    #[test]
    fn a_pace_keeps_its_pace_through_every_change_of_the_clocks() {
        for zone in
            ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC", "Asia/Kolkata", "Africa/Casablanca"]
        {
            let schedule = CronSchedule::new("*/15 * * * *", zone).expect("sound");
            let times = times(&schedule, "2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
            assert_eq!(times.len(), 2 * 365 * 96, "{zone}");
            assert!(times.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_secs() == 900), "{zone}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for wrong in ["", "soup", "61 * * * *", "* * * *", "0 0 0 1 1 * 2030"] {
            assert!(matches!(CronSchedule::new(wrong, "UTC"), Err(CronError::Expression { .. })), "{wrong}");
        }
        assert!(matches!(CronSchedule::new("0 0 30 2 *", "UTC"), Err(CronError::Never { .. })));
        assert!(matches!(CronSchedule::new("0 0 * * *", "Mars/Olympus"), Err(CronError::Zone { .. })));
        assert!(CronSchedule::new("0 0 29 2 *", "UTC").is_ok() && CronSchedule::new("30 0 2 * * *", "UTC").is_ok());
        let daily = CronSchedule::new("0 4 * * *", "Europe/Berlin").expect("sound").times_per_day();
        assert!((daily - 1.0).abs() < 0.1, "{daily}");
    }

    /// The day whose time `hour`:`minute` is run at `time`: where the clocks skip it, that of the skipped time.
    fn day_of(time: Timestamp, hour: i8, minute: i8, zone: &TimeZone) -> jiff::civil::Date {
        let second = SignedDuration::from_secs(1);
        let after = zone.to_datetime(time);
        let before = zone.to_offset(time - second).to_datetime(time);
        let skipped = [before.date(), after.date()].into_iter().find(|day| {
            let wanted = day.at(hour, minute, 0, 0);
            before <= wanted && wanted < after
        });
        skipped.unwrap_or(after.date())
    }

    /// Every zone, over all its changes of two years: a daily time runs once a local day, no day is missed, none has two.
    #[test]
    fn a_daily_time_runs_once_a_day_in_every_zone_for_two_years() {
        let (from, to) = ("2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
        let mut looked_at = BTreeSet::new();
        for name in jiff::tz::db().available().map(|name| name.to_string()) {
            let Ok(zone) = TimeZone::get(&name) else { continue };
            let changes = zone.following(at(from)).take_while(|change| change.timestamp() <= at(to));
            let changes: Vec<(Timestamp, i32)> =
                changes.map(|change| (change.timestamp(), zone.to_offset(change.timestamp()).seconds())).collect();
            // Many names stand for one and the same zone.
            if !looked_at.insert((zone.to_offset(at(from)).seconds(), changes)) {
                continue;
            }
            // At the hours at which clocks are changed somewhere, and the last minute of the day.
            for (hour, minute) in [(0, 0), (0, 30), (1, 0), (1, 30), (2, 0), (2, 30), (3, 0), (23, 59)] {
                let schedule = CronSchedule::new(&format!("{minute} {hour} * * *"), &name).expect("sound");
                let times = times(&schedule, from, to);
                let days: Vec<_> = times.iter().map(|time| day_of(*time, hour, minute, &zone)).collect();
                let is_wrong = |pair: &&[jiff::civil::Date]| pair[0].tomorrow().ok() != Some(pair[1]);
                assert_eq!(days.windows(2).find(is_wrong), None, "{name} {hour}:{minute}");
                assert!((729..=731).contains(&times.len()), "{name} {hour}:{minute}: {}", times.len());
            }
        }
        assert!(looked_at.len() > 60, "only {} zones were looked at", looked_at.len());
    }

    proptest::proptest! {
        /// Whatever the expression, zone and moment: what comes next comes later, nothing lies between, and stepping
        /// from tick to tick finds what is found from anywhere in between.
        #[test]
        fn the_next_time_does_not_depend_on_where_it_is_asked_from(
            minute in 0_u32..60, hour in 0_u32..24, pace: bool, zone in 0_usize..5,
            second in 1_767_225_600_i64..1_830_297_600, back in 1_i64..100_000
        ) {
            let zone = ["America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Santiago", "UTC"][zone];
            let hours = if pace { "*".to_owned() } else { hour.to_string() };
            let schedule = CronSchedule::new(&format!("{minute} {hours} * * *"), zone).expect("sound");
            let now = Timestamp::from_second(second).expect("a time");
            let next = schedule.next_after(now).expect("there is one");
            proptest::prop_assert!(next > now);
            proptest::prop_assert_eq!(schedule.last_until(next), Some(next));
            let just_before = Timestamp::from_second(next.as_second() - 1).expect("a time");
            let last = schedule.last_until(just_before).expect("there is one");
            proptest::prop_assert_eq!(schedule.next_after(last), Some(next), "nothing lies between");
            let between = Timestamp::from_second(next.as_second() - 1).expect("a time").max(now);
            proptest::prop_assert_eq!(schedule.next_after(between), Some(next));
            let earlier = Timestamp::from_second(second - back).expect("a time");
            let mut reached = earlier;
            while reached <= now {
                reached = schedule.next_after(reached).expect("there is one");
            }
            proptest::prop_assert_eq!(reached, next);
        }
    }
}
