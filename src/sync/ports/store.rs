//! Where the engine's memory is kept: positions, ledger, outbox, remembered state, links, quarantine.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::{Classify, Disposition};
use crate::record::{RecordNumber, Stream};
use crate::sync::{Change, LedgerRow, Remembered, RememberedKey, Seq};

/// Durable memory. Methods block; the engine calls them through a handle that moves them off the runtime when
/// [`Store::blocks`] says so.
///
/// Every method that writes returns only after the fence: what it wrote survives a crash and a power failure (within
/// what the disk promises). Nothing unfenced is ever returned by a read. All writes go through one writer.
pub trait Store: Send + Sync + 'static {
    /// Whether calls may block on a disk.
    fn blocks(&self) -> bool;

    /// Commits a slice: its changes, remembered states, links, quarantine entries and ledger rows, all or nothing
    /// (CUR-2). Returns the seq of each change, strictly increasing in the slice's order.
    ///
    /// # Errors
    /// On any storage error; the store must then not be used any more (exit 74).
    fn commit(&self, slice: Slice) -> Result<Vec<Seq>, StoreError>;

    /// Raises the next seq to at least `floor`: by the later of our clock and Sierra's, and by what sinks report.
    fn raise_seq(&self, floor: Seq) -> Result<(), StoreError>;

    /// The last seq issued, [`Seq::ZERO`] if none.
    fn last_seq(&self) -> Result<Seq, StoreError>;

    /// This opening's boot number, raised durably at each open: the base of request numbers.
    fn boot_number(&self) -> u64;

    /// What is remembered under each key, in the order asked.
    fn remembered(&self, keys: &[RememberedKey]) -> Result<Vec<Option<Remembered>>, StoreError>;

    /// Remembered records of `stream` after `after` in key order, at most `limit`: for sweeps.
    fn remembered_after(
        &self,
        stream: Stream,
        after: Option<&RememberedKey>,
        limit: usize,
    ) -> Result<Vec<(RememberedKey, Remembered)>, StoreError>;

    /// The bibs each item is remembered to hang from, in the order asked.
    fn links(&self, items: &[RecordNumber]) -> Result<Vec<Vec<RecordNumber>>, StoreError>;

    /// The ledger rows of `stream`, by id.
    fn ledger(&self, stream: Stream) -> Result<Vec<LedgerRow>, StoreError>;

    /// A row number that no row had before.
    fn next_row_id(&self) -> Result<u64, StoreError>;

    /// Fenced changes with a seq greater than `after`, in order, at most `limit` and about `max_bytes` of payload
    /// (always at least one if there is one).
    fn outbox_after(&self, after: Seq, limit: usize, max_bytes: usize) -> Result<Vec<Change>, StoreError>;

    /// How full the outbox is.
    fn outbox_usage(&self) -> Result<OutboxUsage, StoreError>;

    /// Every sink's position.
    fn sink_positions(&self) -> Result<BTreeMap<String, SinkPosition>, StoreError>;

    /// Sets the positions of `sinks` and trims what every attached sink has confirmed.
    fn set_sink_positions(&self, sinks: &BTreeMap<String, SinkPosition>) -> Result<(), StoreError>;

    /// Removes the position of a sink that is no longer configured.
    fn remove_sink(&self, sink: &str) -> Result<(), StoreError>;

    /// Quarantined entries of `stream`, oldest first, at most `limit`.
    fn quarantine(&self, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError>;

    /// How many entries are quarantined in `stream`.
    fn quarantine_count(&self, stream: Stream) -> Result<u64, StoreError>;

    /// A small snapshot kept under a name: breaker, quota, schedules, run history.
    fn snapshot(&self, name: Snapshot) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces a snapshot.
    fn save_snapshot(&self, name: Snapshot, value: &[u8]) -> Result<(), StoreError>;
}

/// What is committed together. Bounds: at most 200 changes or about 2 MiB, unless one change alone is larger.
#[derive(Debug, Default)]
pub struct Slice {
    /// New changes, in order.
    pub changes: Vec<NewChange>,
    /// New remembered states.
    pub remembered: Vec<(RememberedKey, Remembered)>,
    /// New item links: the bibs that each item now hangs from.
    pub links: Vec<(RecordNumber, Vec<RecordNumber>)>,
    /// New or raised quarantine entries.
    pub quarantined: Vec<QuarantineEntry>,
    /// Quarantine entries closed by a newer good version: stream and public id.
    pub closes: Vec<(Stream, String)>,
    /// Ledger rows to write.
    pub rows: Vec<LedgerRow>,
    /// Ledger rows to remove, because a neighbour swallowed them.
    pub removed_rows: Vec<(Stream, u64)>,
}

/// A change whose seq the store will give; its `seq` field is ignored.
pub type NewChange = Change;

/// How full the outbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboxUsage {
    /// Entries that at least one attached sink has not confirmed.
    pub entries: u64,
    /// Their stored size in bytes.
    pub bytes: u64,
}

/// How far a sink is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkPosition {
    /// Every change up to and including this one is confirmed.
    pub confirmed: Seq,
    /// Detached sinks do not hold back trimming; they need a reload.
    pub attached: bool,
    /// The oldest change not yet confirmed was captured then, if there is one.
    pub oldest_pending: Option<Timestamp>,
    /// How many changes wait.
    pub pending: u64,
    /// Changes that this sink refused for good and that stand in the quarantine.
    pub quarantined: u64,
}

/// A record that was set aside, with what is needed to look at it and to replay it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    /// The stream.
    pub stream: Stream,
    /// The public id; a patron's pseudonym.
    pub record: String,
    /// Why, as a sentence free of private values.
    pub reason: String,
    /// Tells equal causes from different ones; unique with stream and id.
    pub fingerprint: String,
    /// How often it was tried.
    pub attempts: u32,
    /// The last HTTP status, where there was one.
    pub last_status: Option<u16>,
    /// First seen.
    pub first_seen: Timestamp,
    /// Last seen.
    pub last_seen: Timestamp,
    /// How it stands.
    pub state: QuarantineState,
    /// The sink that refused it; `None` when capture set it aside.
    pub sink: Option<String>,
    /// The entry as JSON text. Never set for patrons.
    pub payload: Option<String>,
}

/// How a quarantined entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineState {
    /// Waits for a person or a newer version.
    Open,
    /// Replayed three times in vain.
    Parked,
}

/// The names of small snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Snapshot {
    /// The key's breaker and suspended endpoints.
    Breaker,
    /// The quota ledger.
    Quota,
    /// The credential latch.
    Latch,
    /// Sierra's last `Date` and what is due when.
    Schedule,
    /// Settings hashes per stream.
    Settings,
    /// Recent runs.
    History,
}

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What kind of failure.
    pub kind: StoreErrorKind,
    /// What happened and where, as a fragment after "failed to …".
    pub message: String,
    /// The error beneath.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of store failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Another process holds the state directory.
    Held {
        /// The process, as far as it is known.
        holder: String,
    },
    /// Written by a newer version of this program.
    NewerFormat,
    /// What was read is damaged.
    Corrupt,
    /// The disk failed or is full.
    Io,
}

impl Classify for StoreError {
    fn disposition(&self) -> Disposition {
        Disposition::Halt
    }
}
