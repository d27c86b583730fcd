//! The three kinds of record that the library keeps.

use std::fmt;

/// A kind of record, and with it the list endpoint that serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bibliographic records.
    Bibs,
    /// Items: the copies on the shelves.
    Items,
    /// Patrons: the people.
    Patrons,
}

impl Kind {
    /// Every kind, in the order of the endpoints in Sierra's documentation.
    pub const ALL: [Self; 3] = [Self::Bibs, Self::Items, Self::Patrons];

    /// The path segment of the list endpoint.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Bibs => "bibs",
            Self::Items => "items",
            Self::Patrons => "patrons",
        }
    }

    /// What a person calls one such record.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Bibs => "bib",
            Self::Items => "item",
            Self::Patrons => "patron",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.path())
    }
}
