//! Telling a sink that is loaded what is gone: every deletion that is remembered, and what left the configured set.
//!
//! The sink may hold copies from before it lost its place. Nothing is asked of Sierra for this.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::order::Selection;
use crate::privacy::Pseudonym;
use crate::sync::capture::Lane;
use crate::sync::capture::error::WalkError;
use crate::sync::content::ContentHasher;
use crate::sync::ledger::days::end_of_day;
use crate::sync::ports::Slice;
use crate::sync::remembered::RememberedState;
use crate::sync::{Change, DeleteReason, Op, Origin, Payload, RememberedKey, Seq, StoreError};

/// Remembered records looked at between two commits.
const READ: usize = 1000;
/// Changes of one slice, at most.
const SLICE: usize = 200;

impl Lane {
    /// Emits a delete to `sink` for every record of `selection` that is remembered as gone. Tells how many.
    ///
    /// # Errors
    /// When there is no room for changes, on a shutdown, and on any storage error.
    pub(super) async fn tell_of_the_dead(
        &self,
        sink: &str,
        selection: &Selection,
        cancel: &CancellationToken,
    ) -> Result<u64, WalkError> {
        let (mut start, mut told) = (None, 0);
        loop {
            self.ready(cancel).await?;
            // Held while they are read and committed: a record that another pass revives in between would be
            // declared dead after its revival.
            let _alone = self.tripwire.lock().await;
            let work = Dead {
                sink: sink.to_owned(),
                selection: selection.clone(),
                mapper: Arc::clone(&self.mapper),
                zone: self.zone.clone(),
                captured: self.clock.now(),
            };
            let (stream, after) = (self.stream(), start);
            let step = self
                .store
                .call(move |store| {
                    let read = store.remembered_after(stream, after.as_ref(), READ)?;
                    let next = (read.len() == READ).then(|| read.last().map(|(key, _)| key.clone())).flatten();
                    let changes: Vec<Change> = read.iter().filter_map(|(key, state)| work.change(key, state)).collect();
                    let mut last_seq = None;
                    for part in changes.chunks(SLICE) {
                        let slice = Slice { changes: part.to_vec(), ..Slice::default() };
                        last_seq = store.commit(slice)?.last().copied().or(last_seq);
                    }
                    Ok::<_, StoreError>((next, changes.len(), last_seq))
                })
                .await?;
            let (next, count, last_seq) = step;
            told += u64::try_from(count).unwrap_or(0);
            if let Some(last_seq) = last_seq {
                self.ringer.set(last_seq);
            }
            match next {
                Some(key) => start = Some(key),
                None => return Ok(told),
            }
        }
    }
}

struct Dead {
    sink: String,
    selection: Selection,
    mapper: Arc<crate::sync::capture::map::Mapper>,
    zone: jiff::tz::TimeZone,
    captured: jiff::Timestamp,
}

impl Dead {
    fn change(&self, key: &RememberedKey, known: &crate::sync::Remembered) -> Option<Change> {
        let (reason, deleted_on, updated) = match known.state {
            RememberedState::Tombstone { deleted_on, .. } => {
                (DeleteReason::Deleted, deleted_on, deleted_on.and_then(|day| end_of_day(day, &self.zone)))
            }
            RememberedState::Live { filtered: true, updated, .. } => (DeleteReason::Filtered, None, updated),
            RememberedState::Live { .. } => return None,
        };
        if !self.selection.is_whole() {
            let number = self.mapper.number(key, &known.sealed_id)?;
            self.selection.has(number).then_some(())?;
        }
        let id = match key {
            RememberedKey::Bib(number) | RememberedKey::Item(number) => number.to_string(),
            RememberedKey::Patron(bytes) => Pseudonym::from_bytes(*bytes).to_string(),
        };
        let stream = key.stream();
        Some(Change {
            seq: Seq::ZERO,
            stream,
            id,
            op: Op::Delete { reason, deleted_on },
            updated,
            suppressed: false,
            captured: self.captured,
            source: Origin::Backfill,
            payload: Payload::Nothing,
            unlinked_bib_ids: Vec::new(),
            hash: ContentHasher::deletion(stream, reason),
            only_for: Some(self.sink.clone()),
        })
    }
}
