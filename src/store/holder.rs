//! Who holds a state directory: one process, decided by the operating system's lock.
//!
//! `<state>/lock` carries the lock, which ends with the process however it ends. `<state>/holder` only tells people
//! and other commands who it is; a file left behind by a dead process means nothing (BR-061, BR-062).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fs4::fs_std::FileExt;
use serde::{Deserialize, Serialize};

use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// The process that holds a state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// The command it runs: program and arguments, at most 200 bytes. Secrets never come by arguments.
    pub command: String,
    /// Where it answers, when that is not `<state>/control.sock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
}

impl Holder {
    /// This process.
    #[must_use]
    pub fn this_process() -> Self {
        let mut arguments = std::env::args_os();
        let program = arguments.next().map(PathBuf::from).unwrap_or_default();
        let mut command = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for argument in arguments {
            command.push(' ');
            command.push_str(&argument.to_string_lossy());
        }
        while command.len() > 200 {
            command.pop();
        }
        Self { pid: std::process::id(), command, socket: None }
    }

    /// Who says it holds `state`: true only while the lock is taken. `None` when nobody says so legibly.
    #[must_use]
    pub fn of(state: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(state.join("holder")).ok()?).ok()
    }
}

/// The holder file takes a block of the disk.
const ROOM_FOR_A_NAME: u64 = 64 << 10;

/// The lock on a state directory; it ends when this is dropped.
#[derive(Debug)]
pub struct StateLock {
    state: PathBuf,
    lock: File,
}

impl StateLock {
    /// Makes `state` if need be (mode 0700), takes its lock and says so in `<state>/holder`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Held`] when another process has it, [`StoreErrorKind::Io`] when the directory cannot be used.
    pub fn acquire(state: &Path) -> Result<Self, StoreError> {
        private_directory(state)?;
        let path = state.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(|error| io_error(format!("open {}", path.display()), error))?;
        let taken = FileExt::try_lock_exclusive(&lock);
        if !taken.map_err(|error| io_error(format!("lock {}", path.display()), error))? {
            return Err(held(state));
        }
        let lock = Self { state: state.to_owned(), lock };
        match lock.announce(&Holder::this_process()) {
            // The file only tells people; on a full disk the lock is held without it, and nobody is named wrongly.
            Err(_) if fs4::available_space(state).is_ok_and(|free| free < ROOM_FOR_A_NAME) => {
                fs::remove_file(state.join("holder")).ok();
            }
            announced => announced?,
        }
        Ok(lock)
    }

    /// Whether the file that is locked is still the one that others would lock. Somebody who takes it away lets a
    /// second process in: this one may then write no more.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let (locked, found) = (self.lock.metadata(), fs::metadata(self.state.join("lock")));
        matches!((locked, found), (Ok(locked), Ok(found)) if (locked.dev(), locked.ino()) == (found.dev(), found.ino()))
    }

    /// Who holds `state`, as the lock has it, or `None`. Writes nothing, and lets go of the lock at once.
    #[must_use]
    pub fn held_by(state: &Path) -> Option<String> {
        let lock = File::open(state.join("lock")).ok()?;
        let is_free = FileExt::try_lock_shared(&lock).ok()?;
        (!is_free).then(|| named(state))
    }

    /// Replaces what `<state>/holder` says.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn announce(&self, holder: &Holder) -> Result<(), StoreError> {
        let path = self.state.join("holder");
        let text = serde_json::to_vec(holder).map_err(|error| io_error("write the holder file", error.into()))?;
        let fresh = self.state.join("holder.new");
        let written = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh);
        let written = written.and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&fresh, &path));
        if written.is_err() {
            fs::remove_file(&fresh).ok();
        }
        written.map_err(|error| io_error(format!("write {}", path.display()), error))
    }
}

/// Closing the file is not enough: a child that is being started has it too until it runs its program, and would keep
/// the lock for that long.
impl Drop for StateLock {
    fn drop(&mut self) {
        FileExt::unlock(&self.lock).ok();
    }
}

/// Replaces the file at `path` in one piece; nobody else may read it.
pub(super) fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let written = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh);
    written.and_then(|mut file| file.write_all(text)).and_then(|()| fs::rename(&fresh, path))
}

/// Makes `path` a directory that nobody else can look into. One that belongs to somebody else, such as a mounted
/// volume, keeps its mode: what we make inside it is private all the same.
pub(super) fn private_directory(path: &Path) -> Result<(), StoreError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| io_error(format!("make the directory {}", path.display()), error))?;
    match fs::set_permissions(path, fs::Permissions::from_mode(0o700)) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
            Err(io_error(format!("make {} private", path.display()), error))
        }
        _ => Ok(()),
    }
}

/// The process that has the lock, in words.
fn named(state: &Path) -> String {
    Holder::of(state)
        .map_or_else(|| "another process".to_owned(), |holder| format!("{} (pid {})", holder.command, holder.pid))
}

/// The error that names who holds `state`.
pub(super) fn held(state: &Path) -> StoreError {
    let holder = named(state);
    let message = format!("open the state in {}: it is held by {holder}; stop that process or wait", state.display());
    StoreError::new(StoreErrorKind::Held { holder }, message)
}

fn io_error(what: impl Into<String>, error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Io, what).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let lock = StateLock::acquire(&state).expect("free");
        let refused = StateLock::acquire(&state).expect_err("held");
        let expected = format!("(pid {})", std::process::id());
        assert!(matches!(&refused.kind, StoreErrorKind::Held { holder } if holder.ends_with(&expected)), "{refused}");
        assert!(StateLock::held_by(&state).is_some_and(|holder| holder.ends_with(&expected)));
        drop(lock);
        // What the holder file says means nothing by then.
        assert_eq!(StateLock::held_by(&state), None);
        StateLock::acquire(&state).expect("free again");
    }

    #[test]
    fn a_lock_that_was_let_go_is_free_although_a_child_has_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = StateLock::acquire(directory.path()).expect("free");
        let of_a_child = lock.lock.try_clone().expect("another handle of the same open file");
        drop(lock);
        StateLock::acquire(directory.path()).expect("free again");
        drop(of_a_child);
    }

    /// BR-061: what a dead process left behind blocks nobody.
    #[test]
    fn a_stale_or_torn_holder_file_is_passed_over() {
        let directory = tempfile::tempdir().expect("a directory");
        for left_behind in [r#"{"pid":1,"command":"init"}"#, "{\"pid\":", ""] {
            fs::write(directory.path().join("holder"), left_behind).expect("written");
            drop(StateLock::acquire(directory.path()).expect("nobody holds it"));
            assert_eq!(Holder::of(directory.path()).expect("legible").pid, std::process::id());
        }
    }

    #[test]
    fn others_can_see_nothing_of_the_state() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("a/b");
        let lock = StateLock::acquire(&state).expect("free");
        lock.announce(&Holder { socket: Some("/run/x.sock".into()), ..Holder::this_process() }).expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        assert_eq!((mode(&state.join("lock")), mode(&state.join("holder"))), (0o600, 0o600));
        assert_eq!(Holder::of(&state).expect("legible").socket, Some("/run/x.sock".into()));
    }
}
