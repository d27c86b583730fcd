//! When a sink that failed is tried again: a pure state machine, one per sink.
//!
//! A few quick retries with full jitter, then the breaker opens: the sink is left alone and tried once after each
//! open time, until it takes the delivery. A sink that asks for a person is left alone at once.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Ceiling of the first wait.
const BASE: Duration = Duration::from_secs(1);
/// Ceiling of any wait between retries.
const CAP: Duration = Duration::from_secs(30);
/// No wait that a sink asks for is believed beyond this.
const ASKED_CAP: Duration = Duration::from_secs(3600);
/// So many failures in a row open the breaker.
const THRESHOLD: u32 = 5;
/// The first open time; it doubles.
const OPEN_FOR: Duration = Duration::from_secs(30);
/// The longest open time.
const OPEN_CAP: Duration = Duration::from_secs(60);

/// How a sink's deliveries fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Health {
    failures: u32,
    /// How often the breaker has opened since the last success.
    openings: u32,
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Try again after a wait.
    Retry {
        /// How long.
        after: Duration,
    },
    /// The breaker is open: leave it alone for this long, then try once.
    Open {
        /// How long.
        after: Duration,
    },
}

impl Health {
    /// A delivery failed; the sink may have said how long to wait.
    pub fn on_failure(&mut self, asked: Option<Duration>, generator: &mut impl Rng) -> Verdict {
        self.failures = self.failures.saturating_add(1);
        let asked = asked.map(|wait| wait.min(ASKED_CAP));
        if self.failures >= THRESHOLD || self.openings > 0 {
            return self.open(asked);
        }
        let ceiling = BASE.saturating_mul(2_u32.saturating_pow(self.failures - 1)).min(CAP);
        let drawn = generator.random_range(Duration::ZERO..=ceiling);
        Verdict::Retry { after: asked.unwrap_or(drawn) }
    }

    /// The sink asks for a person: retrying at once is of no use.
    pub fn on_refusal(&mut self) -> Verdict {
        self.failures = self.failures.saturating_add(1);
        self.open(None)
    }

    /// The sink took a delivery.
    pub fn on_success(&mut self) {
        *self = Self::default();
    }

    /// Failures in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the breaker is open, or half-open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.openings > 0
    }

    fn open(&mut self, asked: Option<Duration>) -> Verdict {
        let after = OPEN_FOR.saturating_mul(2_u32.saturating_pow(self.openings)).min(OPEN_CAP);
        self.openings = self.openings.saturating_add(1);
        Verdict::Open { after: asked.map_or(after, |asked| asked.max(after)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;

    #[test]
    fn a_few_retries_with_full_jitter_then_the_breaker_opens() {
        let mut generator = RootSeed::new(1).generator("deliver");
        for _ in 0..500 {
            let mut health = Health::default();
            for ceiling in [1, 2, 4, 8] {
                match health.on_failure(None, &mut generator) {
                    Verdict::Retry { after } => assert!(after <= Duration::from_secs(ceiling)),
                    other => panic!("{other:?}"),
                }
                assert!(!health.is_open());
            }
            for open in [30, 60, 60] {
                let expected = Verdict::Open { after: Duration::from_secs(open) };
                assert_eq!(health.on_failure(None, &mut generator), expected);
            }
            assert!(health.is_open());
            health.on_success();
            assert!(matches!(health.on_failure(None, &mut generator), Verdict::Retry { .. }));
        }
    }

    #[test]
    fn what_the_sink_asks_for_is_honoured_and_bounded() {
        let mut generator = RootSeed::new(1).generator("deliver");
        let mut health = Health::default();
        let asked = health.on_failure(Some(Duration::from_secs(17)), &mut generator);
        assert_eq!(asked, Verdict::Retry { after: Duration::from_secs(17) });
        let greedy = health.on_failure(Some(Duration::from_secs(1_000_000)), &mut generator);
        assert_eq!(greedy, Verdict::Retry { after: ASKED_CAP });
    }

    #[test]
    fn a_sink_that_asks_for_a_person_is_left_alone_at_once() {
        let mut health = Health::default();
        assert_eq!(health.on_refusal(), Verdict::Open { after: OPEN_FOR });
        assert!(health.is_open());
    }
}
