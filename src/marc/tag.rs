//! The small parts of a field that have rules of their own: tag, indicator, subfield code.
//!
//! What MARC 21 defines is narrower than what is accepted here (an indicator `A` or a subfield code `|` is nobody's
//! standard). Such characters are carried all the same: all three written forms can hold them, and dropping one would
//! lose what a cataloguer typed. What no form can hold is not constructible.

use std::fmt;

/// A field's tag: three ASCII letters or digits, but neither `000` nor `00A` and its like.
///
/// MARC 21 has control fields 001 to 009 and nothing else that begins with two zeros. Readers of ISO 2709 disagree on the
/// rest: some take `00A` for a control field, others for a data field, whose content they then misread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; 3]);

/// An indicator: one printable ASCII character, blank as a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Indicator(u8);

/// A subfield code: one printable ASCII character.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubfieldCode(u8);

impl Tag {
    /// The control number, 001.
    pub const CONTROL_NUMBER: Self = Self(*b"001");
    /// The agency that assigned the control number, 003.
    pub const CONTROL_NUMBER_AGENCY: Self = Self(*b"003");
    /// Control numbers of other systems, 035.
    pub const SYSTEM_CONTROL_NUMBER: Self = Self(*b"035");

    /// Checks a tag; `None` unless it is exactly three ASCII letters or digits, the third of them 1 to 9 after two zeros.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        Self::from_bytes(text.as_bytes().try_into().ok()?)
    }

    /// Checks the three bytes of a tag.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 3]) -> Option<Self> {
        let is_tag = match bytes {
            [b'0', b'0', third] => matches!(third, b'1'..=b'9'),
            _ => bytes.iter().all(u8::is_ascii_alphanumeric),
        };
        is_tag.then_some(Self(bytes))
    }

    /// Whether fields with this tag are control fields (001 to 009): one value, no indicators, no subfields.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0[0] == b'0' && self.0[1] == b'0'
    }

    /// The tag as three bytes of ASCII.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 3] {
        &self.0
    }

    /// The tag as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a tag is ASCII, checked when it was built")
    }
}

impl Indicator {
    /// The undefined indicator.
    pub const BLANK: Self = Self(b' ');

    /// Checks an indicator; `None` unless it is a printable ASCII character or a space.
    #[must_use]
    pub fn new(byte: u8) -> Option<Self> {
        is_printable(byte).then_some(Self(byte))
    }

    /// The indicator as a byte of ASCII.
    #[must_use]
    pub const fn as_byte(self) -> u8 {
        self.0
    }
}

impl SubfieldCode {
    /// The code that text without a code is filed under.
    pub const A: Self = Self(b'a');

    /// Checks a code; `None` unless it is a printable ASCII character or a space.
    #[must_use]
    pub fn new(byte: u8) -> Option<Self> {
        is_printable(byte).then_some(Self(byte))
    }

    /// The code as a byte of ASCII.
    #[must_use]
    pub const fn as_byte(self) -> u8 {
        self.0
    }
}

fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Indicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(self.0).fmt(formatter)
    }
}

impl fmt::Debug for Indicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(self.0).fmt(formatter)
    }
}

impl fmt::Display for SubfieldCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(self.0).fmt(formatter)
    }
}

impl fmt::Debug for SubfieldCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(self.0).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_ascii_letters_or_digits_make_a_tag() {
        for good in ["001", "245", "9XX", "abc", "0A0"] {
            assert_eq!(Tag::new(good).map(|tag| tag.to_string()).as_deref(), Some(good));
        }
        for bad in ["", "1", "24", "2450", "24 ", " 24", "2é", "24\u{1f}", "۲۴۵", "2-5"] {
            assert_eq!(Tag::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn control_tags_are_001_to_009_and_nothing_else_begins_with_two_zeros() {
        let is_control = |text| Tag::new(text).map(Tag::is_control);
        for tag in ["001", "005", "009"] {
            assert_eq!(is_control(tag), Some(true), "{tag}");
        }
        for tag in ["010", "100", "A00", "0A0"] {
            assert_eq!(is_control(tag), Some(false), "{tag}");
        }
        for tag in ["000", "00A", "00z"] {
            assert_eq!(is_control(tag), None, "{tag}");
        }
    }

    #[test]
    fn controls_and_anything_beyond_ascii_are_no_indicator_and_no_code() {
        for byte in [0x00, 0x1d, 0x1e, 0x1f, 0x7f, 0x80, 0xff] {
            assert_eq!((Indicator::new(byte), SubfieldCode::new(byte)), (None, None), "{byte:#04x}");
        }
        for byte in b" ~\"'<&|09azAZ" {
            assert!(Indicator::new(*byte).is_some() && SubfieldCode::new(*byte).is_some());
        }
    }
}
