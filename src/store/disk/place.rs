//! Where the database lies, and what else may lie beside it.
//!
//! | below the state directory | what |
//! |---|---|
//! | `db` | the database in use |
//! | `db.compacting` | a compaction that was interrupted; worthless, and removed at the next opening |
//! | `db.before-compaction` | the database in use, when `db` is missing: the compaction stopped between two renames |
//! | `damaged-<time>/db` | a damaged database, for people to look at; see [`super::aside`] |
//! | `rebuild-owed` | the note that a damaged one was set aside and nothing was rebuilt for it yet |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error;
use crate::sync::StoreError;

const IN_USE: &str = "db";
const COMPACTING: &str = "db.compacting";
const BEFORE_COMPACTION: &str = "db.before-compaction";

/// The database in use below `state`, which need not be there yet. What an interrupted compaction left is put right. Only
/// for whoever holds the lock: nobody else compacts then.
pub(super) fn in_use(state: &Path) -> Result<PathBuf, StoreError> {
    let database = state.join(IN_USE);
    let before = state.join(BEFORE_COMPACTION);
    if !database.exists() && before.exists() {
        rename(&before, &database)?;
    }
    remove(&state.join(COMPACTING))?;
    Ok(database)
}

/// Whether there is a database below `state`. Touches nothing.
#[must_use]
pub fn is_there(state: &Path) -> bool {
    found(state).is_some()
}

/// The database that an opening would take up. Touches nothing.
pub(super) fn found(state: &Path) -> Option<PathBuf> {
    [IN_USE, BEFORE_COMPACTION].into_iter().map(|name| state.join(name)).find(|path| path.exists())
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
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    let parent = to.parent().unwrap_or(to);
    let renamed = fs::rename(from, to).and_then(|()| File::open(parent)?.sync_all());
    renamed.map_err(|error| error::io(format!("rename {} to {}", from.display(), to.display()), error))
}

/// Makes durable what was made in `database`: its files, their names, and the names on the way to it. A sync of a file
/// promises nothing of the name by which it is found: without this a power failure may take a new database away whole.
pub(super) fn make_durable(database: &Path) -> Result<(), StoreError> {
    let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
    let below = || {
        fs::read_dir(database)?.try_for_each(|entry| {
            let path = entry?.path();
            if path.is_file() { sync(&path) } else { Ok(()) }
        })
    };
    let above = || {
        let database = std::path::absolute(database)?;
        database.ancestors().take(3).try_for_each(|directory| match sync(directory) {
            // The state may lie in a directory of somebody else's, who lets us through and not look.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        })
    };
    below().and_then(|()| above()).map_err(|error| error::io(format!("sync {}", database.display()), error))
}

fn remove(directory: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error::io(format!("remove {}", directory.display()), error))
        }
        _ => Ok(()),
    }
}
