//! The mistake: the ledger's new position is committed before the data that it passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sync::ports::{OutboxEntry, OutboxUsage, QuarantineEntry, SinkPosition, Slice, Snapshot, Store};
use sierra_sync::sync::{Change, LedgerRow, Remembered, RememberedKey, Seq, StoreError};

pub(super) struct PositionFirst(pub(super) Arc<dyn Store>);

impl Store for PositionFirst {
    fn commit(&self, mut slice: Slice) -> Result<Vec<Seq>, StoreError> {
        let position = Slice {
            rows: std::mem::take(&mut slice.rows),
            removed_rows: std::mem::take(&mut slice.removed_rows),
            ..Slice::default()
        };
        self.0.commit(position)?;
        self.0.commit(slice)
    }

    fn blocks(&self) -> bool {
        self.0.blocks()
    }

    fn raise_seq(&self, floor: Seq) -> Result<(), StoreError> {
        self.0.raise_seq(floor)
    }

    fn last_seq(&self) -> Result<Seq, StoreError> {
        self.0.last_seq()
    }

    fn boot_number(&self) -> u64 {
        self.0.boot_number()
    }

    fn remembered(&self, keys: &[RememberedKey]) -> Result<Vec<Option<Remembered>>, StoreError> {
        self.0.remembered(keys)
    }

    fn remembered_after(
        &self,
        stream: Stream,
        after: Option<&RememberedKey>,
        limit: usize,
    ) -> Result<Vec<(RememberedKey, Remembered)>, StoreError> {
        self.0.remembered_after(stream, after, limit)
    }

    fn links(&self, items: &[RecordNumber]) -> Result<Vec<Vec<RecordNumber>>, StoreError> {
        self.0.links(items)
    }

    fn ledger(&self, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
        self.0.ledger(stream)
    }

    fn next_row_id(&self) -> Result<u64, StoreError> {
        self.0.next_row_id()
    }

    fn outbox_after(&self, after: Seq, limit: usize, max_bytes: usize) -> Result<Vec<Change>, StoreError> {
        self.0.outbox_after(after, limit, max_bytes)
    }

    fn outbox_entries_after(&self, after: Seq, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.0.outbox_entries_after(after, limit)
    }

    fn outbox_usage(&self) -> Result<OutboxUsage, StoreError> {
        self.0.outbox_usage()
    }

    fn sink_positions(&self) -> Result<BTreeMap<String, SinkPosition>, StoreError> {
        self.0.sink_positions()
    }

    fn set_sink_positions(&self, sinks: &BTreeMap<String, SinkPosition>) -> Result<(), StoreError> {
        self.0.set_sink_positions(sinks)
    }

    fn remove_sink(&self, sink: &str) -> Result<(), StoreError> {
        self.0.remove_sink(sink)
    }

    fn quarantine(&self, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError> {
        self.0.quarantine(stream, limit)
    }

    fn quarantine_count(&self, stream: Stream) -> Result<u64, StoreError> {
        self.0.quarantine_count(stream)
    }

    fn snapshot(&self, name: Snapshot) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.snapshot(name)
    }

    fn save_snapshot(&self, name: Snapshot, value: &[u8]) -> Result<(), StoreError> {
        self.0.save_snapshot(name, value)
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.0.free_bytes()
    }
}
