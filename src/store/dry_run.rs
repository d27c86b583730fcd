//! A store that only pretends to write: for `sync --dry-run` and for reading a state without touching it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::{RecordNumber, Stream};
use crate::sync::ports::{OutboxEntry, OutboxUsage, QuarantineEntry, SinkPosition, Slice, Snapshot, Store};
use crate::sync::{Change, LedgerRow, Remembered, RememberedKey, Seq, StoreError};

/// Reads come from another store, writes stay in memory over it and are forgotten with this value.
///
/// Changes that are committed get a seq and are dropped: nothing is delivered from here. The outbox, sink positions
/// and the quarantine are those of the store beneath, as they were.
pub struct DryRun {
    beneath: Arc<dyn Store>,
    pretended: Mutex<Pretended>,
}

/// What was written over the store beneath.
#[derive(Default)]
struct Pretended {
    last_seq: Seq,
    floor: Seq,
    row_ids: u64,
    remembered: BTreeMap<RememberedKey, Option<Remembered>>,
    links: BTreeMap<RecordNumber, Vec<RecordNumber>>,
    rows: BTreeMap<(Stream, u64), Option<LedgerRow>>,
    snapshots: BTreeMap<Snapshot, Vec<u8>>,
}

impl DryRun {
    /// Pretends over `beneath`.
    #[must_use]
    pub fn over(beneath: Arc<dyn Store>) -> Self {
        Self { beneath, pretended: Mutex::default() }
    }

    fn pretended(&self) -> MutexGuard<'_, Pretended> {
        // Every value behind it is whole between statements.
        self.pretended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for DryRun {
    fn blocks(&self) -> bool {
        self.beneath.blocks()
    }

    fn commit(&self, slice: Slice) -> Result<Vec<Seq>, StoreError> {
        let last = self.last_seq()?;
        let mut pretended = self.pretended();
        let mut next = last.max(pretended.floor);
        let seqs: Vec<Seq> = slice
            .changes
            .iter()
            .map(|_| {
                next = next.next();
                next
            })
            .collect();
        pretended.last_seq = seqs.last().copied().unwrap_or(last);
        pretended.remembered.extend(slice.forgotten.into_iter().map(|key| (key, None)));
        pretended.remembered.extend(slice.remembered.into_iter().map(|(key, state)| (key, Some(state))));
        pretended.links.extend(slice.links);
        pretended.rows.extend(slice.removed_rows.into_iter().map(|key| (key, None)));
        pretended.rows.extend(slice.rows.into_iter().map(|row| ((row.stream, row.id), Some(row))));
        Ok(seqs)
    }

    fn raise_seq(&self, floor: Seq) -> Result<(), StoreError> {
        let mut pretended = self.pretended();
        pretended.floor = pretended.floor.max(floor);
        Ok(())
    }

    fn last_seq(&self) -> Result<Seq, StoreError> {
        Ok(self.beneath.last_seq()?.max(self.pretended().last_seq))
    }

    fn boot_number(&self) -> u64 {
        self.beneath.boot_number()
    }

    fn remembered(&self, keys: &[RememberedKey]) -> Result<Vec<Option<Remembered>>, StoreError> {
        let mut found = self.beneath.remembered(keys)?;
        let pretended = self.pretended();
        for (slot, key) in found.iter_mut().zip(keys) {
            if let Some(state) = pretended.remembered.get(key) {
                slot.clone_from(state);
            }
        }
        Ok(found)
    }

    fn remembered_after(
        &self,
        stream: Stream,
        after: Option<&RememberedKey>,
        limit: usize,
    ) -> Result<Vec<(RememberedKey, Remembered)>, StoreError> {
        // What was pretended to be removed leaves holes, so more than `limit` may have to be read.
        let mut merged = BTreeMap::new();
        let pretended = self.pretended();
        let is_after = |key: &RememberedKey| after.is_none_or(|after| key > after);
        let removed = pretended.remembered.values().filter(|state| state.is_none()).count();
        for (key, state) in self.beneath.remembered_after(stream, after, limit.saturating_add(removed))? {
            merged.insert(key, state);
        }
        for (key, state) in pretended.remembered.iter().filter(|(key, _)| key.stream() == stream && is_after(key)) {
            match state {
                Some(state) => merged.insert(key.clone(), state.clone()),
                None => merged.remove(key),
            };
        }
        Ok(merged.into_iter().take(limit).collect())
    }

    fn links(&self, items: &[RecordNumber]) -> Result<Vec<Vec<RecordNumber>>, StoreError> {
        let mut found = self.beneath.links(items)?;
        let pretended = self.pretended();
        for (slot, item) in found.iter_mut().zip(items) {
            if let Some(links) = pretended.links.get(item) {
                slot.clone_from(links);
            }
        }
        Ok(found)
    }

    fn ledger(&self, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
        let mut rows: BTreeMap<u64, LedgerRow> =
            self.beneath.ledger(stream)?.into_iter().map(|row| (row.id, row)).collect();
        for ((_, id), row) in self.pretended().rows.iter().filter(|((of, _), _)| *of == stream) {
            match row {
                Some(row) => rows.insert(*id, row.clone()),
                None => rows.remove(id),
            };
        }
        Ok(rows.into_values().collect())
    }

    fn next_row_id(&self) -> Result<u64, StoreError> {
        // Far above what the store beneath gives out, so that none is used up there.
        const PRETENDED: u64 = 1 << 62;
        let mut pretended = self.pretended();
        pretended.row_ids += 1;
        Ok(PRETENDED + pretended.row_ids)
    }

    fn outbox_after(&self, after: Seq, limit: usize, max_bytes: usize) -> Result<Vec<Change>, StoreError> {
        self.beneath.outbox_after(after, limit, max_bytes)
    }

    fn outbox_entries_after(&self, after: Seq, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.beneath.outbox_entries_after(after, limit)
    }

    fn outbox_usage(&self) -> Result<OutboxUsage, StoreError> {
        self.beneath.outbox_usage()
    }

    fn sink_positions(&self) -> Result<BTreeMap<String, SinkPosition>, StoreError> {
        self.beneath.sink_positions()
    }

    fn set_sink_positions(&self, _: &BTreeMap<String, SinkPosition>) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove_sink(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn quarantine(&self, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError> {
        self.beneath.quarantine(stream, limit)
    }

    fn quarantine_count(&self, stream: Stream) -> Result<u64, StoreError> {
        self.beneath.quarantine_count(stream)
    }

    fn snapshot(&self, name: Snapshot) -> Result<Option<Vec<u8>>, StoreError> {
        let pretended = self.pretended().snapshots.get(&name).cloned();
        if pretended.is_some() { Ok(pretended) } else { self.beneath.snapshot(name) }
    }

    fn save_snapshot(&self, name: Snapshot, value: &[u8]) -> Result<(), StoreError> {
        self.pretended().snapshots.insert(name, value.to_vec());
        Ok(())
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.beneath.free_bytes()
    }
}
