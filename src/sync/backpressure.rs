//! Why capture may have to wait: the only thing that deliveries can do to it.

/// Why there is no room for more changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Held {
    /// The outbox is full and the sink furthest behind chose to hold.
    #[error("the outbox is full: {sinks} must catch up first")]
    OutboxFull {
        /// The sinks that are waited for, comma-separated.
        sinks: String,
    },
    /// The disk is nearly full (BR-078): no quota is spent on what could not be kept.
    #[error("only {free_bytes} bytes are free below the state directory; state.min_free asks for {min_bytes}")]
    DiskLow {
        /// What is free.
        free_bytes: u64,
        /// What must stay free.
        min_bytes: u64,
    },
}

impl Held {
    /// A closed word for reports.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OutboxFull { .. } => "outbox_full",
            Self::DiskLow { .. } => "disk_low",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OutboxFull { .. } => "repair or resume the sink, or set its when_full to \"detach\"",
            Self::DiskLow { .. } => "make room on the disk or lower state.min_free; capture goes on by itself",
        }
    }
}
