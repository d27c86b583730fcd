//! How long to wait before the next attempt: exponential, capped, with one of three kinds of jitter (A1, C1).
//!
//! Pure: it neither sleeps nor counts attempts. Jitter is a draw from a range, never something added to a
//! fixed wait, so that clients which failed together do not come back together.

use std::time::Duration;

use rand::{Rng, RngExt};

/// How chance enters the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// U(0, ceiling): the least total work when many clients contend for one resource.
    #[default]
    Full,
    /// ceiling/2 + U(0, ceiling/2): a guaranteed minimum gap, for a lone nightly worker (C6).
    Equal,
    /// U(base, 3 × the previous wait), capped: depends on the previous wait instead of the attempt.
    Decorrelated,
}

/// The schedule of waits. Total: any attempt number and any previous wait give a wait of at most `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    jitter: Jitter,
}

impl Backoff {
    /// A schedule, unless `base` is zero or `cap` is shorter than `base`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration, jitter: Jitter) -> Option<Self> {
        (!base.is_zero() && base <= cap).then_some(Self { base, cap, jitter })
    }

    /// The shortest ceiling, and the least that a whole series of waits adds up to (BR-104).
    #[must_use]
    pub fn base(&self) -> Duration {
        self.base
    }

    /// No wait is longer than this.
    #[must_use]
    pub fn cap(&self) -> Duration {
        self.cap
    }

    /// The longest wait after failed attempt number `attempt`, counted from 0: min(cap, base × 2^attempt).
    #[must_use]
    pub fn ceiling(&self, attempt: u32) -> Duration {
        self.base.saturating_mul(2_u32.saturating_pow(attempt)).min(self.cap)
    }

    /// Draws the wait after failed attempt number `attempt`, counted from 0. `previous` is the last wait of this
    /// call, if there was one; only decorrelated jitter looks at it.
    pub fn delay(&self, attempt: u32, previous: Option<Duration>, rng: &mut impl Rng) -> Duration {
        match self.jitter {
            Jitter::Full => rng.random_range(Duration::ZERO..=self.ceiling(attempt)),
            Jitter::Equal => {
                let half = self.ceiling(attempt) / 2;
                half + rng.random_range(Duration::ZERO..=half)
            }
            Jitter::Decorrelated => {
                let upper = previous.unwrap_or(self.base).saturating_mul(3).clamp(self.base, self.cap);
                rng.random_range(self.base..=upper)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;

    const BASE: Duration = Duration::from_secs(1);
    const CAP: Duration = Duration::from_secs(30);

    fn backoff(jitter: Jitter) -> Backoff {
        Backoff::new(BASE, CAP, jitter).expect("base is positive and below the cap")
    }

    /// A1, C10: every draw lies in U(0, min(cap, base × 2^attempt)) and fills that range evenly.
    #[test]
    fn full_jitter_is_uniform_from_zero_to_the_ceiling() {
        let mut rng = RootSeed::new(1).generator("backoff");
        for attempt in 0..8 {
            let ceiling = backoff(Jitter::Full).ceiling(attempt);
            assert_eq!(ceiling, Duration::from_secs(1 << attempt).min(CAP));
            let mut tenths = [0_u32; 10];
            for _ in 0..10_000 {
                let delay = backoff(Jitter::Full).delay(attempt, None, &mut rng);
                assert!(delay <= ceiling);
                let tenth = (delay.as_secs_f64() / ceiling.as_secs_f64() * 10.0) as usize;
                tenths[tenth.min(9)] += 1;
            }
            assert!(tenths.iter().all(|count| (850..1150).contains(count)), "attempt {attempt}: {tenths:?}");
        }
    }

    /// C1, C6: half of the ceiling is certain, the other half is chance.
    #[test]
    fn equal_jitter_guarantees_half_of_the_ceiling() {
        let mut rng = RootSeed::new(2).generator("backoff");
        for attempt in 0..8 {
            let ceiling = backoff(Jitter::Equal).ceiling(attempt);
            for _ in 0..2_000 {
                let delay = backoff(Jitter::Equal).delay(attempt, None, &mut rng);
                assert!(delay >= ceiling / 2 && delay <= ceiling);
            }
        }
    }

    /// C1: drawn between the base and three times the previous wait, never beyond the cap.
    #[test]
    fn decorrelated_jitter_grows_from_the_previous_delay() {
        let mut rng = RootSeed::new(3).generator("backoff");
        for _ in 0..500 {
            let mut previous = None;
            for attempt in 0..10 {
                let delay = backoff(Jitter::Decorrelated).delay(attempt, previous, &mut rng);
                let upper = (previous.unwrap_or(BASE) * 3).min(CAP);
                assert!(delay >= BASE && delay <= upper, "{delay:?} after {previous:?}");
                previous = Some(delay);
            }
        }
    }

    #[test]
    fn absurd_attempt_numbers_and_previous_delays_stay_at_the_cap() {
        let mut rng = RootSeed::new(4).generator("backoff");
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::Decorrelated] {
            assert!(backoff(jitter).delay(u32::MAX, Some(Duration::MAX), &mut rng) <= CAP);
        }
    }

    #[test]
    fn impossible_schedules_cannot_be_made() {
        assert!(Backoff::new(Duration::ZERO, CAP, Jitter::Full).is_none());
        assert!(Backoff::new(CAP + BASE, CAP, Jitter::Full).is_none());
    }
}
