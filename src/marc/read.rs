//! What the readers of all forms have in common.

use std::io;

use super::error::MarcError;
use super::loss::Loss;
use super::model::Record;

/// A stream of records in some form. Memory does not grow with the input: at most one record is held.
pub trait ReadRecord {
    /// Reads the next record into `record`, whose memory is reused; `false` at the end of the input.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] concerns one record, and reading can go on with the next. After any other error this
    /// reader is at its end: it answers `Ok(false)` from then on.
    fn read_into(&mut self, record: &mut Record) -> Result<bool, ReadError>;

    /// Takes the losses of the record that was read last.
    fn take_losses(&mut self) -> Vec<Loss>;

    /// An iterator over the records, each in memory of its own.
    fn records(self) -> Records<Self>
    where
        Self: Sized,
    {
        Records(self)
    }
}

/// Iterates over the records of a reader; see [`ReadRecord::records`].
#[derive(Debug)]
pub struct Records<R>(R);

impl<R: ReadRecord> Iterator for Records<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = Record::default();
        match self.0.read_into(&mut record) {
            Ok(true) => Some(Ok(record)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Why a record, or the input as a whole, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// One record cannot be had; the next one can.
    #[error("record {ordinal} at byte {offset}: {damage}")]
    Damaged {
        /// Which record of this input, from 1, damaged ones counted.
        ordinal: u64,
        /// Where it begins, in bytes from the start of the input.
        offset: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// The input is not of this form, or not from here on.
    #[error("cannot read on at byte {offset}: {reason}")]
    Unreadable {
        /// Where reading ended, in bytes from the start of the input.
        offset: u64,
        /// What was found, and what to do.
        reason: String,
    },
    /// The input could not be read at all.
    #[error("cannot read on at byte {offset}: {source}")]
    Io {
        /// Where reading ended, in bytes from the start of the input.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
}

impl ReadError {
    /// Whether the reader goes on with the next record after this.
    #[must_use]
    pub const fn is_one_record(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

/// What is wrong with one record. No message holds any of its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// ISO 2709: something that does not begin with a record length.
    #[error("no record length at its start")]
    NoLength,
    /// The input ends before the record does.
    #[error("the input ends inside this record")]
    Truncated,
    /// ISO 2709: no record terminator where the length says it is.
    #[error("its length of {bytes} bytes does not lead to a record terminator")]
    Length {
        /// The length that its leader gives.
        bytes: usize,
    },
    /// ISO 2709: the record ends, and another begins, before the end that the length gives.
    #[error("its length of {bytes} bytes reaches into the next record")]
    Swallows {
        /// The length that its leader gives.
        bytes: usize,
    },
    /// ISO 2709: base address or directory make no sense.
    #[error("its directory is damaged: {what}")]
    Directory {
        /// What exactly.
        what: &'static str,
    },
    /// ISO 2709: the directory points outside of the data or between fields.
    #[error("its directory misplaces field {tag}")]
    Misplaced {
        /// The tag.
        tag: super::Tag,
    },
    /// ISO 2709: bytes that are no UTF-8 in a record that says it is UTF-8.
    #[error("it is marked as UTF-8 (leader 09 is a) and is not")]
    NotUtf8,
    /// ISO 2709: another character set. Which one, the record does not say.
    #[error(
        "it is not UTF-8 and does not say that it is (leader 09 is not a): perhaps it is MARC-8, which yaz-marcdump \
         -f marc-8 -t utf-8 -l 9=97 -o marc converts"
    )]
    Marc8,
    /// MARCXML: an entity that XML does not predefine.
    #[error("it refers to an entity that XML does not predefine; entities are not expanded")]
    Entity,
    /// MARCXML or JSON: parts in a place where they have no meaning.
    #[error("its structure is not that of a record: {what}")]
    Structure {
        /// What exactly.
        what: &'static str,
    },
    /// JSON: not well-formed.
    #[error("it is not valid JSON: {what}")]
    Json {
        /// What exactly.
        what: String,
    },
    /// It needs more memory than one record may have.
    #[error("it is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// A character that XML 1.0 forbids, where the settings ask to give such records up.
    #[error(transparent)]
    Marc(#[from] MarcError),
    /// Sierra: a deleted record.
    #[error("it is deleted: a tombstone has no MARC")]
    Tombstone,
    /// Sierra: a record that has no MARC by its nature.
    #[error("it is {kind} record: only bibs have MARC")]
    NotABib {
        /// `an item`, `a holdings`, `a patron`, `an order`.
        kind: &'static str,
    },
    /// Sierra: a bib without varFields and marc (BR-048).
    #[error("it has neither varFields nor marc: ask Sierra for fields=default,varFields")]
    NoMarc,
    /// Sierra: no record number.
    #[error("it has no record number")]
    NoNumber,
    /// Sierra: an error answer that was saved as if it were data (BR-046).
    #[error("it is an error answer of Sierra, not a record")]
    ErrorAnswer,
}

impl Damage {
    /// A word for it, for counts.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Tombstone => "tombstone",
            Self::NotABib { .. } => "not a bib",
            Self::NoMarc => "no MARC",
            Self::ErrorAnswer => "error answer",
            Self::Marc8 | Self::NotUtf8 => "not UTF-8",
            Self::Marc(MarcError::IllegalCharacter { .. }) => "illegal character",
            Self::TooLarge { .. } | Self::Marc(_) => "too large",
            _ => "damaged",
        }
    }
}
