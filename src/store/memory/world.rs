//! What the memory store holds once it is fenced, and the writes that change it.

use std::collections::{BTreeMap, HashMap};

use super::outbox::Outbox;
use crate::record::{RecordNumber, Stream};
use crate::store::order::Order;
use crate::sync::ports::{QuarantineEntry, QuarantineKey, SinkPosition, Slice, Snapshot};
use crate::sync::{LedgerRow, Remembered, RememberedKey, Seq};

/// One write, complete enough to be applied without asking anything.
#[derive(Debug)]
pub(super) enum Write {
    Slice { slice: Box<Slice>, seqs: Vec<Seq>, order: Order },
    Order(Order),
    RowId(u64),
    Positions(BTreeMap<String, SinkPosition>),
    RemoveSink(String),
    Snapshot(Snapshot, Vec<u8>),
}

/// Everything that is fenced.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) order: Order,
    pub(super) boot: u64,
    pub(super) last_row_id: u64,
    pub(super) outbox: Outbox,
    pub(super) remembered: BTreeMap<RememberedKey, Remembered>,
    pub(super) links: HashMap<RecordNumber, Vec<RecordNumber>>,
    pub(super) ledger: BTreeMap<(Stream, u64), LedgerRow>,
    pub(super) quarantine: Quarantine,
    pub(super) snapshots: HashMap<Snapshot, Vec<u8>>,
}

/// Quarantined entries in the order in which they were first written.
#[derive(Debug, Clone, Default)]
pub(super) struct Quarantine {
    next: u64,
    entries: BTreeMap<(Stream, u64), QuarantineEntry>,
    places: BTreeMap<QuarantineKey, u64>,
    per_stream: BTreeMap<Stream, u64>,
    per_sink: BTreeMap<String, u64>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            order: Order { last: Seq::ZERO, floor: Seq::ZERO },
            boot: 0,
            last_row_id: 0,
            outbox: Outbox::default(),
            remembered: BTreeMap::new(),
            links: HashMap::new(),
            ledger: BTreeMap::new(),
            quarantine: Quarantine::default(),
            snapshots: HashMap::new(),
        }
    }

    pub(super) fn apply(&mut self, write: Write) {
        match write {
            Write::Slice { slice, seqs, order } => {
                self.order = order;
                self.apply_slice(*slice, seqs);
            }
            Write::Order(order) => self.order = order,
            Write::RowId(id) => self.last_row_id = id,
            Write::Positions(positions) => self.outbox.set_positions(positions),
            Write::RemoveSink(name) => self.outbox.remove_sink(&name),
            Write::Snapshot(name, value) => {
                self.snapshots.insert(name, value);
            }
        }
    }

    fn apply_slice(&mut self, slice: Slice, seqs: Vec<Seq>) {
        self.outbox.drop_changes(&slice.dropped);
        for (mut change, seq) in slice.changes.into_iter().zip(seqs) {
            change.seq = seq;
            self.outbox.append(change);
        }
        for key in &slice.forgotten {
            self.remembered.remove(key);
        }
        self.remembered.extend(slice.remembered);
        for (item, bibs) in slice.links {
            if bibs.is_empty() {
                self.links.remove(&item);
            } else {
                self.links.insert(item, bibs);
            }
        }
        for (stream, record) in &slice.closes {
            self.quarantine.close(*stream, record);
        }
        for key in &slice.discards {
            self.quarantine.discard(key);
        }
        for entry in slice.quarantined {
            self.quarantine.put(entry);
        }
        for key in &slice.removed_rows {
            self.ledger.remove(key);
        }
        self.ledger.extend(slice.rows.into_iter().map(|row| ((row.stream, row.id), row)));
    }
}

impl Quarantine {
    pub(super) fn list(&self, stream: Stream, limit: usize) -> Vec<QuarantineEntry> {
        let entries = self.entries.range((stream, 0)..=(stream, u64::MAX));
        entries.take(limit).map(|(_, entry)| entry.clone()).collect()
    }

    pub(super) fn count(&self, stream: Stream) -> u64 {
        self.per_stream.get(&stream).copied().unwrap_or(0)
    }

    pub(super) fn count_of_sink(&self, sink: &str) -> u64 {
        self.per_sink.get(sink).copied().unwrap_or(0)
    }

    fn put(&mut self, mut entry: QuarantineEntry) {
        if entry.stream == Stream::Patrons {
            entry.payload = None;
        }
        let key = entry.key();
        let (place, entry) = match self.discard(&key) {
            Some((place, before)) => (place, before.join(entry)),
            None => {
                self.next += 1;
                (self.next, entry)
            }
        };
        *self.per_stream.entry(entry.stream).or_default() += 1;
        if let Some(sink) = &entry.sink {
            *self.per_sink.entry(sink.clone()).or_default() += 1;
        }
        self.entries.insert((entry.stream, place), entry);
        self.places.insert(key, place);
    }

    fn close(&mut self, stream: Stream, record: &str) {
        let first = QuarantineKey { stream, record: record.to_owned(), fingerprint: String::new() };
        let from_first = self.places.range(first..).map(|(key, _)| key);
        let closed: Vec<_> =
            from_first.take_while(|key| key.stream == stream && key.record == record).cloned().collect();
        for key in closed {
            self.discard(&key);
        }
    }

    fn discard(&mut self, key: &QuarantineKey) -> Option<(u64, QuarantineEntry)> {
        let place = self.places.remove(key)?;
        let entry = self.entries.remove(&(key.stream, place))?;
        if let Some(count) = self.per_stream.get_mut(&entry.stream) {
            *count -= 1;
        }
        if let Some(count) = entry.sink.as_ref().and_then(|sink| self.per_sink.get_mut(sink)) {
            *count -= 1;
        }
        Some((place, entry))
    }
}
