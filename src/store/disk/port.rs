//! What the engine asks of the store, in terms of trees, drafts and the fence.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::chunks;
use super::entry::Prepared;
use super::error;
use super::store::SledStore;
use super::trees::Tree;
use super::{ledger, links, outbox, quarantine, remembered};
use crate::record::{RecordNumber, Stream};
use crate::sync::ports::{OutboxEntry, OutboxUsage, QuarantineEntry, SinkPosition, Slice, Snapshot, Store};
use crate::sync::{Change, LedgerRow, Remembered, RememberedKey, Seq, StoreError};

/// How many row numbers are reserved at once, so that most cost no commit of their own.
const ROW_IDS_AT_ONCE: u64 = 256;

impl Store for SledStore {
    fn blocks(&self) -> bool {
        true
    }

    fn commit(&self, slice: Slice) -> Result<Vec<Seq>, StoreError> {
        let what = "commit a slice";
        self.check_open(what)?;
        let prepared = slice.changes.iter().map(|change| Prepared::of(&self.keyring, &self.squeeze, change));
        let prepared = prepared.collect::<Result<Vec<_>, _>>().map_err(|error| self.close_because(error))?;
        self.write(what, |draft| {
            outbox::drop_changes(&self.trees, draft, &slice.dropped)?;
            let seqs = outbox::append(draft, prepared)?;
            for key in &slice.forgotten {
                draft.batch.remove(remembered::tree(key.stream()), remembered::key(key));
            }
            for (key, state) in &slice.remembered {
                draft.batch.put(remembered::tree(key.stream()), remembered::key(key), &remembered::encode(state));
            }
            for (item, bibs) in &slice.links {
                links::set(&self.trees, &mut draft.batch, *item, bibs)?;
            }
            quarantine::apply(&self.trees, draft, &slice)?;
            for (stream, id) in &slice.removed_rows {
                ledger::remove(&self.trees, &mut draft.batch, *stream, *id)?;
            }
            for row in &slice.rows {
                ledger::put(&self.trees, &self.keyring, &mut draft.batch, row)?;
            }
            Ok(seqs)
        })
    }

    fn raise_seq(&self, floor: Seq) -> Result<(), StoreError> {
        let what = "raise the order";
        if self.read(what, |fenced| Ok(fenced.head.order.floor >= floor))? {
            return Ok(());
        }
        self.write(what, |draft| {
            draft.head.order.raise(floor);
            Ok(())
        })
    }

    fn last_seq(&self) -> Result<Seq, StoreError> {
        self.read("read the last seq", |fenced| Ok(fenced.head.order.last))
    }

    fn boot_number(&self) -> u64 {
        self.boot
    }

    fn remembered(&self, keys: &[RememberedKey]) -> Result<Vec<Option<Remembered>>, StoreError> {
        self.read("read remembered states", |_| {
            let one = |key: &RememberedKey| {
                let tree = remembered::tree(key.stream());
                let bytes = self.trees.get(tree, &remembered::key(key))?;
                bytes.map(|bytes| remembered::decode(&bytes).map_err(error::damaged(tree))).transpose()
            };
            keys.iter().map(one).collect()
        })
    }

    fn remembered_after(
        &self,
        stream: Stream,
        after: Option<&RememberedKey>,
        limit: usize,
    ) -> Result<Vec<(RememberedKey, Remembered)>, StoreError> {
        let tree = remembered::tree(stream);
        let from = match after.filter(|key| key.stream() == stream) {
            Some(key) => Bound::Excluded(remembered::key(key)),
            None => Bound::Unbounded,
        };
        self.read("list remembered states", |_| {
            let rows = self.trees.range(tree, (from, Bound::Unbounded)).take(limit).map(|row| {
                let (key, bytes) = row?;
                let key = remembered::decode_key(stream, &key).map_err(error::damaged(tree))?;
                Ok((key, remembered::decode(&bytes).map_err(error::damaged(tree))?))
            });
            rows.collect()
        })
    }

    fn links(&self, items: &[RecordNumber]) -> Result<Vec<Vec<RecordNumber>>, StoreError> {
        self.read("read item links", |_| items.iter().map(|item| links::of(&self.trees, *item)).collect())
    }

    fn ledger(&self, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
        self.read("read the ledger", |_| ledger::list(&self.trees, &self.keyring, stream))
    }

    fn next_row_id(&self) -> Result<u64, StoreError> {
        let what = "take a row number";
        loop {
            if let Some(id) = self.contained(what, || self.reserved_row_id(what))? {
                return Ok(id);
            }
            self.write(what, |draft| {
                draft.head.row_ids += ROW_IDS_AT_ONCE;
                Ok(())
            })?;
        }
    }

    fn outbox_after(&self, after: Seq, limit: usize, max_bytes: usize) -> Result<Vec<Change>, StoreError> {
        self.contained("read the outbox", || {
            let range = (after, self.last_fenced());
            outbox::changes_after(&self.trees, &self.keyring, &self.squeeze, range, limit, max_bytes)
        })
    }

    fn outbox_entries_after(&self, after: Seq, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.contained("list the outbox", || outbox::entries_after(&self.trees, (after, self.last_fenced()), limit))
    }

    fn outbox_usage(&self) -> Result<OutboxUsage, StoreError> {
        self.read("measure the outbox", |fenced| Ok(fenced.head.usage))
    }

    fn sink_positions(&self) -> Result<BTreeMap<String, SinkPosition>, StoreError> {
        self.read("read sink positions", |fenced| {
            let sinks = fenced.sinks.iter();
            Ok(sinks.map(|(name, sink)| (name.clone(), sink.position(fenced.quarantined.of_sink(name)))).collect())
        })
    }

    fn set_sink_positions(&self, sinks: &BTreeMap<String, SinkPosition>) -> Result<(), StoreError> {
        let more = self.write("move sink positions", |draft| {
            outbox::set_positions(&self.trees, draft, sinks)?;
            outbox::trim(&self.trees, draft)
        })?;
        if more { self.trim_all() } else { Ok(()) }
    }

    fn remove_sink(&self, sink: &str) -> Result<(), StoreError> {
        let more = self.write("remove a sink's position", |draft| {
            outbox::remove_sink(draft, sink);
            outbox::trim(&self.trees, draft)
        })?;
        if more { self.trim_all() } else { Ok(()) }
    }

    fn quarantine(&self, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError> {
        self.read("list the quarantine", |_| quarantine::list(&self.trees, stream, limit))
    }

    fn quarantine_count(&self, stream: Stream) -> Result<u64, StoreError> {
        self.read("count the quarantine", |fenced| Ok(fenced.quarantined.of_stream(stream)))
    }

    fn snapshot(&self, name: Snapshot) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("read a snapshot", |_| chunks::get(&self.trees, Tree::Snapshots, name.name().as_bytes()))
    }

    fn save_snapshot(&self, name: Snapshot, value: &[u8]) -> Result<(), StoreError> {
        self.write("save a snapshot", |draft| {
            chunks::replace(&self.trees, &mut draft.batch, Tree::Snapshots, name.name().as_bytes(), value)
        })
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        let free = fs4::available_space(&self.directory);
        free.map(Some).map_err(|error| error::io("measure the free space of the state directory", error))
    }
}

impl SledStore {
    /// Trims until nothing is left to trim. What a crash interrupts, the next confirmation finishes.
    fn trim_all(&self) -> Result<(), StoreError> {
        while self.write("trim the outbox", |draft| outbox::trim(&self.trees, draft))? {}
        Ok(())
    }
}
