//! sled's trees, and the one transaction that changes them.

use std::ops::RangeBounds;
use std::path::Path;
use std::time::Duration;

use sled::transaction::{ConflictableTransactionError, TransactionError, Transactional};

use super::envelope;
use super::error;
use super::verify::TreeVerified;
use crate::store::holder;
use crate::sync::StoreError;

/// A database that was just dropped gives its file up a moment later, in threads of its own. The state directory is
/// ours by then ([`crate::store::StateLock`]), so a locked file can mean nothing else and is waited for: two seconds
/// at most.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// sled's segments. Whatever is longer than a quarter of one goes into a blob file, which sled neither syncs nor
/// reclaims. Fixed when a store is made.
pub(super) const SEGMENT_BYTES: usize = 512 * 1024;

/// The longest value that is ever stored, envelope included: a leaf holds up to 17 values and is written whole, so
/// that a quarter of a segment must hold 17 of them with room to spare. Larger segments with longer values cost more
/// disk, memory and processor time, not less (10⁵ bibs queued: 263 MB here, 287 MB at 2 MiB and 16 KiB, 301 MB at
/// 8 MiB and 64 KiB).
pub(super) const MAX_VALUE_BYTES: usize = 4 * 1024;

const _: () = assert!(17 * (MAX_VALUE_BYTES + 64) < SEGMENT_BYTES / 4, "a leaf full of the longest values must fit");

/// sled's page cache, in bytes as written; in memory its pages take about three times as much. Its default is 1 GiB,
/// the whole process is to stay under 256 MiB. With a million remembered states 16 MiB make 96 MB resident, 64 MiB
/// make 239 MB, and neither is faster: records are visited in the order of their numbers.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// A tree by what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tree {
    /// Format, instance and the head row.
    Meta,
    /// Ledger rows by stream and row number.
    Ledger,
    /// Waiting changes without payload, by seq.
    Outbox,
    /// Their payloads, by seq, in chunks.
    Payloads,
    /// Sink positions by name.
    Sinks,
    /// Remembered bibs by record number.
    Bibs,
    /// Remembered items by record number.
    Items,
    /// Remembered patrons by pseudonym.
    Patrons,
    /// Item links by item number.
    Links,
    /// Quarantined entries by stream and place.
    Quarantine,
    /// Places of quarantined entries by stream, record and cause.
    Places,
    /// Snapshots by name.
    Snapshots,
}

impl Tree {
    /// Every tree, in the order of their numbers.
    pub(super) const ALL: [Self; 12] = [
        Self::Meta,
        Self::Ledger,
        Self::Outbox,
        Self::Payloads,
        Self::Sinks,
        Self::Bibs,
        Self::Items,
        Self::Patrons,
        Self::Links,
        Self::Quarantine,
        Self::Places,
        Self::Snapshots,
    ];

    /// The name in sled. Never changed once released.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Ledger => "ledger",
            Self::Outbox => "outbox",
            Self::Payloads => "payloads",
            Self::Sinks => "sinks",
            Self::Bibs => "remembered-bibs",
            Self::Items => "remembered-items",
            Self::Patrons => "remembered-patrons",
            Self::Links => "links",
            Self::Quarantine => "quarantine",
            Self::Places => "quarantine-places",
            Self::Snapshots => "snapshots",
        }
    }

    /// What its keys are, for messages that may not show one.
    pub(super) fn key_kind(self) -> &'static str {
        match self {
            Self::Meta => "name",
            Self::Ledger => "stream and row number",
            Self::Outbox | Self::Payloads => "seq",
            Self::Sinks => "sink name",
            Self::Bibs | Self::Items => "record number",
            Self::Patrons => "pseudonym",
            Self::Links => "item number",
            Self::Quarantine => "stream and place",
            Self::Places => "stream, record and cause",
            Self::Snapshots => "snapshot name",
        }
    }
}

/// The writes of one transaction, in order; a later write to a key wins.
#[derive(Debug, Default)]
pub(super) struct Batch(Vec<(Tree, Vec<u8>, Option<Vec<u8>>)>);

impl Batch {
    /// Puts `payload`, in its envelope, under `key`.
    pub(super) fn put(&mut self, tree: Tree, key: impl Into<Vec<u8>>, payload: &[u8]) {
        debug_assert!(payload.len() + envelope::OVERHEAD <= MAX_VALUE_BYTES, "longer values are chunked");
        self.0.push((tree, key.into(), Some(envelope::wrap(payload))));
    }

    /// Takes `key` away, whether or not it is there.
    pub(super) fn remove(&mut self, tree: Tree, key: impl Into<Vec<u8>>) {
        self.0.push((tree, key.into(), None));
    }
}

/// The open database.
#[derive(Debug, Clone)]
pub(super) struct Trees {
    db: sled::Db,
    trees: Vec<sled::Tree>,
}

