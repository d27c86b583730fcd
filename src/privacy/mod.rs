//! What may leave this program about people: policy, masking, pseudonyms, sealing.

mod masked;
pub mod settings;

pub use masked::Masked;
pub use settings::{FieldRule, PrivacySettings};
