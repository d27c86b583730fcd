//! The lock on the directory of a file sink.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sink::error::SinkFault;

const NAME: &str = ".lock";

/// Keeps every other sink, of this process or another, out of a directory; the system lets go of it when the process
/// ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of `root`.
    ///
    /// # Errors
    /// [`SinkFault::Held`] when somebody else has it, [`SinkFault::Io`] when it cannot be made.
    pub(super) fn acquire(root: &Path) -> Result<Self, SinkFault> {
        let path = root.join(NAME);
        let failed = |source| SinkFault::Io { action: "lock", path: path.clone(), source };
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o640).open(&path);
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(SinkFault::Held { path: root.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

/// Closing the file is not enough: a child that is being started has it too until it runs its program, and would keep
/// the lock for that long.
impl Drop for Lock {
    fn drop(&mut self) {
        self.file.unlock().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_let_go_is_free_although_a_child_has_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = Lock::acquire(directory.path()).expect("free");
        assert!(matches!(Lock::acquire(directory.path()), Err(SinkFault::Held { .. })));
        let of_a_child = lock.file.try_clone().expect("another handle of the same open file");
        drop(lock);
        Lock::acquire(directory.path()).expect("free again");
        drop(of_a_child);
    }
}
