//! Fields and subfields as views into a record.

use std::fmt;
use std::ops::Range;

use super::tag::{Indicator, SubfieldCode, Tag};

/// One field of a [`super::Record`].
///
/// The order of fields is by tag first; beyond that it means nothing and only serves comparisons.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field<'a> {
    /// A control field (`00X`).
    Control {
        /// The tag.
        tag: Tag,
        /// The whole value; may be empty.
        value: &'a str,
    },
    /// A data field.
    Data {
        /// The tag.
        tag: Tag,
        /// First and second indicator.
        indicators: [Indicator; 2],
        /// One subfield or more.
        subfields: Subfields<'a>,
    },
}

/// One subfield of a data field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subfield<'a> {
    /// The code.
    pub code: SubfieldCode,
    /// The text; may be empty.
    pub value: &'a str,
}

/// The subfields of one data field, in order.
#[derive(Clone, Copy)]
pub struct Subfields<'a> {
    pub(super) text: &'a str,
    pub(super) spans: &'a [SubfieldSpan],
}

/// Where a subfield lies in the text of its record.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubfieldSpan {
    pub(super) code: SubfieldCode,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Field<'_> {
    /// The tag.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Control { tag, .. } | Self::Data { tag, .. } => *tag,
        }
    }
}

impl<'a> Subfields<'a> {
    /// The subfields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Subfield<'a>> + Clone + use<'a> {
        let text = self.text;
        self.spans.iter().map(move |span| Subfield { code: span.code, value: slice(text, span.start, span.end) })
    }

    /// The text of the first subfield with this code.
    #[must_use]
    pub fn get(&self, code: SubfieldCode) -> Option<&'a str> {
        self.iter().find(|subfield| subfield.code == code).map(|subfield| subfield.value)
    }
}

impl PartialEq for Subfields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Subfields<'_> {}

impl PartialOrd for Subfields<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Subfields<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.iter().cmp(other.iter())
    }
}

impl fmt::Debug for Field<'_> {
    /// One line as cataloguers write it: `245 10 $aTitle :$bsubtitle`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control { tag, value } => write!(formatter, "{tag} {value}"),
            Self::Data { tag, indicators: [first, second], subfields } => {
                write!(formatter, "{tag} {first}{second} {subfields:?}")
            }
        }
    }
}

impl fmt::Debug for Subfields<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|subfield| write!(formatter, "${}{}", subfield.code, subfield.value))
    }
}

/// A span as a range.
pub(super) fn range(start: u32, end: u32) -> Range<usize> {
    start as usize..end as usize
}

/// The text of a span.
pub(super) fn slice(text: &str, start: u32, end: u32) -> &str {
    text.get(range(start, end)).unwrap_or_default()
}
