//! What privacy obeys; the configuration layer fills it in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What may leave this program about people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivacySettings {
    /// The key file; `None` means one is made below the state directory.
    pub key_file: Option<PathBuf>,
    /// How long patron-derived values are kept.
    pub retention: Duration,
    /// MARC fields to leave out: `909`, `95x`, `590$x`.
    pub marc_drop: Vec<String>,
    /// Fixed fields of items to leave out, by number.
    pub item_fixed_drop: Vec<String>,
    /// `fieldTag`s of item varFields that may pass.
    pub item_var_keep: Vec<String>,
    /// What happens to each patron field; what is not named is dropped.
    pub patron_fields: BTreeMap<String, FieldRule>,
}

/// What happens to a patron field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldRule {
    /// It passes as it is.
    Pass,
    /// Its value is replaced by a mark that only tells that there was one.
    Mask,
    /// Its value is replaced by a keyed hash.
    Hmac,
    /// It is left out.
    Drop,
}
