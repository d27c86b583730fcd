//! Where the database lies, and what else may lie beside it.
//!
//! | below the state directory | what |
//! |---|---|
//! | `db` | the database in use |
//! | `db.compacting` | a compaction that was interrupted; worthless |
//! | `db.before-compaction` | the database in use, when `db` is missing: the compaction stopped between two renames |
//! | `db.set-aside-<time>` | a damaged database, for people to look at |

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::error;
use crate::store::holder::StateLock;
use crate::sync::StoreError;

const IN_USE: &str = "db";
const COMPACTING: &str = "db.compacting";
const BEFORE_COMPACTION: &str = "db.before-compaction";

/// The database in use below `state`, which need not be there yet. What an interrupted compaction left is put right.
pub(super) fn in_use(state: &Path) -> Result<PathBuf, StoreError> {
    let database = state.join(IN_USE);
    let before = state.join(BEFORE_COMPACTION);
    if !database.exists() && before.exists() {
        rename(&before, &database)?;
    }
    Ok(database)
}

/// Whether there is a database below `state`. Touches nothing.
#[must_use]
pub fn is_there(state: &Path) -> bool {
    state.join(IN_USE).exists() || state.join(BEFORE_COMPACTION).exists()
}

/// Moves the database out of the way, so that the next opening makes a new one; gives where it lies now. For a store
/// that will not open: nothing of it is deleted. `None` when there is no database.
///
/// # Errors
/// `Held` while another process has the state, `Io` when the directory cannot be renamed.
pub fn set_aside(state: &Path, now: Timestamp) -> Result<Option<PathBuf>, StoreError> {
    let _lock = StateLock::acquire(state)?;
    let database = in_use(state)?;
    if !database.exists() {
        return Ok(None);
    }
    let stamp = now.strftime("%Y%m%dT%H%M%SZ");
    let names = (0..).map(|again| match again {
        0 => format!("{IN_USE}.set-aside-{stamp}"),
        again => format!("{IN_USE}.set-aside-{stamp}-{again}"),
    });
    let aside = names.map(|name| state.join(name)).find(|path| !path.exists());
    let aside = aside.expect("names that differ by a number never run out");
    rename(&database, &aside)?;
    Ok(Some(aside))
}

/// An empty place for a compacted copy.
pub(super) fn for_compaction(state: &Path) -> Result<PathBuf, StoreError> {
    let copy = state.join(COMPACTING);
    remove(&copy)?;
    Ok(copy)
}

/// Puts the compacted copy in the place of the database. Whenever this is interrupted, [`in_use`] finds one of both.
pub(super) fn take_compacted(state: &Path) -> Result<(), StoreError> {
    let (database, before) = (state.join(IN_USE), state.join(BEFORE_COMPACTION));
    remove(&before)?;
    rename(&database, &before)?;
    rename(&state.join(COMPACTING), &database)?;
    remove(&before)
}

/// Renames, and syncs the directory, so that the new name survives a power failure too.
fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    let parent = to.parent().unwrap_or(to);
    let renamed = fs::rename(from, to).and_then(|()| File::open(parent)?.sync_all());
    renamed.map_err(|error| error::io(format!("rename {} to {}", from.display(), to.display()), error))
}

fn remove(directory: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error::io(format!("remove {}", directory.display()), error))
        }
        _ => Ok(()),
    }
}
