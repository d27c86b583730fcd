//! Setting a damaged database aside, so that a new one can be begun; and refusing to do that again and again.
//!
//! Nothing is deleted: the database goes to `<state>/damaged-<time>/db`, and what is readable of it is written beside it
//! by whoever begins the new one. A note says that this is still to be done, so that a crash in between leaves no new
//! database that knows nothing of the old one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use super::high_water::HighWater;
use super::{damage, error, place};
use crate::store::holder::StateLock;
use crate::sync::ports::StoreErrorKind;
use crate::sync::rebuild::Damage;
use crate::sync::{Seq, StoreError};

/// What names of set-aside databases begin with; their time follows.
const PREFIX: &str = "damaged-";
/// How the time stands in a name.
const STAMP: &str = "%Y%m%dT%H%M%SZ";
/// The note.
const OWED: &str = "rebuild-owed";

/// A state that is damaged again within this time is not begun anew a second time: the disk or the memory is to blame.
const ONCE_IN: SignedDuration = SignedDuration::from_hours(24);
/// So many set-aside databases are kept; before there are more, a person has to look.
const MOST: usize = 3;

/// How much of the disk is written to see that it takes anything.
const TRIAL_BYTES: usize = 64 * 1024;

/// A database that was set aside, and what is still to be done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// What is told of it.
    pub damage: Damage,
    /// The directory of its own; the database is its `db`.
    pub directory: PathBuf,
    /// The last seq that it acknowledged, as far as is known without opening it.
    pub last: Seq,
}

/// Moves the database below `state`, which would not open or be read because of `why`, out of the way.
///
/// # Errors
/// `Held` while another process has the state. `Io` when the disk does not take what is written or give what is read:
/// a disk that is full or failing is no damage of the state. The same when the state was set aside less than a day ago
/// already, or three times: it is left where it is then.
pub fn set_aside(state: &Path, why: &StoreError, now: Timestamp) -> Result<Aside, StoreError> {
    let _lock = StateLock::acquire(state)?;
    let database = place::in_use(state)?;
    is_well(state, &database).map_err(|error| error::on_disk(state, error))?;
    refuse_repetition(state, why, now)?;
    let last = HighWater::look(&database).last;
    let state = &std::path::absolute(state).map_err(|error| error::io("find the state directory", error))?;
    let directory = free_name(state, now);
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside =
        Aside { damage: Damage { at: now, why: error::bare(why).to_owned(), set_aside: name }, directory, last };
    note(state, &aside)?;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&aside.directory);
    made.map_err(|error| error::io(format!("make the directory {}", aside.directory.display()), error))?;
    place::rename(&database, &aside.directory.join("db"))?;
    sync_directory(state)?;
    Ok(aside)
}

/// The database that was set aside and for which nothing was begun yet.
///
/// # Errors
/// When the note of it cannot be read.
pub fn owed(state: &Path) -> Result<Option<Aside>, StoreError> {
    let path = state.join(OWED);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error::io(format!("read {}", path.display()), error)),
    };
    // The note was written and synced before anything was moved: a torn one is that of a move that never began.
    let Ok((damage, last)) = serde_json::from_slice::<(Damage, Seq)>(&text) else { return Ok(None) };
    let directory = std::path::absolute(state).unwrap_or_else(|_| state.to_owned()).join(&damage.set_aside);
    Ok(directory.join("db").exists().then_some(Aside { damage, directory, last }))
}

/// Notes that nothing is owed any more.
///
/// # Errors
/// When the note cannot be removed.
pub fn settled(state: &Path) -> Result<(), StoreError> {
    let path = state.join(OWED);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error::io(format!("remove {}", path.display()), error))
        }
        _ => sync_directory(state),
    }
}

/// Whether the disk gives what lies in `database` and takes something new.
fn is_well(state: &Path, database: &Path) -> Result<(), StoreError> {
    damage::gives_bytes(database).map_err(|error| error::io("read the files of the state database", error))?;
    damage::takes_bytes(state, TRIAL_BYTES).map_err(|error| error::io("write to the state directory", error))
}

fn refuse_repetition(state: &Path, why: &StoreError, now: Timestamp) -> Result<(), StoreError> {
    let aside = all(state)?;
    let is_recent = |at: &Timestamp| now.duration_since(*at) < ONCE_IN;
    let recent = aside.iter().find(|(_, at)| at.as_ref().is_some_and(is_recent));
    let problem = match recent {
        Some((path, _)) => format!("it was set aside less than a day ago already, as {}", path.display()),
        None if aside.len() >= MOST => format!("it was set aside {} times already, as {PREFIX}* in it", aside.len()),
        None => return Ok(()),
    };
    let message = format!(
        "begin the state in {} anew, which is damaged again ({}): {problem}; check the machine's disk and memory, then \
         move what was set aside to another place and start again, which sets this one aside too and rebuilds",
        state.display(),
        error::bare(why)
    );
    Err(StoreError::new(StoreErrorKind::Io, message))
}

/// Every database that was set aside, with its time where the name tells one.
fn all(state: &Path) -> Result<Vec<(PathBuf, Option<Timestamp>)>, StoreError> {
    let failed = |error| error::io(format!("list {}", state.display()), error);
    let mut all = Vec::new();
    for entry in fs::read_dir(state).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // One without a database is what a crash before the move left.
        if let Some(stamp) = name.strip_prefix(PREFIX).filter(|_| path.join("db").exists()) {
            let stamp = stamp.split('-').next().unwrap_or_default();
            let at = jiff::civil::DateTime::strptime(STAMP, stamp).and_then(|at| at.in_tz("UTC"));
            all.push((path, at.ok().map(|at| at.timestamp())));
        }
    }
    all.sort();
    Ok(all)
}

fn free_name(state: &Path, now: Timestamp) -> PathBuf {
    let stamp = now.strftime(STAMP);
    let names = (0..).map(|again| match again {
        0 => format!("{PREFIX}{stamp}"),
        again => format!("{PREFIX}{stamp}-{again}"),
    });
    let free = names.map(|name| state.join(name)).find(|path| !path.join("db").exists());
    free.expect("names that differ by a number never run out")
}

fn note(state: &Path, aside: &Aside) -> Result<(), StoreError> {
    let path = state.join(OWED);
    let text = serde_json::to_vec(&(&aside.damage, aside.last)).unwrap_or_default();
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
    written.map_err(|error| error::io(format!("write {}", path.display()), error))?;
    sync_directory(state)
}

fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| error::io(format!("sync {}", directory.display()), error))
}
