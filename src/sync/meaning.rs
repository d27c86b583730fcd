//! What the events of each stream mean: a hash of the settings that shape them.
//!
//! Sameness would hide a change of these settings: a record read again looks unchanged, or differs for half of the
//! records. So the stream is then loaded again beside the live one, everything emitted, and only when that is complete
//! does the new hash stand in the place of the old one. Until then it stands there as one that is being changed to:
//! whoever puts the old settings back meanwhile finds that these changed as well, for some events were emitted in between.

use std::collections::BTreeMap;

use super::ports::{Slice, Snapshot, StoreErrorKind};
use super::{Seq, Store, StoreError};
use crate::record::Stream;

/// Waiting changes looked at between two commits.
const READ: usize = 1000;

/// By stream: the hash, as text.
pub type Meanings = BTreeMap<Stream, String>;

/// What the state was made with.
///
/// # Errors
/// On any storage error.
pub fn kept(store: &dyn Store) -> Result<Meanings, StoreError> {
    store.snapshot(Snapshot::Settings)?.as_deref().map_or_else(|| Ok(Meanings::new()), read)
}

/// The same from the bytes of [`Snapshot::Settings`].
///
/// # Errors
/// When they are none.
pub fn read(bytes: &[u8]) -> Result<Meanings, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, "read what the settings were").caused_by(error))
}

/// What is kept while a stream is loaded again, so that its events mean `meaning` in the end.
pub(super) fn on_the_way_to(meaning: &str) -> String {
    format!("on the way to {meaning}")
}

/// Keeps what a stream means from now on.
///
/// # Errors
/// On any storage error.
pub fn keep(store: &dyn Store, stream: Stream, meaning: &str) -> Result<(), StoreError> {
    let mut meanings = kept(store)?;
    if meanings.insert(stream, meaning.to_owned()).as_deref() == Some(meaning) {
        return Ok(());
    }
    let value = serde_json::to_vec(&meanings).expect("texts under names are JSON");
    store.save_snapshot(Snapshot::Settings, &value)
}

/// Takes the waiting upserts of `stream` out of the outbox: they were captured under settings that count no more, and
/// will all be emitted again. Deletions stay. Tells how many went.
///
/// # Errors
/// On any storage error.
pub(super) fn forget_waiting(store: &dyn Store, stream: Stream) -> Result<u64, StoreError> {
    let (mut after, mut gone) = (Seq::ZERO, 0);
    loop {
        let entries = store.outbox_entries_after(after, READ)?;
        let Some(last) = entries.last().map(|entry| entry.seq) else { return Ok(gone) };
        let is_old = |op: &str, of: Stream| op == "upsert" && of == stream;
        let dropped: Vec<Seq> =
            entries.iter().filter(|entry| is_old(entry.op, entry.stream)).map(|entry| entry.seq).collect();
        if !dropped.is_empty() {
            gone += u64::try_from(dropped.len()).unwrap_or(0);
            store.commit(Slice { dropped, ..Slice::default() })?;
        }
        after = last;
    }
}
