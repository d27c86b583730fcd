//! What the store obeys; the configuration layer fills it in.

use std::path::PathBuf;
use std::time::Duration;

/// Where state is kept and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// The state directory.
    pub path: PathBuf,
    /// Bytes of undelivered changes at which `when_full` acts.
    pub outbox_max_size: u64,
    /// Free bytes on the disk below which capture pauses.
    pub min_free: u64,
    /// How long patron-derived values are kept.
    pub retention: Duration,
}