impl Trees {
    /// Opens or makes the database in `directory`. sled panics on some kinds of damage: callers contain that.
    pub(super) fn open(directory: &Path) -> Result<Self, StoreError> {
        let what = "open the state database";
        let config = sled::Config::new()
            .path(directory)
            .segment_size(SEGMENT_BYTES)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None);
        let mut opened = config.open();
        for _ in 0..LOCK_TRIES {
            if !opened.as_ref().is_err_and(is_locked) {
                break;
            }
            std::thread::park_timeout(LOCK_PAUSE);
            opened = config.open();
        }
        let db = opened.map_err(|error| {
            if is_locked(&error) {
                holder::held(directory.parent().unwrap_or(directory))
            } else {
                error::sled(what, error)
            }
        })?;
        let trees = Tree::ALL.into_iter().map(|tree| db.open_tree(tree.name()));
        let trees = trees.collect::<Result<_, _>>().map_err(|error| error::sled(what, error))?;
        Ok(Self { db, trees })
    }

    /// Hands everything written so far to the operating system. That is not a sync: see [`super::fence::Fence`].
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.db.flush().map(drop).map_err(|error| error::sled("flush the state database", error))
    }

    /// The payload under `key`.
    pub(super) fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Payload>, StoreError> {
        let value = self.tree(tree).get(key).map_err(|error| error::sled("read the state database", error))?;
        value.map(|value| Payload::check(tree, value)).transpose()
    }

    /// Keys and payloads of `range`, in order. Ends after the first failure of the database itself, as sled would
    /// repeat it for ever; a damaged value is one error, and the next value follows.
    pub(super) fn range<'a>(
        &'a self,
        tree: Tree,
        range: impl RangeBounds<Vec<u8>>,
    ) -> impl Iterator<Item = Result<(sled::IVec, Payload), StoreError>> + 'a {
        until_failure(self.tree(tree).range(range)).map(move |row| {
            let (key, value) = row?;
            Ok((key, Payload::check(tree, value)?))
        })
    }

    /// Keys of `range`, in order, without looking at values.
    pub(super) fn keys<'a>(
        &'a self,
        tree: Tree,
        range: impl RangeBounds<Vec<u8>>,
    ) -> impl Iterator<Item = Result<sled::IVec, StoreError>> + 'a {
        until_failure(self.tree(tree).range(range).keys())
    }

    /// Reads every envelope of `tree`.
    pub(super) fn verify(&self, tree: Tree) -> Result<TreeVerified, StoreError> {
        let mut verified = TreeVerified { tree: tree.name(), values: 0, damaged: 0 };
        for row in until_failure(self.tree(tree).iter()) {
            let (_, value) = row?;
            verified.values += 1;
            verified.damaged += u64::from(envelope::open(&value).is_err());
        }
        Ok(verified)
    }

    /// Copies every value of `tree` as it is. Not in a transaction: nobody else may be at `target`.
    pub(super) fn copy_into(&self, target: &Self, tree: Tree) -> Result<(), StoreError> {
        let failed = |error| error::sled("copy the state database", error);
        for row in until_failure(self.tree(tree).iter()) {
            let (key, value) = row?;
            Payload::check(tree, value.clone())?;
            target.tree(tree).insert(key, value).map_err(failed)?;
        }
        Ok(())
    }

    /// Applies `batch` in one transaction, on condition that `guard` (a key of the meta tree) still holds `expected`:
    /// whoever else wrote, took a seq or a row number that we are about to take again.
    pub(super) fn transact(
        &self,
        what: &str,
        batch: &Batch,
        guard: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let expected = expected.map(envelope::wrap);
        let outcome = self.trees.as_slice().transaction(|views| {
            let view = |tree: Tree| views.get(tree as usize).expect("one view is made for each tree");
            if view(Tree::Meta).get(guard)?.as_deref() != expected.as_deref() {
                return Err(ConflictableTransactionError::Abort(()));
            }
            for (tree, key, value) in &batch.0 {
                match value {
                    Some(value) => view(*tree).insert(key.as_slice(), value.as_slice())?,
                    None => view(*tree).remove(key.as_slice())?,
                };
            }
            Ok(())
        });
        outcome.map_err(|failure| match failure {
            TransactionError::Storage(error) => error::sled(what, error),
            TransactionError::Abort(()) => error::superseded(what),
        })
    }

    /// Bytes of the database on disk.
    pub(super) fn size_on_disk(&self) -> Result<u64, StoreError> {
        self.db.size_on_disk().map_err(|error| error::sled("measure the state database", error))
    }

    fn tree(&self, tree: Tree) -> &sled::Tree {
        self.trees.get(tree as usize).expect("one sled tree is opened for each name")
    }
}

fn until_failure<T>(rows: impl Iterator<Item = sled::Result<T>>) -> impl Iterator<Item = Result<T, StoreError>> {
    let mut failed = false;
    rows.map_while(move |row| {
        if failed {
            return None;
        }
        failed = row.is_err();
        Some(row.map_err(|error| error::sled("read the state database", error)))
    })
}

/// A value whose envelope was checked.
#[derive(Debug, Clone)]
pub(super) struct Payload(sled::IVec);

impl Payload {
    fn check(tree: Tree, value: sled::IVec) -> Result<Self, StoreError> {
        match envelope::open(&value) {
            Ok(_) => Ok(Self(value)),
            Err(why) => Err(error::unreadable(tree, why)),
        }
    }
}

impl std::ops::Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.get(envelope::OVERHEAD..).unwrap_or_default()
    }
}

/// Whether sled found its file locked. It says so in words alone (0.34.7, `config.rs`).
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_numbered_in_the_order_in_which_they_are_opened() {
        for (number, tree) in Tree::ALL.into_iter().enumerate() {
            assert_eq!(tree as usize, number, "{}", tree.name());
        }
    }
}
