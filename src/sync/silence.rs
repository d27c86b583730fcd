//! How unlikely it is that nothing comes: an hour without a change is told only where such hours usually bring some.
//!
//! Empty windows are the rule at night and at weekends, and a feed that has died looks just like them. So it is learnt
//! for each hour of the week how often it brought anything, and a silence is held against the hours it lasted through.
//! A stream that is not looked at every hour teaches nothing, and its silence is never told.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Hours of a week.
const WEEK: usize = 7 * 24;
/// Weeks that an hour is remembered for, about.
const KEPT: u8 = 8;
/// From one in a million on it is told: thousandths of the natural logarithm.
const UNLIKELY: u32 = 13_816;

/// What is known of one stream's silence. Hours are those of UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// For each hour of the week, in how many weeks it was looked at and in how many of these something came.
    hours: Vec<(u8, u8)>,
    /// The hour that is under way, counted from 1970, and whether something came in it.
    hour: Option<(i64, bool)>,
    /// Since when nothing has come.
    since: Option<Timestamp>,
    /// How unlikely that is, in thousandths of the natural logarithm.
    unlikeliness: u32,
}

impl Silence {
    /// Notes that by `now` everything was read, and whether something came.
    pub fn note(&mut self, came: bool, now: Timestamp) {
        let hour = now.as_second().div_euclid(3_600);
        let before = match self.hour {
            Some((last, before)) if last == hour => before,
            Some((last, before)) => {
                if last + 1 == hour {
                    self.close(last, before);
                }
                false
            }
            None => false,
        };
        self.hour = Some((hour, before || came));
        if came {
            (self.since, self.unlikeliness) = (None, 0);
        } else {
            self.since.get_or_insert(now);
        }
    }

    /// Since when nothing has come, once that is unlikely.
    #[must_use]
    pub fn unlikely_since(&self) -> Option<Timestamp> {
        self.since.filter(|_| self.unlikeliness >= UNLIKELY)
    }

    fn close(&mut self, hour: i64, came: bool) {
        self.hours.resize(WEEK, (0, 0));
        let is_unlikely = self.unlikely_since().is_some();
        let place = usize::try_from(hour.rem_euclid(WEEK as i64)).unwrap_or(0);
        let Some((weeks, with)) = self.hours.get_mut(place) else { return };
        if !came {
            // Never certain, however often it was so: with two weeks more, and none of them with anything.
            let share = f64::from(*with) / (f64::from(*weeks) + 2.0);
            self.unlikeliness = self.unlikeliness.saturating_add(thousandths(-(1.0 - share).ln()));
        }
        if is_unlikely {
            // What is told as unlikely must not become the rule.
            return;
        }
        (*weeks, *with) = (*weeks + 1, *with + u8::from(came));
        if *weeks > KEPT {
            (*weeks, *with) = (*weeks / 2, *with / 2);
        }
    }
}

fn thousandths(value: f64) -> u32 {
    (value * 1_000.0).clamp(0.0, 100_000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five-minute passes from Monday on, for so many hours; something comes from 8 to 18 on working days, until `dead`.
    fn lived(hours: i64, dead: i64) -> (Silence, Option<i64>) {
        let monday: Timestamp = "2026-01-05T00:00:00Z".parse().expect("a timestamp");
        let (mut silence, mut told) = (Silence::default(), None);
        for minute in (0..hours * 60).step_by(5) {
            let (hour, day) = (minute / 60 % 24, minute / 1_440 % 7);
            let works = (8..18).contains(&hour) && day < 5 && minute % 30 == 0;
            silence.note(works && minute < dead * 60, monday + jiff::SignedDuration::from_mins(minute));
            told = told.or(silence.unlikely_since().map(|_| minute / 60));
        }
        (silence, told)
    }

    const WEEK: i64 = 7 * 24;

    /// BR-065: nights, weekends and a feed's first weeks are nothing to tell.
    #[test]
    fn a_library_that_sleeps_at_night_is_never_told() {
        assert_eq!(lived(12 * WEEK, i64::MAX / 60).1, None);
    }

    /// BR-065: a feed that dies on a Friday evening is told within the next working days, and not at the weekend.
    #[test]
    fn a_feed_that_dies_is_told_when_people_work_again() {
        let friday_evening = 5 * WEEK + 4 * 24 + 18;
        let told = lived(6 * WEEK + 4 * 24, friday_evening).1.expect("it is told");
        let hours_of_work = told - 6 * WEEK;
        assert!((14..3 * 24).contains(&hours_of_work), "{hours_of_work} hours into Monday");
    }

    /// While it is told nothing is learnt from it, and the next change ends it.
    #[test]
    fn a_silence_lasts_until_something_comes() {
        let (mut silence, told) = lived(20 * WEEK, 5 * WEEK);
        assert!(told.is_some() && silence.unlikely_since().is_some(), "it did not become the rule");
        let monday: Timestamp = "2026-06-01T12:00:00Z".parse().expect("a timestamp");
        silence.note(true, monday);
        assert_eq!(silence.unlikely_since(), None);
        for minute in (5..2 * 1_440).step_by(5) {
            silence.note(false, monday + jiff::SignedDuration::from_mins(minute));
        }
        assert!(silence.unlikely_since().is_some(), "what working days bring was not forgotten over it");
    }

    /// Hours between passes that come once a day say nothing.
    #[test]
    fn what_is_looked_at_once_a_day_teaches_nothing() {
        let start: Timestamp = "2026-01-05T02:00:00Z".parse().expect("a timestamp");
        let mut silence = Silence::default();
        for day in 0..200 {
            silence.note(day < 60, start + jiff::SignedDuration::from_hours(24 * day));
        }
        assert_eq!(silence.unlikely_since(), None);
    }
}
