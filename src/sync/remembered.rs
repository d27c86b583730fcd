//! What is remembered of every record: enough to decide order and sameness, and nothing to read.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::record::{RecordNumber, Stream};
use crate::sync::ContentHash;

/// The number that a request draws when it is sent, and another when its answer is complete. One counter serves
/// both; it survives restarts: boot number (raised durably at each open) × 2⁴⁰ + count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestNumber(pub u64);

/// Whose state is remembered. Patrons are keyed by pseudonym, so that the store cannot be read back to numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RememberedKey {
    /// A bib.
    Bib(RecordNumber),
    /// An item.
    Item(RecordNumber),
    /// A patron's pseudonym, 16 bytes.
    Patron([u8; 16]),
}

impl RememberedKey {
    /// The stream of the record.
    #[must_use]
    pub fn stream(&self) -> Stream {
        match self {
            Self::Bib(_) => Stream::Bibs,
            Self::Item(_) => Stream::Items,
            Self::Patron(_) => Stream::Patrons,
        }
    }
}

/// The state of one record as last captured. Never trimmed (patrons: 400 days after a confirmed delete).
/// Encoded with its key in at most 48 bytes (patrons 96).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Live, deleted, or out of the configured set.
    pub state: RememberedState,
    /// When the request that read it was sent.
    pub sent: RequestNumber,
    /// When that request's answer was complete.
    pub answered: RequestNumber,
    /// For patrons: the sealed record number (at most 48 bytes), needed to ask again. Empty for the others.
    pub sealed_id: Vec<u8>,
}

/// What the record was when last captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberedState {
    /// It exists.
    Live {
        /// `updatedDate` of the last read version, emitted or not.
        updated: Option<Timestamp>,
        /// The content that was last emitted.
        hash: ContentHash,
        /// Its suppression.
        suppressed: bool,
        /// It exists but lies outside the configured locations: sinks were told it is gone, if they ever had it.
        filtered: bool,
    },
    /// It is deleted.
    Tombstone {
        /// The local day of the deletion, when known.
        deleted_on: Option<Date>,
        /// Whether a delete was emitted, or the id had never been seen.
        emitted: bool,
    },
}
