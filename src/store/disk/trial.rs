//! Whether a state would open, found out on a copy: an opening writes, and whoever only looks must not.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::draft::Fenced;
use super::high_water::HighWater;
use super::trees::{Tree, Trees};
use super::{chunks, error, format, place};
use crate::sync::StoreError;
use crate::sync::meaning::{self, Meanings};
use crate::sync::ports::Snapshot;
use crate::sync::positions::{SinkNote, read_notes};

/// A state beyond this is not copied just to see whether it opens.
const LIMIT_BYTES: u64 = 1 << 30;

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// There is no database yet: the first run makes one.
    Absent,
    /// A copy of it opened, and holds every commit that was acknowledged.
    Opened {
        /// What the events of each stream meant under the settings that it was made with.
        meanings: Meanings,
        /// What was noted of each sink.
        sinks: BTreeMap<String, SinkNote>,
    },
    /// It was not tried: it is larger than 1 GiB, or the directory for temporary files has no room for it.
    TooLarge {
        /// Its size.
        bytes: u64,
    },
}

/// Opens a private copy of the database below `state` in the directory for temporary files, and removes it. Changes
/// nothing of the state and takes no lock: while somebody writes there the copy may be torn and mean nothing.
///
/// # Errors
/// Those of opening the state itself; `Io` when it cannot be read or copied.
pub fn try_opening(state: &Path, now: Timestamp) -> Result<Tried, StoreError> {
    let Some(database) = place::found(state) else { return Ok(Tried::Absent) };
    let copied = |error| error::io(format!("copy {}, to see whether it opens", database.display()), error);
    let bytes = size(&database).map_err(copied)?;
    let temporary = std::env::temp_dir();
    let room = fs4::available_space(&temporary).unwrap_or(0) / 2;
    if bytes > LIMIT_BYTES.min(room) {
        return Ok(Tried::TooLarge { bytes });
    }
    let place = Temporary::below(&temporary).map_err(copied)?;
    copy(&database, &place.0).map_err(copied)?;
    // sled panics on some kinds of damage, in calls that ought to return an error.
    let tried = catch_unwind(AssertUnwindSafe(|| open(&place.0, now)));
    tried.unwrap_or_else(|_| Err(error::panicked("open the state database")))
}

fn open(directory: &Path, now: Timestamp) -> Result<Tried, StoreError> {
    let trees = Trees::open(directory)?;
    format::check_or_make(&trees, now)?;
    let fenced = Fenced::read(&trees)?;
    let (_, acknowledged) = HighWater::open(directory)?;
    if fenced.head.commits < acknowledged.commits {
        return Err(error::rolled_back(acknowledged.commits, fenced.head.commits));
    }
    let snapshot = |of: Snapshot| chunks::get(&trees, Tree::Snapshots, of.name().as_bytes());
    let meanings = snapshot(Snapshot::Settings)?.as_deref().map(meaning::read).transpose()?.unwrap_or_default();
    let sinks = snapshot(Snapshot::Sinks)?.as_deref().map(read_notes).transpose()?.unwrap_or_default();
    Ok(Tried::Opened { meanings, sinks })
}

/// A directory that nobody else can look into, removed when this is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn below(parent: &Path) -> io::Result<Self> {
        let mut again = 0;
        loop {
            let path = parent.join(format!("sierra-sync-trial-{}-{again}", std::process::id()));
            // Never one that is there already: somebody else may have laid it out for us.
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && again < 100 => again += 1,
                made => return made.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed lies where the system clears up.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn size(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Copies files and directories; nothing else belongs there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            DirBuilder::new().mode(0o700).create(&target)?;
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::privacy::Keyring;
    use crate::record::Stream;
    use crate::store::{SledStore, StoreSettings};
    use crate::sync::ports::StoreErrorKind;

    fn state() -> tempfile::TempDir {
        let state = tempfile::tempdir().expect("a directory");
        let settings = StoreSettings {
            path: state.path().to_owned(),
            outbox_max_size: 1 << 20,
            min_free: 0,
            retention: std::time::Duration::from_secs(3600),
        };
        let store = SledStore::open(&settings, Arc::new(Keyring::for_tests(1)), Arc::new(SystemClock));
        store.and_then(|store| meaning::keep(&store, Stream::Bibs, "one")).expect("it can be written");
        state
    }

    fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).expect("it is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files.extend(self::files(&path));
            } else {
                files.push((path.clone(), fs::read(&path).expect("legible")));
            }
        }
        files.sort();
        files
    }

    #[test]
    fn a_sound_state_opens_and_is_left_as_it_was() {
        let state = state();
        let before = files(state.path());
        let tried = try_opening(state.path(), Timestamp::UNIX_EPOCH).expect("sound");
        assert_eq!(
            tried,
            Tried::Opened { meanings: [(Stream::Bibs, "one".to_owned())].into(), sinks: BTreeMap::new() }
        );
        assert!(files(state.path()) == before, "the trial changed the state");
    }

    #[test]
    fn a_state_that_is_cut_short_does_not_open_and_is_left_as_it_was() {
        let whole = state();
        let length = fs::metadata(whole.path().join("db/db")).expect("there").len();
        for kept in [0, 1, length / 4] {
            let state = state();
            let file = fs::OpenOptions::new().write(true).open(state.path().join("db/db")).expect("there");
            file.set_len(kept).expect("cut");
            let before = files(state.path());
            let error = try_opening(state.path(), Timestamp::UNIX_EPOCH).expect_err("commits are gone");
            assert!(matches!(error.kind, StoreErrorKind::Corrupt | StoreErrorKind::Io), "{kept}: {error}");
            assert!(files(state.path()) == before, "{kept}: the trial changed the state");
        }
    }

    #[test]
    fn no_state_is_no_failure_and_none_is_made() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        assert_eq!(try_opening(&state, Timestamp::UNIX_EPOCH).expect("none"), Tried::Absent);
        assert!(!state.exists());
    }
}
