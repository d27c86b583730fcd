//! Why a record cannot be made.

use crate::failure::{Classify, Disposition};

/// Why a record cannot be made or extended. Messages read after "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarcError {
    /// A character that XML 1.0 forbids, where the settings ask for quarantine.
    #[error("field {field} holds {code_point}, which XML 1.0 cannot hold, and marc.on_illegal is \"quarantine\"")]
    IllegalCharacter {
        /// The tag, with the subfield code if there is one.
        field: String,
        /// The first such character, as `U+0007`.
        code_point: String,
    },
    /// A control tag given to a data field, or the reverse.
    #[error("tag {tag} does not belong to a {expected} field")]
    TagClass {
        /// The tag.
        tag: super::Tag,
        /// `control` or `data`.
        expected: &'static str,
    },
    /// A data field without any subfield.
    #[error("data field {tag} has no subfield")]
    NoSubfield {
        /// The tag.
        tag: super::Tag,
    },
    /// More text than one record is meant to hold.
    #[error("the record is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
}

impl Classify for MarcError {
    /// Always [`Disposition::Quarantine`]: the record is bad, the stream is fine.
    fn disposition(&self) -> Disposition {
        Disposition::Quarantine
    }
}
