//! The product's store: sled behind a fence.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::damage;
use super::draft::{Draft, Fenced};
use super::error;
use super::fence::Fence;
use super::head::Head;
use super::high_water::{Acknowledged, HighWater};
use super::squeeze::Squeeze;
use super::trees::{SEGMENT_BYTES, Trees};
use super::{format, hints, place};
use crate::clock::SharedClock;
use crate::privacy::Keyring;
use crate::store::StoreSettings;
use crate::store::holder::{self, StateLock};
use crate::sync::ports::StoreErrorKind;
use crate::sync::{Seq, StoreError};

/// sled extends its file by segments of half this size.
const ROOM_TO_WORK: usize = 1 << 20;

/// The store of the product.
///
/// One writer at a time: a write takes the lock, makes its transaction, raises the fence, and only then lets others
/// see what it wrote. Reads of small state are answered from memory; reads of trees share the lock, except those of
/// the outbox, which stop at the last fenced seq instead and so never wait for a disk.
///
/// sled panics on some kinds of damage, in calls that ought to return an error. Every call into it runs inside
/// `SledStore::contained`, which turns a panic into [`StoreErrorKind::Corrupt`] and closes the store.
///
/// [`StoreErrorKind::Corrupt`]: crate::sync::ports::StoreErrorKind::Corrupt
#[derive(Debug)]
pub struct SledStore {
    pub(super) directory: PathBuf,
    pub(super) trees: Trees,
    fence: Fence,
    high_water: HighWater,
    pub(super) keyring: Arc<Keyring>,
    pub(super) squeeze: Squeeze,
    pub(super) boot: u64,
    instance: String,
    fenced: RwLock<Fenced>,
    /// The last fenced seq, for readers without the lock.
    last_fenced: AtomicU64,
    closed: AtomicBool,
    /// Why it was closed.
    cause: OnceLock<StoreError>,
    /// Last, so that the lock is given back after the database has closed its files.
    lock: StateLock,
}

impl SledStore {
    /// Opens the store in `settings.path`, or makes one there; raises the boot number and the order's floor.
    ///
    /// # Errors
    /// `Held` when another process has it, `NewerFormat` when a newer program wrote it, `Corrupt` when it is damaged
    /// or lacks commits that were acknowledged, `Io` when the disk fails. Nothing is changed by an opening that fails.
    pub fn open(settings: &StoreSettings, keyring: Arc<Keyring>, clock: SharedClock) -> Result<Self, StoreError> {
        let mut store = Self::open_as_it_is(settings, keyring, &clock)?;
        place::make_durable(&store.directory).map_err(|error| store.close_because(error))?;
        store.boot = store.begin(Seq::floor_at(clock.now().as_second()))?;
        Ok(store)
    }

    /// Opens the store in `settings.path` for reading: nothing is committed to it, so that a disk which takes nothing
    /// more does not keep it from being looked at. What is written to it must go elsewhere.
    ///
    /// # Errors
    /// As [`SledStore::open`].
    pub fn open_to_look(
        settings: &StoreSettings,
        keyring: Arc<Keyring>,
        clock: SharedClock,
    ) -> Result<Self, StoreError> {
        let mut store = Self::open_as_it_is(settings, keyring, &clock)?;
        store.boot += 1;
        Ok(store)
    }

    fn open_as_it_is(settings: &StoreSettings, keyring: Arc<Keyring>, clock: &SharedClock) -> Result<Self, StoreError> {
        let opening = || {
            let lock = StateLock::acquire(&settings.path)?;
            let directory = place::in_use(&settings.path)?;
            holder::private_directory(&directory)?;
            damage::refuse_marked(&directory)?;
            let open = || {
                let opened = catch_unwind(AssertUnwindSafe(|| Parts::open(&directory, clock)));
                opened.unwrap_or_else(|_| Err(after_panic("open the state database", &settings.path)))
            };
            let tidied = |error| error::io("tidy the state database up", error);
            hints::remove_unfinished(&directory).map_err(tidied)?;
            // What the disk does not give looks like damage, and is none.
            let unread = |error| error::io("read the state database", error);
            damage::gives_what_is_opened(&directory, SEGMENT_BYTES).map_err(unread)?;
            let again = |error: StoreError| {
                damage::gives_bytes(&directory).map_err(unread)?;
                if hints::pass_over(&directory).map_err(tidied)? { open() } else { Err(error) }
            };
            let parts = match open() {
                Err(error) if error.kind == StoreErrorKind::Corrupt => again(error)?,
                opened => opened?,
            };
            make_private(&directory)?;
            Ok(Self::of(parts, directory, lock, keyring))
        };
        opening().map_err(|error| error::on_disk(&settings.path, error))
    }

