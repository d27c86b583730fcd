//! How far a backfill is.

/// How far a backfill is, in records and in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Records behind it, as far as their number is known.
    pub done: u64,
    /// Records in all, when the store knows enough to tell.
    pub total: Option<u64>,
    /// Calls still to make, likewise.
    pub calls_left: Option<u64>,
}

impl Progress {
    /// How much of it is done, 0 to 100.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    pub fn percent(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0)?;
        Some((self.done.min(total) as f64 / total as f64) * 100.0)
    }
}
