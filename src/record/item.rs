//! A live item record.

use jiff::Timestamp;

use super::{Fields, RecordNumber, VarField};

/// A live item as Sierra answered it, normalised. Its fixed fields 66 and 67 name patrons: `privacy` drops them
/// before the item goes anywhere (BR-124).
#[derive(Debug, Clone)]
pub struct Item {
    /// The record number.
    pub id: RecordNumber,
    /// `updatedDate`, whole seconds UTC; Sierra may omit it.
    pub updated: Option<Timestamp>,
    /// Hidden from the public catalogue. Not among Sierra's default item fields, so it must be asked for.
    pub suppressed: bool,
    /// The trimmed location code, when there is one.
    pub location: Option<String>,
    /// The bibs this item hangs from: none, one or many (bound-with).
    pub bib_ids: Vec<RecordNumber>,
    /// The variable fields in Sierra's order.
    pub var_fields: Vec<VarField>,
    /// Every top-level key as it came.
    pub fields: Fields,
}