    /// Marks the store as damaged because of `why`: the next opening refuses it, and whoever may begins a new one.
    pub fn mark_damaged(&self, why: &StoreError) {
        if why.kind == StoreErrorKind::Corrupt {
            damage::mark(&self.directory, why);
        }
    }

    /// The lock, through which the holder file can be told of a control socket.
    #[must_use]
    pub fn lock(&self) -> &StateLock {
        &self.lock
    }

    /// Tells this store from every other, a rebuilt one included: 32 hexadecimal digits.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Bytes of the database on disk. sled's file grows with the largest backlog there was and never shrinks.
    ///
    /// # Errors
    /// When the files cannot be measured.
    pub fn size_on_disk(&self) -> Result<u64, StoreError> {
        self.contained("measure the state database", || self.trees.size_on_disk())
    }

    /// How often the fence was raised since the store was opened.
    #[must_use]
    pub fn fences_raised(&self) -> u64 {
        self.fence.raised()
    }

    fn of(parts: Parts, directory: PathBuf, lock: StateLock, keyring: Arc<Keyring>) -> Self {
        let Parts { trees, fence, instance, fenced, high_water } = parts;
        Self {
            directory,
            trees,
            fence,
            high_water,
            keyring,
            squeeze: Squeeze::default(),
            boot: fenced.head.boot,
            instance,
            last_fenced: AtomicU64::new(fenced.head.order.last.value()),
            fenced: RwLock::new(fenced),
            closed: AtomicBool::new(false),
            cause: OnceLock::new(),
            lock,
        }
    }

