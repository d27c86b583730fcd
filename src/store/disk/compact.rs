//! Compaction: the database written anew, because sled's file never shrinks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::damage;
use super::error;
use super::fence::Fence;
use super::high_water::HighWater;
use super::place;
use super::trees::{Tree, Trees};
use crate::store::holder::{self, StateLock};
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// What a compaction changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes on disk before.
    pub before: u64,
    /// Bytes on disk after.
    pub after: u64,
}

/// Copies every value below `state` into a new database and puts it in the place of the old one. Nothing is merged,
/// dropped or decoded: the copy holds the same values under the same keys. Needs as much free space as the values
/// take, and nobody else at the state.
///
/// # Errors
/// `Held` while another process has the state, `Corrupt` when there is none or a value is damaged, `Io` when the disk
/// fails. The old database stays in place then.
pub fn compact(state: &Path) -> Result<Compacted, StoreError> {
    let _lock = StateLock::acquire(state)?;
    let contained = catch_unwind(AssertUnwindSafe(|| compact_locked(state)));
    let compacted = contained.unwrap_or_else(|_| Err(error::panicked("compact the state database")));
    compacted.map_err(|error| error::on_disk(state, error))
}

fn compact_locked(state: &Path) -> Result<Compacted, StoreError> {
    let database = place::in_use(state)?;
    if !database.exists() {
        let message = format!("compact the state in {}: there is none", state.display());
        return Err(StoreError::new(StoreErrorKind::Corrupt, message));
    }
    let old = Trees::open(&database)?;
    let before = old.size_on_disk()?;
    let copy = place::for_compaction(state)?;
    holder::private_directory(&copy)?;
    let new = Trees::open(&copy)?;
    for tree in Tree::ALL {
        let copied = old.copy_into(&new, tree);
        copied.inspect_err(|error| {
            if error.kind == StoreErrorKind::Corrupt {
                damage::mark(&database, error);
            }
        })?;
    }
    Fence::open(&copy)?.raise(&new)?;
    let (_, acknowledged) = HighWater::open(&database)?;
    HighWater::open(&copy)?.0.note(acknowledged)?;
    let after = new.size_on_disk()?;
    drop((old, new));
    place::make_durable(&copy)?;
    place::take_compacted(state)?;
    Ok(Compacted { before, after })
}
