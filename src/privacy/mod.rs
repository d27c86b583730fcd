//! What may leave this program about people: policy, masking, pseudonyms, sealing.
//!
//! Everything that reads a patron's fields is here, and nothing else makes a [`Masked`] value. This module does not
//! know where values go: the store seals what it keeps, sinks see masked values only.

mod bib;
mod error;
mod fields;
mod key_file;
mod keyring;
mod links;
mod marc_drop;
mod masked;
mod members;
mod patron;
mod policy;
mod pseudonym;
mod sealing;
pub mod settings;

pub use error::{KeyFileError, PolicyError, SealError};
pub use keyring::{Absent, KeyId, Keyring};
pub use marc_drop::MarcDrop;
pub use masked::Masked;
pub use policy::Policy;
pub use pseudonym::Pseudonym;
pub use settings::{FieldRule, PrivacySettings};