    fn state(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    /// Raises boot number and floor.
    fn begin(&self, floor: Seq) -> Result<u64, StoreError> {
        self.write("begin a new boot", |draft| {
            draft.head.boot += 1;
            draft.head.order.raise(floor);
            Ok(draft.head.boot)
        })
    }

    /// A row number of those that are reserved already, if one is left.
    pub(super) fn reserved_row_id(&self, what: &str) -> Result<Option<u64>, StoreError> {
        let mut fenced = self.fenced.write().unwrap_or_else(PoisonError::into_inner);
        self.check_open(what)?;
        if fenced.row_id == fenced.head.row_ids {
            return Ok(None);
        }
        fenced.row_id += 1;
        Ok(Some(fenced.row_id))
    }

    /// Runs `read` while nothing unfenced is in the trees.
    pub(super) fn read<T>(
        &self,
        what: &str,
        read: impl FnOnce(&Fenced) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.contained(what, || {
            let fenced = self.fenced.read().unwrap_or_else(PoisonError::into_inner);
            self.check_open(what)?;
            read(&fenced)
        })
    }

    /// Drafts, commits and fences one transaction; only then does anybody see it. Any failure closes the store.
    pub(super) fn write<T>(
        &self,
        what: &str,
        prepare: impl FnOnce(&mut Draft) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.contained(what, || {
            let mut fenced = self.fenced.write().unwrap_or_else(PoisonError::into_inner);
            self.check_open(what)?;
            let written = (|| {
                if !self.lock.is_ours() {
                    return Err(error::superseded(what));
                }
                let mut draft = Draft::of(&fenced);
                let answer = prepare(&mut draft)?;
                draft.transact(what, &self.trees)?;
                self.fence.raise(&self.trees)?;
                let Head { commits, order, .. } = draft.head;
                self.high_water.note(Acknowledged { commits, last: order.last })?;
                Ok((draft, answer))
            })();
            match written {
                Ok((draft, answer)) => {
                    self.last_fenced.store(draft.head.order.last.value(), Ordering::SeqCst);
                    fenced.become_fenced(draft);
                    Ok(answer)
                }
                Err(error) => Err(self.close_because(error)),
            }
        })
    }

    /// Where sled's panics end: the store is closed, and the caller gets an error like any other.
    pub(super) fn contained<T>(
        &self,
        what: &str,
        call: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_open(what)?;
        let called = catch_unwind(AssertUnwindSafe(call));
        called.unwrap_or_else(|_| Err(self.close_because(after_panic(what, &self.directory)))).map_err(|error| {
            self.mark_damaged(&error);
            error::on_disk(self.state(), error)
        })
    }

    /// Closes the store for good because of `error`, which is what every later call is told. One handle of the database
    /// is leaked: dropping the last one would make sled flush what a failed transaction left in its memory.
    pub(super) fn close_because(&self, error: StoreError) -> StoreError {
        let error = error::on_disk(self.state(), error);
        if !self.closed.swap(true, Ordering::SeqCst) {
            std::mem::forget(self.trees.clone());
        }
        let cause = self.cause.get_or_init(|| StoreError::new(error.kind.clone(), error.message.clone()));
        if cause.message == error.message { error } else { error::closed("", Some(cause)) }
    }

    pub(super) fn check_open(&self, what: &str) -> Result<(), StoreError> {
        if self.closed.load(Ordering::SeqCst) { Err(error::closed(what, self.cause.get())) } else { Ok(()) }
    }

    pub(super) fn last_fenced(&self) -> Seq {
        Seq::new(self.last_fenced.load(Ordering::SeqCst)).unwrap_or(Seq::MAX)
    }
}

/// What lies on the disk, opened.
struct Parts {
    trees: Trees,
    fence: Fence,
    instance: String,
    fenced: Fenced,
    high_water: HighWater,
}

impl Parts {
    fn open(directory: &Path, clock: &SharedClock) -> Result<Self, StoreError> {
        let trees = Trees::open(directory)?;
        let fence = Fence::open(directory)?;
        let instance = format::check_or_make(&trees, clock.now())?;
        let fenced = Fenced::read(&trees)?;
        let (high_water, acknowledged) = HighWater::open(directory)?;
        if fenced.head.commits < acknowledged.commits {
            return Err(error::rolled_back(acknowledged.commits, fenced.head.commits));
        }
        Ok(Self { trees, fence, instance, fenced, high_water })
    }
}

/// What a panic of sled while doing `what` means. It panics over damage, and also where a disk takes nothing more or does
/// not give what lies on it: that is no damage, and is found by trying.
fn after_panic(what: &str, directory: &Path) -> StoreError {
    match damage::takes_bytes(directory, ROOM_TO_WORK).and_then(|()| damage::gives_bytes(directory)) {
        Ok(()) => error::panicked(what),
        Err(error) => error::io(format!("{what}: the state database failed"), error),
    }
}

/// Takes the files that sled made away from everybody else.
fn make_private(directory: &Path) -> Result<(), StoreError> {
    let private = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    let made = fs::read_dir(directory).and_then(|mut entries| {
        entries.try_for_each(|entry| {
            let entry = entry?;
            if entry.file_type()?.is_file() { private(&entry.path()) } else { Ok(()) }
        })
    });
    made.map_err(|error| error::io(format!("make {} private", directory.display()), error))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::clock::SystemClock;
    use crate::record::Stream;
    use crate::store::disk::entry::Prepared;
    use crate::store::disk::trees::{Batch, Tree};
    use crate::store::disk::{head, outbox};
    use crate::sync::Change;
    use crate::sync::ports::{SinkPosition, Slice, Snapshot, Store, StoreErrorKind};

    type Write = fn(&SledStore) -> Result<(), StoreError>;

    /// Every writing call of the port.
    const WRITES: [(&str, Write); 6] = [
        ("commit", |store| store.commit(Slice::default()).map(drop)),
        ("raise_seq", |store| store.raise_seq(Seq::MAX)),
        ("next_row_id", |store| store.next_row_id().map(drop)),
        ("set_sink_positions", |store| {
            store.set_sink_positions(&BTreeMap::from([("archive".to_owned(), SinkPosition::default())]))
        }),
        ("remove_sink", |store| store.remove_sink("archive")),
        ("save_snapshot", |store| store.save_snapshot(Snapshot::Quota, b"x")),
    ];

    fn open(directory: &tempfile::TempDir) -> SledStore {
        let settings = StoreSettings {
            path: directory.path().join("state"),
            outbox_max_size: u64::MAX,
            min_free: 0,
            retention: Duration::from_secs(1),
        };
        SledStore::open(&settings, Arc::new(Keyring::for_tests(1)), Arc::new(SystemClock)).expect("opens")
    }

    fn slice_of_one() -> Slice {
        let change = Change {
            seq: Seq::ZERO,
            stream: Stream::Bibs,
            id: "1".into(),
            op: crate::sync::Op::Upsert,
            updated: None,
            suppressed: false,
            captured: jiff::Timestamp::UNIX_EPOCH,
            source: crate::sync::Origin::Load,
            payload: crate::sync::Payload::Nothing,
            unlinked_bib_ids: Vec::new(),
            hash: crate::sync::ContentHash::default(),
            only_for: None,
        };
        Slice { changes: vec![change], ..Slice::default() }
    }

    #[test]
    fn every_acknowledgement_follows_a_sync_of_its_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        for (name, write) in WRITES {
            let before = store.fences_raised();
            write(&store).expect("writes");
            assert!(store.fences_raised() > before, "{name}");
        }
    }

