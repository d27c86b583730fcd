//! The kinds of record that are followed, one stream each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A stream of records of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Bibliographic records: `/bibs`.
    Bibs,
    /// Item records: `/items`.
    Items,
    /// Patron records: `/patrons`. Their values leave this program only through `privacy`.
    Patrons,
}

impl Stream {
    /// Every stream, in the order in which they are synced.
    pub const ALL: [Self; 3] = [Self::Bibs, Self::Items, Self::Patrons];

    /// The name used in paths, configuration, events and metrics: `bibs`, `items` or `patrons`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bibs => "bibs",
            Self::Items => "items",
            Self::Patrons => "patrons",
        }
    }

    /// The letter before a record number in Sierra's staff client: `b`, `i` or `p` (sierra-api.md §7 item 17).
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Bibs => 'b',
            Self::Items => 'i',
            Self::Patrons => 'p',
        }
    }

    /// The stream called `name`, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stream| stream.name() == name)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
