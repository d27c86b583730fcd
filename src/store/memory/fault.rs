//! Where a simulated crash can strike.

/// A step at which [`super::MemoryStore::fail_at`] strikes. Every writing call passes the first three in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Before anything is written: the write is lost and the caller hears of it.
    BeforeCommit,
    /// Written and not fenced: the write is lost at the crash and the caller hears of it.
    Unfenced,
    /// Fenced and not acknowledged: the write survives although the caller hears of a failure.
    Unacknowledged,
    /// A read fails.
    Read,
}

impl Step {
    /// The steps of a write, in order.
    pub const OF_A_WRITE: [Self; 3] = [Self::BeforeCommit, Self::Unfenced, Self::Unacknowledged];
}

/// The plan of one strike: the step, and how often it is passed unharmed before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strike {
    pub(super) step: Step,
    pub(super) spared: u64,
}
