//! The rebuild: what begins by itself when a sink holds more than this store ever issued, and when a store was begun in
//! the place of a damaged one (design §9).
//!
//! Such a store was restored from a backup, or is a new one beside old sinks. Nothing tells what happened since, so
//! everything is read and emitted again, changed or not, and every deletion that Sierra remembers is emitted, also of
//! records that this store never saw: whatever the sinks hold, they end with what Sierra holds.
//!
//! It is two rows in the ledger of each stream, so it goes on after a crash like any other pass: a sweep over all
//! numbers, and, once that is done, all deletions from the earliest day. Why it began is kept beside the sink's place,
//! so that one cause never begins it twice.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use serde::{Deserialize, Serialize};

use super::ledger::coverage::coverage;
use super::observer::{Event, SharedObserver};
use super::ports::{Slice, Snapshot, Store, StoreError, StoreErrorKind};
use super::positions::Positions;
use super::store_handle::StoreHandle;
use super::{LedgerRow, Pass, RowState, Seq, Span};
use crate::clock::SharedClock;
use crate::record::{RecordNumber, Stream};

/// No library system remembers deletions from before this day.
pub const EARLIEST: Date = date(1970, 1, 1);

/// A state that was damaged, and in whose place another was begun. Kept in [`Snapshot::Damage`] of that other one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// When it was set aside.
    pub at: Timestamp,
    /// What was wrong with it, as a sentence.
    pub why: String,
    /// The name of the directory, below that of the state, in which it lies.
    pub set_aside: String,
}

impl Damage {
    /// What `store` was begun after, if it was.
    ///
    /// # Errors
    /// On any storage error.
    pub fn before(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        Ok(kept(store)?.map(|kept| kept.damage))
    }

    /// Notes that `store` was begun after this: a rebuild begins when an engine is opened over it.
    ///
    /// # Errors
    /// On any storage error.
    pub fn owe_rebuild(&self, store: &dyn Store) -> Result<(), StoreError> {
        keep(store, &Kept { damage: self.clone(), has_begun: false })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    damage: Damage,
    has_begun: bool,
}

fn kept(store: &dyn Store) -> Result<Option<Kept>, StoreError> {
    let Some(bytes) = store.snapshot(Snapshot::Damage)? else { return Ok(None) };
    let failed = |error| StoreError::new(StoreErrorKind::Corrupt, "read which state was damaged").caused_by(error);
    serde_json::from_slice(&bytes).map(Some).map_err(|error: serde_json::Error| failed(error))
}

fn keep(store: &dyn Store, kept: &Kept) -> Result<(), StoreError> {
    let value = serde_json::to_vec(kept).expect("the note holds nothing that JSON cannot");
    store.save_snapshot(Snapshot::Damage, &value)
}

/// Begins rebuilds.
pub struct Rebuild {
    pub(in crate::sync) streams: Vec<Stream>,
    pub(in crate::sync) store: StoreHandle,
    pub(in crate::sync) positions: Arc<Positions>,
    pub(in crate::sync) clock: SharedClock,
    pub(in crate::sync) observer: SharedObserver,
}

impl Rebuild {
    /// Takes note that `sink` holds changes up to `held`: no change may get such a seq again, since the sink would keep
    /// the older one for the newer; and if it is ahead of the store a rebuild of every stream begins, or begins anew.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn look_at(&self, sink: &str, held: Seq) -> Result<(), StoreError> {
        let is_ahead = self.positions.is_ahead(sink, held).await?;
        self.store.call(move |store| store.raise_seq(held.next())).await?;
        if !is_ahead {
            return Ok(());
        }
        self.observer.observe(&Event::SinkAhead { sink: sink.to_owned(), seq: held });
        let (streams, now) = (self.streams.clone(), self.clock.now());
        let has_begun = self.store.call(move |store| begin(store, &streams, now)).await?;
        self.positions.note_ahead(sink, held).await?;
        if has_begun {
            self.observer.observe(&Event::RebuildBegun { streams: self.streams.clone() });
        }
        Ok(())
    }
}

impl Rebuild {
    /// Begins the rebuild that a state owes which was begun in the place of a damaged one: whatever sinks hold, and
    /// whether or not they can tell, nobody knows any more what they were given.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn after_damage(&self) -> Result<(), StoreError> {
        let Some(owed) = self.store.call(kept).await?.filter(|kept| !kept.has_begun) else {
            return Ok(());
        };
        let (streams, now) = (self.streams.clone(), self.clock.now());
        let has_begun = self.store.call(move |store| begin(store, &streams, now)).await?;
        // A crash before this begins it once more, which loses nothing.
        self.store.call(move |store| keep(store, &Kept { has_begun: true, ..owed })).await?;
        if has_begun {
            self.observer.observe(&Event::RebuildBegun { streams: self.streams.clone() });
        }
        Ok(())
    }
}

/// Whether something of a rebuild is still to be done in a stream with these rows.
#[must_use]
pub fn is_under_way(rows: &[LedgerRow]) -> bool {
    rows.iter().any(|row| matches!(row.pass, Pass::Rebuild | Pass::RebuildDeletes) && row.is_owed())
}

/// Opens the rows of a rebuild of every one of `streams`, in one commit. What a rebuild before had left to do, and a
/// first load that was under way, are part of it. Tells whether there was anything to open: one that stands at its
/// beginning is not begun again.
pub(in crate::sync) fn begin(store: &dyn Store, streams: &[Stream], now: Timestamp) -> Result<bool, StoreError> {
    let mut slice = Slice::default();
    for stream in streams.iter().copied() {
        let is_superseded = |row: &&LedgerRow| match row.pass {
            Pass::Rebuild | Pass::RebuildDeletes => true,
            Pass::Load => row.state != RowState::Done,
            _ => false,
        };
        let rows = store.ledger(stream)?;
        let stands_at_its_beginning = |pass| rows.iter().any(|row| row.pass == pass && row.position.is_none());
        if [Pass::Rebuild, Pass::RebuildDeletes].into_iter().all(stands_at_its_beginning) {
            continue;
        }
        slice.removed_rows.extend(rows.iter().filter(is_superseded).map(|row| (stream, row.id)));
        // Both spans are set by Sierra's time when their walks begin.
        let pinned = coverage(&rows).pinned.unwrap_or(Timestamp::UNIX_EPOCH);
        let sweep = Span::Ids { from: RecordNumber::new(1), to: None, pinned };
        let deletions = Span::Days { from: EARLIEST, to: EARLIEST };
        for (pass, span) in [(Pass::Rebuild, sweep), (Pass::RebuildDeletes, deletions)] {
            slice.rows.push(LedgerRow::opened(store.next_row_id()?, stream, pass, span, now));
        }
    }
    let has_begun = !slice.rows.is_empty();
    store.commit(slice)?;
    Ok(has_begun)
}
