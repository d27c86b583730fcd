//! What a reconciliation is asked for, and what it says.

use serde::{Deserialize, Serialize};

use crate::record::Stream;

/// A reconciliation as it is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconcileOrder {
    /// The stream.
    pub stream: Stream,
    /// Whether whole records are read and their content compared: only so are edits found that left no stamp.
    pub deep: bool,
    /// Whether what differs is read again and emitted; else it is only counted.
    pub repair: bool,
    /// More missing records than this share of all, in percent, are a sweep gone wrong: nothing is concluded.
    pub max_missing: u8,
    /// Whether long quota waits are sat out.
    pub wait_for_quota: bool,
}

impl ReconcileOrder {
    /// The share of missing records beyond which nothing is concluded, unless somebody says otherwise.
    pub const MAX_MISSING: u8 = 1;

    /// What the schedule orders: it heals.
    #[must_use]
    pub fn scheduled(stream: Stream, wait_for_quota: bool) -> Self {
        Self { stream, deep: false, repair: true, max_missing: Self::MAX_MISSING, wait_for_quota }
    }

    /// Whether a sweep that was begun for `other` does for this.
    #[must_use]
    pub(super) fn is_like(&self, other: &Self) -> bool {
        Self { wait_for_quota: other.wait_for_quota, ..*self } == *other
    }
}

/// What a reconciliation found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconcileReport {
    /// Records that the sweep brought and that were compared.
    pub checked: u64,
    /// Those of them that differ from what is known, and not because they are being edited.
    pub drift: u64,
    /// Records that are known alive and that Sierra no longer has: asked again by number, unless it was stopped before.
    pub missing: u64,
    /// Records of both kinds that are put right.
    pub repaired: u64,
    /// Why it concluded less than it might have.
    pub stopped: Option<String>,
}
