//! Looking at the cursors of streams and putting them, by order of a person: over the store alone, so that it works
//! beside whatever runs, which finds what is owed in its next pass.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::ledger::cursor::{self, CursorLine, Put, PutError};
use super::ports::{Slice, Store, StoreError};
use super::rebuild;
use super::settings::StreamSettings;
use super::{LedgerRow, RowState};
use crate::record::Stream;

/// Why a cursor was not put.
#[derive(Debug, thiserror::Error)]
pub enum CursorError {
    /// It may not stand there.
    #[error(transparent)]
    Refused(#[from] PutError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Every row of the ledger of `streams`, what is owed behind what is done.
///
/// # Errors
/// On any storage error.
pub fn show(store: &dyn Store, streams: &[Stream]) -> Result<Vec<CursorLine>, StoreError> {
    let mut lines = Vec::new();
    for stream in streams {
        let mut rows = store.ledger(*stream)?;
        rows.sort_by_key(|row| (row.state != RowState::Done, row.pass, row.id));
        lines.extend(rows.iter().map(CursorLine::of));
    }
    Ok(lines)
}

/// Puts the cursor of the stream of `settings` to `to`; with `only_back` only if that is further back. Tells where it
/// stood.
///
/// # Errors
/// When it may not stand there, and on any storage error.
pub fn put(
    store: &dyn Store,
    settings: &StreamSettings,
    zone: &TimeZone,
    to: Timestamp,
    only_back: bool,
    now: Timestamp,
) -> Result<Timestamp, CursorError> {
    let stream = settings.stream;
    let Put { from, owed } = cursor::put(&store.ledger(stream)?, to, now, settings, zone)?;
    if only_back && to >= from {
        return Err(PutError::NotBack { at: from, to }.into());
    }
    let mut rows = Vec::new();
    for (pass, span) in owed {
        // By Sierra's time, as rows are: ours may be ahead of it.
        rows.push(LedgerRow::opened(store.next_row_id()?, stream, pass, span, from.min(now)));
    }
    store.commit(Slice { rows, ..Slice::default() })?;
    Ok(from)
}

/// Begins a rebuild of `streams`, as after restoring an old backup: everything is read and emitted again, and every
/// deletion that Sierra remembers. Tells whether it was not under way already.
///
/// # Errors
/// On any storage error.
pub fn rebuild(store: &dyn Store, streams: &[Stream], now: Timestamp) -> Result<bool, StoreError> {
    rebuild::begin(store, streams, now)
}
