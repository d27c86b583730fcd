//! One thing that is done again and again, on an interval or by cron; never before it was done the last time.
//!
//! Two clocks are asked. The steady one knows nothing of a machine that was suspended, and the one on the wall may be
//! stepped; so an interval is over as soon as either says so, and a cron tick is due by the wall.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::{Rng, RngExt};

use super::CronSchedule;

/// Each interval is drawn from this share around its length, so that many installations do not call at once.
const JITTER: f64 = 0.05;
/// A cron tick is put off by this share of the time to the one after it, at most…
const CRON_JITTER: f64 = 0.05;
/// …and by so much.
const CRON_JITTER_CAP: Duration = Duration::from_secs(30);
/// A clock that is set back by more than this was wrong before: what ran by it does not count.
const WRONG: SignedDuration = SignedDuration::from_hours(24);

/// What both clocks say at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Our own clock; it may be stepped.
    pub wall: Timestamp,
    /// Time that passed since some beginning; it stands still while the machine is suspended.
    pub steady: Duration,
}

/// Something that is due again and again. Ticks that were missed run once.
#[derive(Debug, Clone)]
pub struct Ticker {
    rhythm: Rhythm,
    due: Due,
}

#[derive(Debug, Clone)]
enum Rhythm {
    Every(Duration),
    Cron {
        schedule: Box<CronSchedule>,
        /// When it was done last, by the wall.
        last: Option<Timestamp>,
        /// By how much the next tick is put off.
        delay: SignedDuration,
    },
}

/// Due as soon as one of the two has come.
#[derive(Debug, Clone, Copy)]
struct Due {
    wall: Timestamp,
    steady: Option<Duration>,
}

impl Ticker {
    /// Due at once, and then every so often.
    #[must_use]
    pub fn every(interval: Duration, now: Moment) -> Self {
        Self { rhythm: Rhythm::Every(interval), due: Due { wall: now.wall, steady: Some(now.steady) } }
    }

    /// Due at each tick of `schedule` after it was done `last`; at once if it never was.
    #[must_use]
    pub fn cron(schedule: CronSchedule, last: Option<Timestamp>, now: Moment) -> Self {
        let wall = last.map_or(Some(now.wall), |last| schedule.next_after(last)).unwrap_or(Timestamp::MAX);
        let rhythm = Rhythm::Cron { schedule: Box::new(schedule), last, delay: SignedDuration::ZERO };
        Self { rhythm, due: Due { wall, steady: None } }
    }

    /// Takes note of a clock that was set back: a tick that had been put off to far beyond comes when it should.
    pub fn look(&mut self, now: Moment) {
        let Rhythm::Cron { schedule, last: Some(last), delay } = &self.rhythm else { return };
        let next = schedule.next_after(counted_from(*last, now.wall));
        if let Some(next) = next.and_then(|next| next.checked_add(*delay).ok()) {
            self.due.wall = self.due.wall.min(next);
        }
    }

    /// Whether it is due.
    #[must_use]
    pub fn is_due(&self, now: Moment) -> bool {
        self.due.wall <= now.wall || self.due.steady.is_some_and(|steady| steady <= now.steady)
    }

    /// How long until it is due.
    #[must_use]
    pub fn left(&self, now: Moment) -> Duration {
        let wall = Duration::try_from(self.due.wall.duration_since(now.wall)).unwrap_or_default();
        self.due.steady.map_or(wall, |steady| steady.saturating_sub(now.steady).min(wall))
    }

    /// It was done: due again an interval after it was due last, or after now if more than one has passed or it was done
    /// before it was due; or at the next tick.
    pub fn done(&mut self, now: Moment, generator: &mut impl Rng) {
        match &mut self.rhythm {
            Rhythm::Every(interval) => {
                let stretched = interval.mul_f64(generator.random_range(1.0 - JITTER..=1.0 + JITTER));
                let next = self.due.steady.unwrap_or(now.steady).min(now.steady) + stretched;
                let next = if next > now.steady { next } else { now.steady + stretched };
                let left = SignedDuration::try_from(next - now.steady).unwrap_or(SignedDuration::MAX);
                self.due = Due { wall: now.wall.saturating_add(left).unwrap_or(Timestamp::MAX), steady: Some(next) };
            }
            Rhythm::Cron { schedule, last, delay } => {
                let from = last.map_or(now.wall, |last| counted_from(last, now.wall));
                *last = Some(from);
                let Some(next) = schedule.next_after(from) else {
                    self.due = Due { wall: Timestamp::MAX, steady: None };
                    return;
                };
                let gap = schedule.next_after(next).map_or(SignedDuration::ZERO, |after| after.duration_since(next));
                let most = Duration::try_from(gap).unwrap_or_default().mul_f64(CRON_JITTER).min(CRON_JITTER_CAP);
                let drawn = generator.random_range(Duration::ZERO..=most);
                *delay = SignedDuration::try_from(drawn).unwrap_or(SignedDuration::ZERO);
                self.due = Due { wall: next.saturating_add(*delay).unwrap_or(next), steady: None };
            }
        }
    }