    /// BR-117: a sync that fails is not tried twice, and what it left behind is not served.
    #[test]
    fn a_write_whose_sync_fails_is_not_acknowledged_and_ends_the_store() {
        for (name, write) in WRITES {
            let directory = tempfile::tempdir().expect("a directory");
            let mut store = open(&directory);
            // fsync of a character device is refused: a disk that cannot promise anything.
            store.fence = Fence::on(fs::File::open("/dev/null").expect("there is one"));
            assert_eq!(write(&store).expect_err("not synced").kind, StoreErrorKind::Io, "{name}");
            assert_eq!(store.fences_raised(), 0);

            store.fence = Fence::open(&directory.path().join("state").join("db")).expect("opens");
            for (again, write) in WRITES {
                let refused = write(&store).expect_err("closed");
                assert!(refused.message.contains("sync the state database"), "{again} after {name}: {refused}");
            }
            assert!(store.last_seq().is_err() && store.snapshot(Snapshot::Quota).is_err());
            assert!(store.outbox_after(Seq::ZERO, 1, 1).is_err() && store.ledger(Stream::Bibs).is_err());
            assert_eq!(store.fences_raised(), 0, "no sync is tried again after {name}");
        }
    }

    /// BR-118, CUR-2: delivery reads nothing that a power failure could take back.
    #[test]
    fn what_is_committed_and_not_fenced_is_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let fenced_seq = store.commit(slice_of_one()).expect("commits");
        let prepared = Prepared::of(&store.keyring, &store.squeeze, &slice_of_one().changes[0]).expect("encodes");
        let mut draft = Draft::of(&store.fenced.read().expect("unpoisoned"));
        let unfenced_seq = outbox::append(&mut draft, vec![prepared]).expect("room");
        draft.transact("commit without a fence", &store.trees).expect("commits");

        let seqs: Vec<Seq> =
            store.outbox_after(Seq::ZERO, 9, usize::MAX).expect("reads").iter().map(|change| change.seq).collect();
        assert_eq!(seqs, fenced_seq);
        assert_eq!(store.outbox_entries_after(Seq::ZERO, 9).expect("reads").len(), 1);
        assert_eq!(store.outbox_usage().expect("reads").entries, 1);
        assert_eq!(store.last_seq().expect("reads"), fenced_seq[0]);
        assert!(unfenced_seq[0] > fenced_seq[0]);

