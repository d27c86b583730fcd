//! What can go wrong with keys, policy and sealed values. No message holds a value that was masked or sealed.

use std::path::PathBuf;

/// Why the key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It could not be read.
    #[error("read the key file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// It did not exist and could not be made.
    #[error("make the key file {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// It is not there, and what it made is.
    #[error(
        "use the key file {}: it is gone, and patrons were given pseudonyms with it; restore it from a backup, or name \
         a new state.path and new sink paths to load everything under a new key",
        path.display()
    )]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Others than its owner may read or write it.
    #[error("use the key file {}: its mode is {mode:04o}, so others can get at it; run: chmod 600 {}",
        path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is not a key.
    #[error("use the key file {}: line {line} is not a key; expected 64 hexadecimal digits", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// It holds no key at all.
    #[error(
        "use the key file {}: it holds no key; restore it from a backup, or add one with openssl rand -hex 32",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// One key stands twice.
    #[error("use the key file {}: line {line} repeats an earlier key; remove one of them", path.display())]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The line of the second one, from 1.
        line: usize,
    },
}

impl KeyFileError {
    /// What to do about it, where the message does not say so itself.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, source } => Some(match source.kind() {
                std::io::ErrorKind::NotFound => {
                    "restore it from a backup, or correct privacy.key_file; where nothing was \
                    synced with it yet, make one: umask 077; openssl rand -hex 32 > FILE"
                        .to_owned()
                }
                std::io::ErrorKind::PermissionDenied => {
                    format!("make it belong to the user that runs sierra-sync: chown USER {}", path.display())
                }
                _ => "see that privacy.key_file names a text file with one key a line".to_owned(),
            }),
            Self::Create { .. } => Some("see that state.path is a directory that this user may write".to_owned()),
            Self::Gone { .. }
            | Self::Exposed { .. }
            | Self::Malformed { .. }
            | Self::Empty { .. }
            | Self::Repeated { .. } => None,
        }
    }
}

/// Why a sealed value cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Too short to be a sealed value.
    #[error("open a sealed value: it is cut short")]
    Truncated,
    /// Sealed by a newer version of this program.
    #[error("open a sealed value: its format {version} is newer than this program knows; update sierra-sync")]
    NewerFormat {
        /// The format byte.
        version: u8,
    },
    /// No key opens it: the key was taken out of the key file, the value was altered, or it was sealed for another
    /// purpose.
    #[error("open a sealed value: no key of the key file fits; put the key it was sealed with back into the key file")]
    NoKeyFits,
    /// It opened, but does not hold what it should.
    #[error("open a sealed value: what it holds is not what was expected")]
    Malformed,
}

/// Why a privacy setting is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A pattern of `marc_drop` is not one.
    #[error(
        "privacy.marc_drop: {pattern:?} is not a pattern: {reason}; expected a tag such as 909, 95x or 9xx, or a \
         subfield such as 590$x"
    )]
    MarcDrop {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A fixed field is not named by its number.
    #[error("privacy.item_fixed_drop: {text:?} is not a fixed field's number; expected digits such as 66")]
    FixedField {
        /// What was written.
        text: String,
    },
    /// A varField is not named by its tag.
    #[error("privacy.item_var_keep: {text:?} is not a varField's tag; expected one character such as v")]
    VarField {
        /// What was written.
        text: String,
    },
    /// A patron's record number may not pass as it is.
    #[error(
        "privacy.patrons.fields.id: a patron's record number cannot pass; expected hmac (its pseudonym), mask or drop"
    )]
    RecordNumberPasses,
}
