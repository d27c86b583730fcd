//! An output file that appears under its name only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where converted records go.
#[derive(Debug)]
pub(super) enum Output {
    Stdout(io::StdoutLock<'static>),
    /// A device or a pipe that has a name: written as it is, since it cannot be replaced.
    Special(File),
    File(Pending),
}

/// A file under a name of its own beside the target. Dropped, it is removed; published, it takes the target's place.
#[derive(Debug)]
pub(super) struct Pending {
    file: File,
    path: PathBuf,
    target: PathBuf,
    is_published: bool,
}

/// The unpublished file of this process, for [`abandon`].
static UNPUBLISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes the file that is being written, from another thread: nothing is published after this.
pub(super) fn abandon() {
    let mut unpublished = UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = unpublished.take() {
        // The process is about to end; there is nobody to tell.
        fs::remove_file(path).ok();
    }
}

impl Output {
    /// Opens `path`, or stdout for none or `-`.
    pub(super) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout(io::stdout().lock()));
        };
        match fs::metadata(path) {
            Ok(present) if present.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
            Ok(present) if !present.is_file() => Ok(Self::Special(OpenOptions::new().write(true).open(path)?)),
            Ok(present) => {
                // A link stays a link: the file that it leads to is replaced.
                let pending = Pending::beside(&fs::canonicalize(path)?)?;
                pending.file.set_permissions(present.permissions())?;
                Ok(Self::File(pending))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::File(Pending::beside(path)?)),
            Err(error) => Err(error),
        }
    }

    /// Makes the output final: durable, and under its name.
    pub(super) fn publish(self) -> io::Result<()> {
        match self {
            Self::Stdout(_) | Self::Special(_) => Ok(()),
            Self::File(mut pending) => {
                pending.file.sync_all()?;
                let mut unpublished = UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
                fs::rename(&pending.path, &pending.target)?;
                pending.is_published = true;
                unpublished.take_if(|path| *path == pending.path);
                Ok(())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Special(file) | Self::File(Pending { file, .. }) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Special(file) | Self::File(Pending { file, .. }) => file.flush(),
        }
    }
}

impl Pending {
    fn beside(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"))?;
        let path = target.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        let mut unpublished = UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        *unpublished = Some(path.clone());
        Ok(Self { file, path, target: target.to_owned(), is_published: false })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_published {
            // The failure that led here is the one to report.
            fs::remove_file(&self.path).ok();
        }
    }
}
