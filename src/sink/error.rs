//! What can go wrong at a sink, and what the delivery loop and a person should do about it.

use std::io;
use std::path::PathBuf;

use crate::failure::Disposition;
use crate::sync::{Seq, SinkError};

/// Why a sink of this module failed. Messages read after "failed to …" and hold no record's content.
#[derive(Debug, thiserror::Error)]
pub enum SinkFault {
    /// The system refused to do something with a file.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried, as in "write to".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The directory of the sink is something else.
    #[error("use {} as a directory for files: it is not a directory", path.display())]
    NotADirectory {
        /// What stands there.
        path: PathBuf,
    },
    /// Another sink or process writes there.
    #[error("use {}: another sink or another sierra-sync writes there", path.display())]
    Held {
        /// The directory.
        path: PathBuf,
    },
    /// Files of another format are there.
    #[error("use {} for {wanted} files: it holds {found} files", path.display())]
    OtherFormat {
        /// The directory.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What the sink is to write.
        wanted: &'static str,
    },
    /// The manifest was written by a newer version.
    #[error("read {}: its schema {found} is newer than this program knows", path.display())]
    NewerManifest {
        /// The manifest.
        path: PathBuf,
        /// Its schema.
        found: u64,
    },
    /// One change is larger than the destination takes.
    #[error("write {key}: it takes {bytes} bytes as it is encoded, and this sink takes {limit_bytes}")]
    Oversize {
        /// The idempotency key of the change.
        key: String,
        /// The change.
        seq: Seq,
        /// Its encoded size.
        bytes: usize,
        /// The most that the sink takes.
        limit_bytes: usize,
    },
    /// Standard output cannot be written to.
    #[error("write to standard output")]
    Stdout {
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The task that writes ended without an answer.
    #[error("write: the writing task ended unexpectedly")]
    Aborted,
}

impl SinkFault {
    fn disposition(&self) -> Disposition {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidFilename => Disposition::Halt,
                // A full disk, a mount that is away, a hiccup of the device: deliveries go on when it is over.
                _ => Disposition::RetryLater { not_before: None },
            },
            Self::Held { .. } | Self::Aborted => Disposition::RetryLater { not_before: None },
            Self::Oversize { .. } => Disposition::Quarantine,
            Self::NotADirectory { .. }
            | Self::OtherFormat { .. }
            | Self::NewerManifest { .. }
            | Self::Stdout { .. } => Disposition::Halt,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Io { path, source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    format!("free space on the disk that holds {}; deliveries then go on by themselves", path.display())
                }
                io::ErrorKind::PermissionDenied => {
                    format!("let the user that runs sierra-sync write to {}", path.display())
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    format!("mount the file system of {} for writing, or set another path", path.display())
                }
                io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                    format!("move away what stands at {}, or set another path", path.display())
                }
                _ => format!("check the disk that holds {}; deliveries then go on by themselves", path.display()),
            },
            Self::NotADirectory { .. } => {
                "set the sink's path to a directory, or to one that does not exist yet".into()
            }
            Self::Held { .. } => "give every sink a path of its own, and stop the other process".into(),
            Self::OtherFormat { .. } => "give every format a path of its own, or move the old files away".into(),
            Self::NewerManifest { .. } => "update sierra-sync, or move the old files away".into(),
            Self::Oversize { key, .. } => {
                format!("look at the record with sierra-sync quarantine show; the key is {key}; others are not held up")
            }
            Self::Stdout { source } if source.kind() == io::ErrorKind::BrokenPipe => {
                "the reader of standard output ended: start it again with sierra-sync; what it did not get follows"
                    .into()
            }
            Self::Stdout { .. } => "check where standard output leads".into(),
            Self::Aborted => "report this with the log lines before it".into(),
        }
    }
}

impl From<SinkFault> for SinkError {
    fn from(fault: SinkFault) -> Self {
        let (disposition, hint, told) = (fault.disposition(), fault.hint(), fault.to_string());
        // The message is all that status and alerts show, so it tells the cause as well.
        let (message, culprit, source) = match fault {
            SinkFault::Io { source, .. } | SinkFault::Stdout { source } => {
                (format!("{told}: {source}"), None, Some(source.into()))
            }
            SinkFault::Oversize { seq, .. } => (told, Some(seq), None),
            _ => (told, None, None),
        };
        Self { disposition, message, hint, culprit, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_their_dispositions_and_hints() {
        let io = |kind: io::ErrorKind| SinkFault::Io {
            action: "write to",
            path: PathBuf::from("out/bibs/1.ndjson"),
            source: io::Error::from(kind),
        };
        let path = PathBuf::from("out");
        let faults = [
            io(io::ErrorKind::StorageFull),
            io(io::ErrorKind::PermissionDenied),
            io(io::ErrorKind::ReadOnlyFilesystem),
            io(io::ErrorKind::NotADirectory),
            io(io::ErrorKind::NotFound),
            io(io::ErrorKind::Other),
            SinkFault::NotADirectory { path: path.clone() },
            SinkFault::Held { path: path.clone() },
            SinkFault::OtherFormat { path: path.clone(), found: "ndjson".into(), wanted: "marcxml" },
            SinkFault::NewerManifest { path, found: 2 },
            SinkFault::Oversize {
                key: "bibs/7/upsert/00/9".into(),
                seq: Seq::ZERO,
                bytes: 2_000_000,
                limit_bytes: 1_048_576,
            },
            SinkFault::Stdout { source: io::Error::from(io::ErrorKind::BrokenPipe) },
        ];
        let table: Vec<String> = faults
            .into_iter()
            .map(SinkError::from)
            .map(|error| format!("{:?}\n  {}\n  {}", error.disposition, error.message, error.hint))
            .collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}
