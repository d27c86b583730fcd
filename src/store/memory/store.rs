//! The memory store itself: one lock, one pending write, one fence.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fault::{Step, Strike};
use super::world::{World, Write};
use crate::clock::SharedClock;
use crate::record::{RecordNumber, Stream};
use crate::sync::ports::{
    OutboxEntry, OutboxUsage, QuarantineEntry, SinkPosition, Slice, Snapshot, Store, StoreErrorKind,
};
use crate::sync::{Change, LedgerRow, Remembered, RememberedKey, Seq, StoreError};

/// A store in memory that keeps what is fenced apart from what is not, and loses the latter in a crash.
///
/// No call blocks and none clones more than it returns, so that a simulation can afford one commit per page over
/// simulated years. Steps can be made to fail with [`MemoryStore::fail_at`]; from then on the store is down, like a
/// process that ended, until [`MemoryStore::crash_and_reopen`] gives the next one.
#[derive(Debug)]
pub struct MemoryStore {
    clock: SharedClock,
    boot: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `None` once a newer opening took it over: a handle from before the crash reads and writes nothing any more.
    fenced: Option<World>,
    /// The write between commit and fence. Reads never look at it.
    unfenced: Option<Write>,
    strikes: Vec<Strike>,
    down: bool,
    writes: u64,
    free_bytes: Option<u64>,
}

impl MemoryStore {
    /// A new, empty store; its order starts at the floor that `clock` gives.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self::open(clock, World::new(), None)
    }

    /// What a process finds that starts after this one crashed: all that was fenced, nothing else. This handle is
    /// dead from then on, so that a task that outlived the crash cannot write. Planned failures are forgotten.
    #[must_use]
    pub fn crash_and_reopen(&self) -> Self {
        let mut inner = self.lock();
        inner.down = true;
        inner.unfenced = None;
        let fenced = inner.fenced.take().unwrap_or_else(World::new);
        Self::open(Arc::clone(&self.clock), fenced, inner.free_bytes)
    }

    /// What a process finds that starts on a backup taken now. This handle goes on.
    #[must_use]
    pub fn backup(&self) -> Self {
        let inner = self.lock();
        let fenced = inner.fenced.clone().unwrap_or_else(World::new);
        Self::open(Arc::clone(&self.clock), fenced, inner.free_bytes)
    }

    /// Lets `step` fail once, after it was passed unharmed `spared` times from now on. Several plans may stand at once.
    pub fn fail_at(&self, step: Step, spared: u64) {
        self.lock().strikes.push(Strike { step, spared });
    }

    /// Whether a failure has struck: every call fails until the store is opened again.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.lock().down
    }

    /// How many writing calls were begun since this opening: what a test that crashes at every step counts to.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// What [`Store::free_bytes`] answers from now on.
    pub fn set_free_bytes(&self, free_bytes: Option<u64>) {
        self.lock().free_bytes = free_bytes;
    }

    fn open(clock: SharedClock, mut world: World, free_bytes: Option<u64>) -> Self {
        world.boot += 1;
        world.order.raise(Seq::floor_at(clock.now().as_second()));
        let boot = world.boot;
        let inner =
            Inner { fenced: Some(world), unfenced: None, strikes: Vec::new(), down: false, writes: 0, free_bytes };
        Self { clock, boot, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, what: &str, read: impl FnOnce(&World) -> T) -> Result<T, StoreError> {
        let mut inner = self.lock();
        inner.pass(Step::Read, what)?;
        inner.fenced.as_ref().map(read).ok_or_else(|| closed(what))
    }

    /// Commit, then fence, then acknowledge; each step may strike. `write` sees the fenced world and says what to
    /// change and what to answer.
    fn write<T>(
        &self,
        what: &str,
        write: impl FnOnce(&World) -> Result<(Write, T), StoreError>,
    ) -> Result<T, StoreError> {
        let mut inner = self.lock();
        inner.writes += 1;
        inner.pass(Step::BeforeCommit, what)?;
        let prepared = inner.fenced.as_ref().ok_or_else(|| closed(what)).and_then(write);
        let (write, answer) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                inner.down = true;
                return Err(error);
            }
        };
        inner.unfenced = Some(write);
        inner.pass(Step::Unfenced, what)?;
        inner.fence();
        inner.pass(Step::Unacknowledged, what)?;
        Ok(answer)
    }
}

impl Inner {
    fn pass(&mut self, step: Step, what: &str) -> Result<(), StoreError> {
        if self.down {
            return Err(closed(what));
        }
        let mut struck = false;
        self.strikes.retain_mut(|strike| {
            let due = strike.step == step && strike.spared == 0;
            if strike.step == step && !due {
                strike.spared -= 1;
            }
            struck |= due;
            !due
        });
        if struck {
            self.down = true;
            return Err(StoreError::new(StoreErrorKind::Io, format!("{what}: failed as planned at {step:?}")));
        }
        Ok(())
    }

