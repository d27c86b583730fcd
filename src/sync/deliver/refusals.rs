//! How many changes a sink may refuse for good before it is the sink that is at fault.

use crate::sync::capture::tripwire::Tripwire;

/// So many refusals in a row stop the lane.
const IN_A_ROW: u32 = 20;

/// Counts what a sink refuses. The share of refusals is watched as capture watches bad entries.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    in_a_row: u32,
    share: Tripwire,
}

impl Refusals {
    /// The sink took a change.
    pub fn on_taken(&mut self) {
        self.in_a_row = 0;
    }

    /// The sink refused a change for good. `false` when it is to be stopped instead of setting this one aside.
    #[must_use]
    pub fn on_refused(&mut self) -> bool {
        self.in_a_row += 1;
        self.in_a_row < IN_A_ROW
    }

    /// A batch is through. `false` when too many of the last ones were refused.
    #[must_use]
    pub fn on_batch(&mut self, changes: usize, refused: usize) -> bool {
        self.share.check(changes, refused).is_ok()
    }

    /// A person looked at it, or time passed: start counting anew.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_refusals_in_a_row_stop_the_lane() {
        let mut refusals = Refusals::default();
        assert!((0..19).all(|_| refusals.on_refused()));
        refusals.on_taken();
        assert!((0..19).all(|_| refusals.on_refused()));
        assert!(!refusals.on_refused());
        refusals.forget();
        assert!(refusals.on_refused());
    }

    #[test]
    fn too_large_a_share_of_refusals_stops_the_lane() {
        let mut refusals = Refusals::default();
        assert!(refusals.on_batch(200, 10));
        assert!(!refusals.on_batch(200, 30));
    }
}