    /// It could not be done: due again soon, and no later than it would have been.
    pub fn again_within(&mut self, now: Moment, soon: Duration) {
        let soon = match &self.rhythm {
            Rhythm::Every(interval) => soon.min(*interval),
            Rhythm::Cron { .. } => soon,
        };
        let left = SignedDuration::try_from(soon).unwrap_or(SignedDuration::MAX);
        let wall = now.wall.saturating_add(left).unwrap_or(Timestamp::MAX);
        self.due = Due { wall, steady: Some(now.steady + soon) };
    }
}

/// From when on ticks count: a clock that was set back a little runs none of them a second time.
fn counted_from(last: Timestamp, now: Timestamp) -> Timestamp {
    if last.duration_since(now) > WRONG { now } else { last.max(now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    /// So many minutes after the beginning, by both clocks.
    fn minutes(count: u32) -> Moment {
        let steady = count * MINUTE;
        Moment { wall: at("2026-01-05T10:00:00Z") + SignedDuration::try_from(steady).expect("short"), steady }
    }

    fn generator() -> impl Rng {
        RootSeed::new(1).generator("schedule")
    }

    fn nightly(last: Option<&str>, now: &str) -> Ticker {
        let schedule = CronSchedule::new("0 2 * * *", "America/New_York").expect("sound");
        Ticker::cron(schedule, last.map(at), by_wall(now))
    }

    fn by_wall(now: &str) -> Moment {
        Moment { wall: at(now), steady: Duration::ZERO }
    }

    #[test]
    fn an_interval_keeps_its_pace_within_its_jitter() {
        let mut generator = generator();
        let mut ticker = Ticker::every(5 * MINUTE, minutes(0));
        assert!(ticker.is_due(minutes(0)));
        let mut now = minutes(0);
        for _ in 0..100 {
            ticker.done(now, &mut generator);
            let gap = ticker.left(now);
            assert!(gap >= Duration::from_secs(285) && gap <= Duration::from_secs(315), "{gap:?}");
            assert!(!ticker.is_due(now));
            now = Moment { wall: now.wall + SignedDuration::try_from(gap).expect("short"), steady: now.steady + gap };
            assert!(ticker.is_due(now));
        }
    }

    #[test]
    fn missed_intervals_run_once() {
        let mut ticker = Ticker::every(5 * MINUTE, minutes(0));
        ticker.done(minutes(600), &mut generator());
        assert!(ticker.left(minutes(600)) > 4 * MINUTE);
    }

    /// Somebody asked for it, again and again: the next one is an interval away from now, not from the one that was due.
    #[test]
    fn what_is_done_before_it_is_due_puts_the_next_off_by_no_more_than_an_interval() {
        let mut generator = generator();
        let mut ticker = Ticker::every(5 * MINUTE, minutes(0));
        ticker.done(minutes(0), &mut generator);
        for _ in 0..3 {
            ticker.done(minutes(1), &mut generator);
            let left = ticker.left(minutes(1));
            assert!(left >= Duration::from_secs(285) && left <= Duration::from_secs(315), "{left:?}");
        }
        // Woken by the wall, while the steady clock stood still.
        let woken = Moment { steady: minutes(2).steady, ..minutes(600) };
        assert!(ticker.is_due(woken));
        ticker.done(woken, &mut generator);
        assert!(ticker.left(woken) <= Duration::from_secs(315), "{:?}", ticker.left(woken));
    }

    #[test]
    fn what_could_not_be_done_is_due_soon() {
        let soon = Duration::from_secs(30);
        let mut ticker = Ticker::every(5 * MINUTE, minutes(0));
        ticker.again_within(minutes(0), soon);
        assert_eq!(ticker.left(minutes(0)), soon);
        let mut quick = Ticker::every(Duration::from_secs(2), minutes(0));
        quick.again_within(minutes(0), soon);
        assert_eq!(quick.left(minutes(0)), Duration::from_secs(2));
    }

    /// The steady clock stood still; the one on the wall did not.
    #[test]
    fn an_interval_is_over_when_a_suspended_machine_wakes() {
        let mut ticker = Ticker::every(60 * MINUTE, minutes(0));
        ticker.done(minutes(0), &mut generator());
        assert!(!ticker.is_due(Moment { steady: minutes(1).steady, ..minutes(10) }));
        assert!(ticker.is_due(Moment { steady: minutes(1).steady, ..minutes(500) }));
    }

    #[test]
    fn an_interval_does_not_wait_for_a_clock_that_was_set_back() {
        let mut ticker = Ticker::every(60 * MINUTE, minutes(0));
        ticker.done(minutes(0), &mut generator());
        assert!(ticker.is_due(Moment { wall: at("1999-01-01T00:00:00Z"), ..minutes(70) }));
    }

    #[test]
    fn cron_is_due_at_its_ticks_and_what_was_missed_runs_once() {
        let mut ticker = nightly(Some("2026-01-01T12:00:00Z"), "2026-01-05T10:00:00Z");
        assert!(ticker.is_due(by_wall("2026-01-05T10:00:00Z")), "four nights were missed");
        ticker.done(by_wall("2026-01-05T10:01:00Z"), &mut generator());
        assert!(!ticker.is_due(by_wall("2026-01-06T06:59:59Z")));
        assert!(ticker.is_due(by_wall("2026-01-06T07:00:31Z")), "the delay is half a minute at most");
        assert!(nightly(None, "2026-01-05T10:00:00Z").is_due(by_wall("2026-01-05T10:00:00Z")), "it never ran");
        assert!(!nightly(Some("2026-01-05T08:00:00Z"), "2026-01-05T10:00:00Z").is_due(by_wall("2026-01-05T10:00:00Z")));
    }

    #[test]
    fn cron_is_tried_again_soon_and_then_goes_on_with_its_ticks() {
        let mut ticker = nightly(Some("2026-01-04T08:00:00Z"), "2026-01-05T07:00:00Z");
        let now = by_wall("2026-01-05T07:00:00Z");
        assert!(ticker.is_due(now));
        ticker.again_within(now, Duration::from_secs(30));
        assert_eq!(ticker.left(now), Duration::from_secs(30));
        ticker.done(by_wall("2026-01-05T07:00:30Z"), &mut generator());
        assert!(!ticker.is_due(by_wall("2026-01-06T06:59:00Z")) && ticker.is_due(by_wall("2026-01-06T07:00:31Z")));
    }

    /// A step back over a tick does not run it a second time; a clock that was a year ahead does not silence it.
    #[test]
    fn a_clock_set_back_runs_no_tick_twice_and_silences_none() {
        let mut ticker = nightly(Some("2026-01-04T08:00:00Z"), "2026-01-05T07:00:00Z");
        ticker.done(by_wall("2026-01-05T07:00:10Z"), &mut generator());
        for now in ["2026-01-05T06:30:00Z", "2026-01-05T07:00:31Z", "2026-01-05T23:00:00Z"] {
            ticker.look(by_wall(now));
            assert!(!ticker.is_due(by_wall(now)), "{now}");
        }
        ticker.done(by_wall("2027-03-01T09:00:00Z"), &mut generator());
        ticker.look(by_wall("2026-01-06T06:00:00Z"));
        assert!(!ticker.is_due(by_wall("2026-01-06T06:00:00Z")));
        ticker.look(by_wall("2026-01-06T07:00:31Z"));
        assert!(ticker.is_due(by_wall("2026-01-06T07:00:31Z")));
    }

    proptest::proptest! {
        /// Whatever the clock does between looks, short of a day back: no tick runs twice, and after each step forward
        /// what was missed runs once. The reference is the set of ticks that the wall has passed.
        #[test]
        fn no_tick_runs_twice_and_none_is_missed(steps in proptest::collection::vec((-7200_i64..90_000, proptest::bool::ANY), 1..60)) {
            let schedule = CronSchedule::new("0 */6 * * *", "Europe/London").expect("sound");
            let start = at("2026-03-20T00:00:00Z");
            let mut ticker = Ticker::cron(schedule.clone(), Some(start), Moment { wall: start, steady: Duration::ZERO });
            let (mut wall, mut furthest, mut generator) = (start, start, generator());
            let mut ran_through = start;
            for (step, _) in steps {
                wall += SignedDuration::from_secs(step);
                furthest = furthest.max(wall);
                let now = Moment { wall, steady: Duration::ZERO };
                ticker.look(now);
                let next = schedule.next_after(ran_through).expect("there is one");
                let delayed = next + SignedDuration::from_secs(30);
                if ticker.is_due(now) {
                    proptest::prop_assert!(next <= wall, "ran at {} before {}", wall, next);
                    ticker.done(now, &mut generator);
                    ran_through = ran_through.max(wall);
                } else {
                    proptest::prop_assert!(wall < delayed, "{} was missed at {}", next, wall);
                }
            }
        }
    }
}