        // And the next write, which would give the same seq again, is refused.
        let refused = store.commit(slice_of_one()).expect_err("not the head it knows");
        assert_eq!(refused.kind, StoreErrorKind::Superseded);
        assert!(store.last_seq().is_err());
    }

    /// BR-062: the number of commits is the fence between writers. One that was believed dead, and of which another took
    /// over, commits nothing any more, and nobody sees what it tried.
    #[test]
    fn a_late_commit_of_a_writer_that_was_superseded_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let old = open(&directory);
        let files = directory.path().join("state").join("db");
        let clock: SharedClock = Arc::new(SystemClock);
        let second_lock = tempfile::tempdir().expect("a directory");
        let parts = Parts {
            trees: old.trees.clone(),
            fence: Fence::open(&files).expect("opens"),
            instance: old.instance.clone(),
            fenced: Fenced::read(&old.trees).expect("reads"),
            high_water: HighWater::open(&files).expect("opens").0,
        };
        let lock = StateLock::acquire(second_lock.path()).expect("free");
        let new = SledStore::of(parts, files, lock, Arc::clone(&old.keyring));
        new.begin(Seq::floor_at(clock.now().as_second())).expect("takes over");
        let seqs = new.commit(slice_of_one()).expect("commits");

        let refused = old.commit(slice_of_one()).expect_err("superseded");
        assert_eq!(refused.kind, StoreErrorKind::Superseded, "{refused}");
        assert!(old.last_seq().is_err(), "it serves nothing any more");
        let seen = new.outbox_entries_after(Seq::ZERO, 9).expect("reads");
        assert_eq!(seen.iter().map(|entry| entry.seq).collect::<Vec<_>>(), seqs);
    }

    /// The lease is the lock: whoever finds it replaced writes no more, before anything was tried.
    #[test]
    fn a_writer_whose_lock_was_taken_away_writes_no_more() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let lock = directory.path().join("state").join("lock");
        fs::remove_file(&lock).expect("it is there");
        assert_eq!(store.commit(slice_of_one()).expect_err("gone").kind, StoreErrorKind::Superseded);
        // A store that was closed leaks a handle of its database, which stays locked in this process.
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let lock = directory.path().join("state").join("lock");
        let _second = fs::rename(&lock, directory.path().join("aside")).and_then(|()| fs::File::create(&lock));
        assert_eq!(store.commit(slice_of_one()).expect_err("not ours").kind, StoreErrorKind::Superseded);
    }

    #[test]
    fn a_panic_inside_ends_as_an_error_and_ends_the_store() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let contained: Result<(), _> = store.contained("read something", || panic!("as sled does"));
        assert_eq!(contained.expect_err("contained").kind, StoreErrorKind::Corrupt);
        assert!(store.last_seq().is_err());
    }

    #[test]
    fn a_closed_store_leaves_nothing_to_sled_s_parting_flush() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let mut batch = Batch::default();
        batch.put(Tree::Meta, "half applied", b"x");
        let head = store.fenced.read().expect("unpoisoned").head.encode();
        store.trees.transact("leave something unflushed", &batch, head::KEY, Some(&head)).expect("commits");
        store.close_because(error::closed("end", None));
        drop(store);

        // This process still holds the lock of the leaked database: a copy of its files is what a crash would leave.
        let (files, copy) = (directory.path().join("state").join("db"), directory.path().join("copy"));
        fs::create_dir(&copy).expect("a directory");
        for name in ["db", "conf"] {
            fs::copy(files.join(name), copy.join(name)).expect("copies");
        }
        let found = Trees::open(&copy).expect("opens").get(Tree::Meta, b"half applied").expect("reads");
        assert!(found.is_none(), "what was not flushed reached the disk after the store was closed");
    }
}
