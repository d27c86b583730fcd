//! What sinks obey; the configuration layer fills it in.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

/// The type of a sink and what is particular to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkSettings {
    /// Files below a directory.
    File(FileSettings),
    /// NDJSON on standard output.
    Stdout,
}

/// How files are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// The directory; one folder a stream is made below it.
    pub path: PathBuf,
    /// What is written.
    pub format: FileFormat,
    /// A file is closed when it is larger than this many bytes…
    pub rotate_size: u64,
    /// …or older than this.
    pub rotate_every: Duration,
}

impl FileSettings {
    /// Whether something of ours is in the directory already. Nothing is made or opened to find out.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.path.join(super::file::MANIFEST).exists()
    }

    /// Whether a file begun at `opened` is old enough at `now` to be finished. A clock that was set back makes nothing
    /// old.
    pub(in crate::sink) fn is_old(&self, opened: Timestamp, now: Timestamp) -> bool {
        now > opened && now.duration_since(opened).unsigned_abs() >= self.rotate_every
    }
}

/// What is written to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// One JSON event a line.
    Ndjson,
    /// A MARCXML collection; bibs only.
    Marcxml,
}
