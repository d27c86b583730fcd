//! What one entry of a Sierra page can be.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Bib, Item, RawPatron, RecordNumber, Stream};

/// One entry of a page: a live record or a tombstone. Tombstones may appear in any pass (sierra-api.md §7 item 7).
#[derive(Debug)]
pub enum Entry {
    /// A live record.
    Live(Live),
    /// A deleted record.
    Tombstone(Tombstone),
}

/// A live record of any kind.
#[derive(Debug)]
pub enum Live {
    /// A bib.
    Bib(Box<Bib>),
    /// An item.
    Item(Box<Item>),
    /// A patron, unmasked.
    Patron(Box<RawPatron>),
}

/// The stub that Sierra keeps of a deleted record (sierra-api.md §3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The record number.
    pub id: RecordNumber,
    /// The local day of the deletion, when Sierra said it.
    pub deleted_on: Option<Date>,
    /// A stale or absent `updatedDate`: shown in nothing, kept for diagnosis.
    pub updated: Option<Timestamp>,
}

impl Entry {
    /// The record number, whatever the entry is.
    #[must_use]
    pub fn id(&self) -> RecordNumber {
        match self {
            Self::Live(live) => live.id(),
            Self::Tombstone(tombstone) => tombstone.id,
        }
    }
}

impl Live {
    /// The record number.
    #[must_use]
    pub fn id(&self) -> RecordNumber {
        match self {
            Self::Bib(bib) => bib.id,
            Self::Item(item) => item.id,
            Self::Patron(patron) => patron.id(),
        }
    }

    /// `updatedDate`, when Sierra sent one.
    #[must_use]
    pub fn updated(&self) -> Option<Timestamp> {
        match self {
            Self::Bib(bib) => bib.updated,
            Self::Item(item) => item.updated,
            Self::Patron(patron) => patron.updated(),
        }
    }

    /// `createdDate`, when Sierra sent one that can be read. Nothing is decided by it but when a sweep has come to
    /// records that were not there when it began.
    #[must_use]
    pub fn created(&self) -> Option<Timestamp> {
        let fields = match self {
            Self::Bib(bib) => &bib.fields,
            Self::Item(item) => &item.fields,
            Self::Patron(patron) => patron.fields(),
        };
        let text: &str = serde_json::from_str(fields.get("createdDate")?.get()).ok()?;
        text.trim().parse().ok()
    }

    /// Whether the record is suppressed.
    #[must_use]
    pub fn suppressed(&self) -> bool {
        match self {
            Self::Bib(bib) => bib.suppressed,
            Self::Item(item) => item.suppressed,
            Self::Patron(patron) => patron.suppressed(),
        }
    }

    /// The stream that the record belongs to.
    #[must_use]
    pub fn stream(&self) -> Stream {
        match self {
            Self::Bib(_) => Stream::Bibs,
            Self::Item(_) => Stream::Items,
            Self::Patron(_) => Stream::Patrons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fields;
    use super::*;

    #[test]
    fn the_date_of_creation_is_read_where_it_can_be() {
        let created = |json: &str| {
            let value = serde_json::value::RawValue::from_string(json.to_owned()).expect("valid JSON");
            let fields = Fields::new(vec![("createdDate".to_owned(), value)]);
            Live::Patron(Box::new(RawPatron::new(RecordNumber::new(7), None, false, fields))).created()
        };
        assert_eq!(created("\"2026-01-05T10:00:00Z\""), Some("2026-01-05T10:00:00Z".parse().expect("a timestamp")));
        for unreadable in ["\"\"", "20260105", "null", "\"2026-01-05\""] {
            assert_eq!(created(unreadable), None, "{unreadable}");
        }
    }
}
