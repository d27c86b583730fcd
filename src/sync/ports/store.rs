//! Where the engine's memory is kept: positions, ledger, outbox, remembered state, links, quarantine.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::{Classify, Disposition};
use crate::record::{RecordNumber, Stream};
use crate::sync::{Change, ContentHash, LedgerRow, Origin, Remembered, RememberedKey, Seq};

/// Durable memory. Methods block; the engine calls them through a handle that moves them off the runtime when
/// [`Store::blocks`] says so.
///
/// Every method that writes returns only after the fence: what it wrote survives a crash and a power failure (within
/// what the disk promises). Nothing unfenced is ever returned by a read. All writes go through one writer.
///
/// After an error of a *write* the store refuses every further call: what the failed write left in memory is unknown
/// and a sync is never tried twice. The process ends (exit 74) and the next opening finds each write whole or absent.
pub trait Store: Send + Sync + 'static {
    /// Whether calls may block on a disk.
    fn blocks(&self) -> bool;

    /// Commits a slice, all or nothing (CUR-2). Returns the seq of each change, strictly increasing in the slice's
    /// order and above every seq issued before.
    ///
    /// # Errors
    /// On any storage error, and [`StoreErrorKind::Exhausted`] when the order has no room for the slice; the store
    /// must then not be used any more (exit 74).
    fn commit(&self, slice: Slice) -> Result<Vec<Seq>, StoreError>;

    /// Makes sure that the next seq issued is at least `floor`: the later of our clock's and Sierra's, or one above
    /// what a sink reports. A lower floor than before changes nothing.
    fn raise_seq(&self, floor: Seq) -> Result<(), StoreError>;

    /// The last seq issued, [`Seq::ZERO`] if none. Floors do not move it: a sink that holds a higher one proves that
    /// this store was restored from a backup.
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

    /// The bibs each item is remembered to hang from, in the order asked; empty for items never linked.
    fn links(&self, items: &[RecordNumber]) -> Result<Vec<Vec<RecordNumber>>, StoreError>;

    /// The ledger rows of `stream`, by id.
    fn ledger(&self, stream: Stream) -> Result<Vec<LedgerRow>, StoreError>;

    /// A row number that no row had before, not even one of an earlier opening. Numbers rise but may skip.
    fn next_row_id(&self) -> Result<u64, StoreError>;

    /// Fenced changes with a seq greater than `after`, in order, at most `limit` and about `max_bytes` of payload
    /// (always at least one if there is one and `limit` is not zero). Changes of every stream, and those meant for
    /// one sink alone.
    fn outbox_after(&self, after: Seq, limit: usize, max_bytes: usize) -> Result<Vec<Change>, StoreError>;

    /// The same changes without their payloads, at most `limit`: for lists, for expiry and for counting.
    fn outbox_entries_after(&self, after: Seq, limit: usize) -> Result<Vec<OutboxEntry>, StoreError>;

    /// How full the outbox is. Takes the same time however much waits.
    fn outbox_usage(&self) -> Result<OutboxUsage, StoreError>;

    /// Every sink's position.
    fn sink_positions(&self) -> Result<BTreeMap<String, SinkPosition>, StoreError>;

    /// Sets the positions of `sinks`, leaves other sinks as they are, and trims what no attached sink waits for any
    /// more. Only `confirmed`, `attached` and `streams` are taken; the store counts the rest itself.
    ///
    /// With no sink attached nothing waits, so everything is trimmed: attach sinks before the first commit.
    fn set_sink_positions(&self, sinks: &BTreeMap<String, SinkPosition>) -> Result<(), StoreError>;

    /// Removes the position of a sink that is no longer configured, and trims as above. Its quarantined changes stay.
    fn remove_sink(&self, sink: &str) -> Result<(), StoreError>;

    /// Quarantined entries of `stream`, oldest first, at most `limit`.
    fn quarantine(&self, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError>;

    /// How many entries are quarantined in `stream`.
    fn quarantine_count(&self, stream: Stream) -> Result<u64, StoreError>;

    /// A small snapshot kept under a name: breaker, quota, schedules, run history.
    fn snapshot(&self, name: Snapshot) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces a snapshot.
    fn save_snapshot(&self, name: Snapshot, value: &[u8]) -> Result<(), StoreError>;

    /// Bytes that the disk beneath still has for us; `None` where there is no disk. Capture pauses below `min_free`.
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

/// What is committed together. Bounds: at most 200 changes or about 2 MiB, unless one change alone is larger.
///
/// Within one slice removals come first: `closes` and `discards` before `quarantined`, `removed_rows` before `rows`,
/// `forgotten` before `remembered`.
#[derive(Debug, Default)]
pub struct Slice {
    /// New changes, in order.
    pub changes: Vec<NewChange>,
    /// New remembered states.
    pub remembered: Vec<(RememberedKey, Remembered)>,
    /// Remembered states to remove: patrons 400 days after their delete, or re-keyed under a new pseudonym.
    pub forgotten: Vec<RememberedKey>,
    /// New item links: the bibs that each item now hangs from. An empty list removes the item's links.
    pub links: Vec<(RecordNumber, Vec<RecordNumber>)>,
    /// New or seen-again quarantine entries, joined by [`QuarantineEntry::join`].
    pub quarantined: Vec<QuarantineEntry>,
    /// Quarantine entries closed by a newer good version: stream and public id.
    pub closes: Vec<(Stream, String)>,
    /// Quarantine entries that a person dropped.
    pub discards: Vec<QuarantineKey>,
    /// Ledger rows to write.
    pub rows: Vec<LedgerRow>,
    /// Ledger rows to remove, because a neighbour swallowed them.
    pub removed_rows: Vec<(Stream, u64)>,
    /// Undelivered changes to take out of the outbox: expired, or captured under another privacy policy. Seqs that
    /// are not there are passed over.
    pub dropped: Vec<Seq>,
}

/// A change whose seq the store will give; its `seq` field is ignored.
pub type NewChange = Change;

/// One waiting change without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEntry {
    /// Its place in the order.
    pub seq: Seq,
    /// The stream.
    pub stream: Stream,
    /// The public id.
    pub id: String,
    /// What happened: `upsert` or `delete`.
    pub op: &'static str,
    /// The content hash, for [`Change::key`].
    pub hash: ContentHash,
    /// When it was captured.
    pub captured: Timestamp,
    /// Which pass found it.
    pub source: Origin,
    /// Its stored size in bytes.
    pub bytes: u64,
    /// Set when it reloads one sink alone.
    pub only_for: Option<String>,
}