    fn fence(&mut self) {
        if let (Some(world), Some(write)) = (&mut self.fenced, self.unfenced.take()) {
            world.apply(write);
        }
    }
}

fn closed(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("{what}: the store is closed after an earlier failure"))
}

impl Store for MemoryStore {
    fn blocks(&self) -> bool {
        false
    }

    fn commit(&self, slice: Slice) -> Result<Vec<Seq>, StoreError> {
        self.write("commit a slice", |world| {
            let mut order = world.order;
            let seqs = order.take(slice.changes.len())?;
            Ok((Write::Slice { slice: Box::new(slice), seqs: seqs.clone(), order }, seqs))
        })
    }

    fn raise_seq(&self, floor: Seq) -> Result<(), StoreError> {
        self.write("raise the order", |world| {
            let mut order = world.order;
            order.raise(floor);
            Ok((Write::Order(order), ()))
        })
    }

    fn last_seq(&self) -> Result<Seq, StoreError> {
        self.read("read the last seq", |world| world.order.last)
    }

    fn boot_number(&self) -> u64 {
        self.boot
    }

    fn remembered(&self, keys: &[RememberedKey]) -> Result<Vec<Option<Remembered>>, StoreError> {
        self.read("read remembered states", |world| keys.iter().map(|key| world.remembered.get(key).cloned()).collect())
    }

    fn remembered_after(
        &self,
        stream: Stream,
        after: Option<&RememberedKey>,
        limit: usize,
    ) -> Result<Vec<(RememberedKey, Remembered)>, StoreError> {
        let first = match stream {
            Stream::Bibs => RememberedKey::Bib(RecordNumber::new(0)),
            Stream::Items => RememberedKey::Item(RecordNumber::new(0)),
            Stream::Patrons => RememberedKey::Patron([0; 16]),
        };
        let from = match after {
            Some(key) if *key >= first => Bound::Excluded(key),
            _ => Bound::Included(&first),
        };
        self.read("list remembered states", |world| {
            let rows = world.remembered.range((from, Bound::Unbounded));
            let rows = rows.take_while(|(key, _)| key.stream() == stream);
            rows.take(limit).map(|(key, state)| (key.clone(), state.clone())).collect()
        })
    }

    fn links(&self, items: &[RecordNumber]) -> Result<Vec<Vec<RecordNumber>>, StoreError> {
        self.read("read item links", |world| {
            items.iter().map(|item| world.links.get(item).cloned().unwrap_or_default()).collect()
        })
    }

    fn ledger(&self, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
        self.read("read the ledger", |world| {
            world.ledger.range((stream, 0)..=(stream, u64::MAX)).map(|(_, row)| row.clone()).collect()
        })
    }

    fn next_row_id(&self) -> Result<u64, StoreError> {
        self.write("take a row number", |world| {
            let id = world.last_row_id + 1;
            Ok((Write::RowId(id), id))
        })
    }

    fn outbox_after(&self, after: Seq, limit: usize, max_bytes: usize) -> Result<Vec<Change>, StoreError> {
        self.read("read the outbox", |world| world.outbox.after(after, limit, max_bytes))
    }

    fn outbox_entries_after(&self, after: Seq, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.read("list the outbox", |world| world.outbox.entries_after(after, limit))
    }

    fn outbox_usage(&self) -> Result<OutboxUsage, StoreError> {
        self.read("measure the outbox", |world| world.outbox.usage())
    }

    fn sink_positions(&self) -> Result<BTreeMap<String, SinkPosition>, StoreError> {
        self.read("read sink positions", |world| {
            let sinks = world.outbox.sinks().iter();
            let named = |(name, backlog): (&String, &crate::store::backlog::Backlog)| {
                (name.clone(), backlog.position(world.quarantine.count_of_sink(name)))
            };
            sinks.map(named).collect()
        })
    }

    fn set_sink_positions(&self, sinks: &BTreeMap<String, SinkPosition>) -> Result<(), StoreError> {
        self.write("move sink positions", |_| Ok((Write::Positions(sinks.clone()), ())))
    }

    fn remove_sink(&self, sink: &str) -> Result<(), StoreError> {
        self.write("remove a sink's position", |_| Ok((Write::RemoveSink(sink.to_owned()), ())))
    }

    fn quarantine(&self, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError> {
        self.read("list the quarantine", |world| world.quarantine.list(stream, limit))
    }

    fn quarantine_count(&self, stream: Stream) -> Result<u64, StoreError> {
        self.read("count the quarantine", |world| world.quarantine.count(stream))
    }

    fn snapshot(&self, name: Snapshot) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("read a snapshot", |world| world.snapshots.get(&name).cloned())
    }

    fn save_snapshot(&self, name: Snapshot, value: &[u8]) -> Result<(), StoreError> {
        self.write("save a snapshot", |_| Ok((Write::Snapshot(name, value.to_vec()), ())))
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        let mut inner = self.lock();
        inner.pass(Step::Read, "measure free space")?;
        Ok(inner.free_bytes)
    }
}
