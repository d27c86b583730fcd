//! Notices when calls begin to fail for good where they normally do not (B12): a key that lost a permission, a URL that
//! moved. One permanent error is the request's own affair; many at once are somebody's.

use std::time::Duration;

use tokio::time::Instant;

/// Errors are counted in stretches of this length.
const STRETCH: Duration = Duration::from_secs(600);
/// So many in one stretch are a spike …
const MANY: u32 = 5;
/// … if there were fewer than this in all of the last day before it.
const FEW: u32 = 5;
/// Stretches in a day.
const DAY: usize = 144;

/// Counts the calls that failed for good. Pure.
#[derive(Debug, Clone)]
pub struct ErrorSpike {
    origin: Option<Instant>,
    stretches: [Stretch; DAY],
}

#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    number: u64,
    errors: u32,
}

impl Default for ErrorSpike {
    fn default() -> Self {
        Self { origin: None, stretches: [Stretch::default(); DAY] }
    }
}

impl ErrorSpike {
    /// A call failed for good. Returns how many did in this stretch, once, when that makes it a spike.
    pub fn on_permanent_error(&mut self, now: Instant) -> Option<u32> {
        let origin = *self.origin.get_or_insert(now);
        // Stretches that were never used read as number 0, so that real ones begin at 1.
        let number = now.saturating_duration_since(origin).as_secs() / STRETCH.as_secs() + 1;
        let oldest = (number + 1).saturating_sub(DAY as u64);
        let earlier: u32 = self
            .stretches
            .iter()
            .filter(|stretch| stretch.number >= oldest && stretch.number < number)
            .map(|stretch| stretch.errors)
            .sum();
        let stretch = self.stretches.get_mut((number % DAY as u64) as usize)?;
        if stretch.number != number {
            *stretch = Stretch { number, errors: 0 };
        }
        stretch.errors = stretch.errors.saturating_add(1);
        (stretch.errors == MANY && earlier < FEW).then_some(stretch.errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spikes(spike: &mut ErrorSpike, times: u32, now: Instant) -> u32 {
        (0..times).filter_map(|_| spike.on_permanent_error(now)).count() as u32
    }

    /// B12
    #[test]
    fn many_errors_on_a_clean_feed_are_told_once() {
        let (mut spike, start) = (ErrorSpike::default(), Instant::now());
        assert_eq!(spikes(&mut spike, 4, start), 0);
        assert_eq!(spikes(&mut spike, 40, start), 1);
        assert_eq!(spikes(&mut spike, 40, start + STRETCH), 0, "it has been told");
        assert_eq!(spikes(&mut spike, 40, start + STRETCH * 200), 1, "a day later it is news again");
    }

    #[test]
    fn a_feed_that_always_has_errors_is_not_a_spike() {
        let (mut spike, start) = (ErrorSpike::default(), Instant::now());
        let told: u32 = (0..300).map(|stretch| spikes(&mut spike, 1, start + STRETCH * stretch)).sum();
        assert_eq!(told + spikes(&mut spike, 40, start + STRETCH * 300), 0);
    }
}
