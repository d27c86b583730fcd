//! A live bibliographic record.

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{Fields, RecordNumber, VarField};

/// A live bib as Sierra answered it, normalised.
#[derive(Debug, Clone)]
pub struct Bib {
    /// The record number.
    pub id: RecordNumber,
    /// `updatedDate`, whole seconds UTC; Sierra may omit it.
    pub updated: Option<Timestamp>,
    /// Hidden from the public catalogue. Absent means `false`.
    pub suppressed: bool,
    /// Trimmed location codes.
    pub locations: Vec<String>,
    /// The variable fields in Sierra's order; `None` when the entry had no `varFields` key at all (BR-048).
    pub var_fields: Option<Vec<VarField>>,
    /// Sierra's own MARC rendering, when the entry brought one: used to check ours, never to replace it.
    pub marc: Option<Box<RawValue>>,
    /// Every top-level key as it came, `varFields`, `fixedFields` and `marc` included.
    pub fields: Fields,
}
