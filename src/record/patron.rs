//! A patron as Sierra sent it: private, so it can be neither printed nor serialised.

use std::fmt;

use jiff::Timestamp;

use super::{Fields, RecordNumber};

/// A live patron before masking. It has no `Serialize`, its `Debug` shows nothing, and only `privacy` reads its
/// fields; what leaves `privacy` is a `Masked` value.
pub struct RawPatron {
    id: RecordNumber,
    updated: Option<Timestamp>,
    suppressed: bool,
    fields: Fields,
}

impl RawPatron {
    /// Wraps what `sierra::decode` read.
    #[must_use]
    pub fn new(id: RecordNumber, updated: Option<Timestamp>, suppressed: bool, fields: Fields) -> Self {
        Self { id, updated, suppressed, fields }
    }

    /// The record number: itself private, so it is never shown or logged.
    #[must_use]
    pub fn id(&self) -> RecordNumber {
        self.id
    }

    /// `updatedDate`, whole seconds UTC.
    #[must_use]
    pub fn updated(&self) -> Option<Timestamp> {
        self.updated
    }

    /// Whether the record is suppressed.
    #[must_use]
    pub fn suppressed(&self) -> bool {
        self.suppressed
    }

    /// The raw fields, for `privacy` alone.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.fields
    }
}

impl fmt::Debug for RawPatron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawPatron(…)")
    }
}
