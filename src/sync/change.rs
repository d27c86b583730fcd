//! What the outbox holds and sinks receive: one change of one record, masked already.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::marc::Loss;
use crate::privacy::Masked;
use crate::record::{RecordNumber, Stream};
use crate::sync::Seq;

/// One change of one record, as it was captured. Written to the outbox once and never altered.
#[derive(Debug, Clone)]
pub struct Change {
    /// The place in the global order, given by the store when the change is committed.
    pub seq: Seq,
    /// The stream of the record.
    pub stream: Stream,
    /// The public id: the record number as text, or a patron's pseudonym.
    pub id: String,
    /// What happened.
    pub op: Op,
    /// `updatedDate` of this version; for a tombstone the end of its local day.
    pub updated: Option<Timestamp>,
    /// Whether the record is hidden from the public catalogue. `false` on deletes.
    pub suppressed: bool,
    /// When we read it, by our own clock: Sierra's says nothing about us, and may be far off.
    pub captured: Timestamp,
    /// Which pass found it.
    pub source: Origin,
    /// What the record holds now; deletes carry [`Payload::Nothing`].
    pub payload: Payload,
    /// For items: bibs that the previous captured version hung from and this one does not.
    pub unlinked_bib_ids: Vec<RecordNumber>,
    /// The content hash that decided sameness.
    pub hash: ContentHash,
    /// Set on changes that reload one sink: others skip them.
    pub only_for: Option<String>,
}

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// It exists with this content.
    Upsert,
    /// It is gone for the reader of the sink.
    Delete {
        /// Why.
        reason: DeleteReason,
        /// The local day of the deletion: only with [`DeleteReason::Deleted`].
        deleted_on: Option<Date>,
    },
}

impl Op {
    /// `upsert` or `delete`, as in events and keys.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Upsert => "upsert",
            Self::Delete { .. } => "delete",
        }
    }
}

/// Why a record is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeleteReason {
    /// Sierra says it was deleted.
    Deleted,
    /// Asked again by explicit list, Sierra no longer has it.
    Vanished,
    /// It is suppressed and the sink asked to have suppressed records deleted.
    Suppressed,
    /// It left the configured set of locations.
    Filtered,
}

/// Which pass found a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The first full load.
    Load,
    /// The update pass.
    Incremental,
    /// The delete pass.
    Deletes,
    /// A backfill asked for by a person, or a reload.
    Backfill,
    /// The sweep for records that became visible late.
    LateSweep,
    /// Reconciliation.
    Reconcile,
    /// A replay from the quarantine.
    Replay,
    /// A rebuild of the store.
    Rebuild,
}

/// The content of a change.
#[derive(Debug, Clone)]
pub enum Payload {
    /// A bib: Sierra's fields without MARC varFields, the MARCXML, and what the mapping had to leave out.
    Bib {
        /// Sierra's fields as they came; non-MARC varFields stay under `varFields`.
        record: Box<RawValue>,
        /// One `record` element in the LoC namespace.
        marcxml: String,
        /// What the mapping repaired or omitted.
        losses: Vec<Loss>,
        /// Trimmed location codes, for the filters of sinks.
        locations: Vec<String>,
    },
    /// An item, without the fields that privacy drops.
    Item {
        /// Sierra's fields as they came, less what privacy dropped.
        record: Box<RawValue>,
        /// The bibs the item hangs from.
        bib_ids: Vec<RecordNumber>,
        /// The trimmed location code, for the filters of sinks.
        location: Option<String>,
    },
    /// A patron: only masked values can be here (PRV-1).
    Patron(Masked<Box<RawValue>>),
    /// Nothing: deletes.
    Nothing,
}

impl Payload {
    /// About how many bytes the payload takes in memory: for budgets, not for accounts.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Bib { record, marcxml, .. } => record.get().len() + marcxml.len(),
            Self::Item { record, .. } => record.get().len(),
            Self::Patron(masked) => masked.get().get().len(),
            Self::Nothing => 0,
        }
    }
}

/// The first 16 bytes of a blake3 hash over a change's canonical content. Decides sameness, and nothing else.
/// For patrons it is keyed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentHash(pub [u8; 16]);

impl fmt::Display for ContentHash {
    /// 32 lower-case hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ContentHash({self})")
    }
}

impl Change {
    /// The idempotency key (A11): `<stream>/<id>/<op>/<hash16>/<seq>`. A redelivery repeats it exactly; a new change
    /// never does.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}/{}/{}/{}", self.stream, self.id, self.op.name(), self.hash, self.seq)
    }
}