impl OutboxEntry {
    /// The idempotency key of the change, as [`Change::key`] gives it.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}/{}/{}/{}", self.stream, self.id, self.op, self.hash, self.seq)
    }

    /// Whether `sink`, which is at `position`, is still to get it.
    #[must_use]
    pub fn is_awaited_by(&self, sink: &str, position: &SinkPosition) -> bool {
        position.attached
            && position.confirmed < self.seq
            && position.streams.contains(&self.stream)
            && self.only_for.as_ref().is_none_or(|only| only == sink)
    }
}

/// How full the outbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboxUsage {
    /// Entries that wait: those from the first one on that some attached sink has not confirmed.
    pub entries: u64,
    /// Their stored size in bytes.
    pub bytes: u64,
}

/// How far a sink is. The caller decides the first three fields; the store counts the others and ignores what is
/// passed in them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SinkPosition {
    /// Every change up to and including this one is confirmed.
    pub confirmed: Seq,
    /// Detached sinks do not hold back trimming; they need a reload. Nothing is pending for them.
    pub attached: bool,
    /// The streams it takes: changes of other streams are never pending for it.
    pub streams: Vec<Stream>,
    /// The oldest change not yet confirmed was captured then, if there is one.
    pub oldest_pending: Option<Timestamp>,
    /// How many changes wait: those of its streams that are for every sink or for this one. What the sink filters by
    /// location still counts until it is confirmed.
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
    /// How often it was tried. When written: how often since it was last written.
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
    /// The entry as JSON text. Never set for patrons: stores leave it out whatever they are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

impl QuarantineEntry {
    /// What makes the entry unique.
    #[must_use]
    pub fn key(&self) -> QuarantineKey {
        QuarantineKey { stream: self.stream, record: self.record.clone(), fingerprint: self.fingerprint.clone() }
    }

    /// The entry as it stands once `again` was seen too: attempts add up, first sight and a parked state stay, all
    /// else is that of `again`.
    #[must_use]
    pub fn join(&self, again: Self) -> Self {
        Self {
            attempts: self.attempts.saturating_add(again.attempts),
            first_seen: self.first_seen.min(again.first_seen),
            last_seen: self.last_seen.max(again.last_seen),
            last_status: again.last_status.or(self.last_status),
            state: if self.state == QuarantineState::Parked { self.state } else { again.state },
            ..again
        }
    }
}

/// What makes a quarantine entry unique: equal causes of one record are one entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineKey {
    /// The stream.
    pub stream: Stream,
    /// The public id; a patron's pseudonym.
    pub record: String,
    /// The fingerprint of the cause.
    pub fingerprint: String,
}

impl QuarantineKey {
    /// A short name for people: 12 hexadecimal digits, the same wherever the same record fails for the same cause.
    #[must_use]
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [self.stream.name(), &self.record, &self.fingerprint] {
            hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(12).collect()
    }
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
    /// Per sink: load state, published watermarks and gaps.
    Sinks,
    /// What people did by command, and why.
    Actions,
    /// Backfills that are under way or parked.
    Backfills,
    /// What people were called for, and what they are still to be told.
    Alerts,
    /// Reconciliations that are under way or parked.
    Reconciles,
    /// Streams and sinks that people paused.
    Pauses,
    /// The damaged state in whose place this one was begun.
    Damage,
}

impl Snapshot {
    /// Every name.
    pub const ALL: [Self; 13] = [
        Self::Breaker,
        Self::Quota,
        Self::Latch,
        Self::Schedule,
        Self::Settings,
        Self::History,
        Self::Sinks,
        Self::Actions,
        Self::Backfills,
        Self::Alerts,
        Self::Reconciles,
        Self::Pauses,
        Self::Damage,
    ];

    /// The name under which it is stored. Never changed once released.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Breaker => "breaker",
            Self::Quota => "quota",
            Self::Latch => "latch",
            Self::Schedule => "schedule",
            Self::Settings => "settings",
            Self::History => "history",
            Self::Sinks => "sinks",
            Self::Actions => "actions",
            Self::Backfills => "backfills",
            Self::Alerts => "alerts",
            Self::Reconciles => "reconciles",
            Self::Pauses => "pauses",
            Self::Damage => "damage",
        }
    }
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
    /// The disk failed or is full, or the store was closed by an earlier failure.
    Io,
    /// Another process took the state over while this one had it open: what this one still writes is refused.
    Superseded,
    /// What was read is sound and sealed with a key that is not in the key file.
    KeyMissing,
    /// No seq is left below 2⁵³: a clock or a sink raised the order beyond reason.
    Exhausted,
}

impl StoreError {
    /// A failure of `kind`; `message` is a fragment after "failed to …".
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same with the error beneath.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }
}

impl Classify for StoreError {
    fn disposition(&self) -> Disposition {
        Disposition::Halt
    }
}
