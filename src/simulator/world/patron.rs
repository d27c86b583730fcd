//! A patron as the library keeps one. Nobody here exists.

use jiff::civil::Date;

use crate::simulator::invention::Member;
use crate::simulator::site::Code;

/// A live patron.
#[derive(Debug, Clone)]
pub(crate) struct Patron {
    /// Everything personal.
    pub(crate) member: Member,
    /// Fixed field 47.
    pub(crate) patron_type: u16,
    /// Fixed field 53.
    pub(crate) home: &'static Code,
    /// When the card ends.
    pub(crate) expires: Date,
    /// Whether staff hid the record.
    pub(crate) is_suppressed: bool,
    /// Whether the patron may borrow; `-` means nothing stands against it.
    pub(crate) block: char,
    /// Fines, in hundredths.
    pub(crate) owed: u32,
}
