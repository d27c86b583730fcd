//! The leader: 24 characters that describe the record.
//!
//! Sierra keeps it as an untagged varField, as a template whose lengths are zeros, and some records lack it
//! (sierra-api.md §3.1, BR-022). Leaders in the wild are trimmed, a character short or nonsense (BR-087); whatever
//! came, what stands here has 24 characters that every reader accepts.

use std::fmt;

/// A leader: exactly 24 printable ASCII characters.
///
/// Positions 10–11 are `22`, 20–23 are `4500` and 09 is `a` always, since that is how all three forms are written
/// here, whatever came in (BR-085). Positions 00–04 and 12–16 are digits: they describe an ISO 2709 file and not the
/// record, so they are carried as they came, written afresh in ISO 2709, and ignored by `==`.
#[derive(Clone, Copy)]
pub struct Leader([u8; 24]);

/// What positions hold when nothing usable came: a new (`n`) book (`am`) in UTF-8 (`a`) with no further claims.
const DEFAULT: [u8; 24] = *b"00000nam a2200000   4500";
/// Positions with codes of the record itself: status, type, level, control; encoding level, form, linked level.
const CODES: [usize; 7] = [5, 6, 7, 8, 17, 18, 19];
/// Position 05.
const STATUS: usize = 5;
/// Position 06, where a blank is no code.
const TYPE: usize = 6;

impl Leader {
    /// Reads a leader of any quality; the flag tells whether something had to be repaired.
    ///
    /// Blank lengths and a blank or `a` in position 09 are normal and no repair. A leader of 24 characters is taken
    /// position by position. Of one with another length, positions 05–08 are taken from the front (or from the very
    /// start, if it begins with a letter: the lengths were trimmed away), and 17–19 from before a final `4500`. A
    /// character that is no letter, digit or blank, or a `0` (no code position has one), becomes the default.
    #[must_use]
    pub fn read(text: &str) -> (Self, bool) {
        if let Ok(bytes) = <[u8; 24]>::try_from(text.as_bytes()) {
            return Self::read_exact(bytes);
        }
        let characters: Vec<u8> = text.chars().map(|character| u8::try_from(character).unwrap_or(b'\0')).collect();
        if let Ok(bytes) = <[u8; 24]>::try_from(characters.as_slice()) {
            return (Self::read_exact(bytes).0, true);
        }
        let mut template = DEFAULT;
        let front = match characters.first() {
            Some(first) if first.is_ascii_alphabetic() => characters.get(..4),
            _ => characters.get(5..9),
        };
        if let (Some(front), Some(slots)) = (front, template.get_mut(5..9)) {
            slots.copy_from_slice(front);
        }
        let tail = characters.strip_suffix(b"4500").and_then(|rest| rest.get(rest.len().checked_sub(3)?..));
        if let (Some(tail), Some(slots)) = (tail.filter(|_| characters.len() > 15), template.get_mut(17..20)) {
            slots.copy_from_slice(tail);
        }
        (Self::read_exact(template).0, true)
    }

    fn read_exact(bytes: [u8; 24]) -> (Self, bool) {
        let mut leader = DEFAULT;
        let mut repaired = false;
        for position in CODES {
            let (Some(slot), Some(&byte)) = (leader.get_mut(position), bytes.get(position)) else { continue };
            let is_code = byte != b'0' && (byte.is_ascii_alphanumeric() || (byte == b' ' && position != TYPE));
            if is_code {
                *slot = byte;
            } else {
                repaired = true;
            }
        }
        for length in [0..5, 12..17] {
            let (Some(slots), Some(came)) = (leader.get_mut(length.clone()), bytes.get(length)) else { continue };
            if came.iter().all(u8::is_ascii_digit) {
                slots.copy_from_slice(came);
            } else {
                repaired |= came.iter().any(|byte| !(byte.is_ascii_digit() || *byte == b' '));
            }
        }
        repaired |= !matches!(bytes[9], b' ' | b'a') || bytes[10..12] != *b"22" || bytes[20..] != *b"4500";
        (Self(leader), repaired)
    }

    /// Position 05: `n` new, `c` corrected, `d` deleted, among others.
    #[must_use]
    pub const fn status(&self) -> u8 {
        self.0[STATUS]
    }

    /// The same leader with a record status of `d`: of a record that is no more.
    #[must_use]
    pub const fn deleted(mut self) -> Self {
        self.0[STATUS] = b'd';
        self
    }

    /// The same leader with a record status of `c`: corrected, and alive.
    #[must_use]
    pub const fn corrected(mut self) -> Self {
        self.0[STATUS] = b'c';
        self
    }

    /// The same leader with zeros for lengths: what a record that was never in an ISO 2709 file has.
    #[must_use]
    pub fn without_lengths(self) -> Self {
        self.with_lengths(0, 0)
    }

    /// The same leader with the lengths of an ISO 2709 record: the whole and the base address of data, in bytes.
    /// Lengths of more than five digits are the caller's to refuse; here they are cut to five nines.
    #[must_use]
    pub(super) fn with_lengths(mut self, record_bytes: usize, base_address: usize) -> Self {
        self.0[0..5].copy_from_slice(&digits::<5>(record_bytes));
        self.0[12..17].copy_from_slice(&digits::<5>(base_address));
        self
    }

    /// The 24 bytes of ASCII.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 24] {
        &self.0
    }

    /// The leader as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a leader is ASCII, made so when it was built")
    }

    /// What is compared: everything but the lengths.
    pub(super) fn meaning(&self) -> [u8; 24] {
        self.without_lengths().0
    }
}

/// `number` as `N` decimal digits with leading zeros; all nines if it does not fit.
pub(super) fn digits<const N: usize>(number: usize) -> [u8; N] {
    let mut rest = number;
    let mut text = [b'0'; N];
    for slot in text.iter_mut().rev() {
        *slot = b"0123456789".get(rest % 10).copied().unwrap_or(b'0');
        rest /= 10;
    }
    if rest > 0 { [b'9'; N] } else { text }
}

impl Default for Leader {
    /// `00000nam a2200000   4500`.
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl PartialEq for Leader {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Eq for Leader {}

impl fmt::Display for Leader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, bool) {
        let (leader, repaired) = Leader::read(text);
        (leader.to_string(), repaired)
    }

    #[test]
    fn a_sound_leader_is_kept_but_for_the_coding() {
        for (text, expected) in [
            ("00000nam  2200000 a 4500", "00000nam a2200000 a 4500"),
            ("01060cam  22002894a 4500", "01060cam a22002894a 4500"),
            ("     cas a22     7i 4500", "00000cas a22000007i 4500"),
            ("00000nam a2200000   4500", "00000nam a2200000   4500"),
        ] {
            assert_eq!(read(text), (expected.to_owned(), false), "{text:?}");
        }
    }

    /// BR-087: 0, 23, 25 bytes, inner spaces, all zero, trimmed, an odd character.
    #[test]
    fn a_damaged_leader_keeps_what_is_sound_and_always_has_24_characters() {
        for (text, expected) in [
            ("", "00000nam a2200000   4500"),
            ("000000000000000000000000", "00000nam a2200000   4500"),
            ("00000cas 2200000 i 4500", "00000cas a2200000 i 4500"),
            ("00000cas a2200000 i 45001", "00000cas a2200000   4500"),
            ("00000ccm  a2200000 i 4500", "00000ccm a2200000 i 4500"),
            ("cas a22     7i 4500", "00000cas a22000007i 4500"),
            ("00000cas  22003618< 4500", "00000cas a22003618  4500"),
            ("00000n m  2200000 a 4500", "00000nam a2200000 a 4500"),
            ("00000nam  2200000 a 450", "00000nam a2200000   4500"),
            ("00000nam", "00000nam a2200000   4500"),
            ("00000cgm b", "00000cgm a2200000   4500"),
            ("4500", "00000nam a2200000   4500"),
            ("漢字漢字漢字漢字漢字漢字", "00000nam a2200000   4500"),
            ("00000naé  2200000 a 4500", "00000nam a2200000 a 4500"),
            ("00000\u{0}\u{1f}m  2200000 a 4500", "00000nam a2200000 a 4500"),
        ] {
            assert_eq!(read(text), (expected.to_owned(), true), "{text:?}");
        }
    }

    /// BR-085: legacy counts are never passed on.
    #[test]
    fn counts_and_entry_map_are_always_the_standard_ones() {
        for text in [
            "00000nam x2200000 a 4500",
            "00000nam  4200000 a 4500",
            "00000nam  2 00000 a 4500",
            "00000nam  2200000 a 4530",
        ] {
            assert_eq!(read(text), ("00000nam a2200000 a 4500".to_owned(), true), "{text:?}");
        }
    }

    #[test]
    fn lengths_do_not_make_two_leaders_different() {
        let leader = Leader::read("01060cam  22002894a 4500").0;
        assert_eq!(leader, leader.with_lengths(99_999, 25));
        assert_eq!(leader.with_lengths(1234, 61).as_str(), "01234cam a22000614a 4500");
        assert_eq!(leader.with_lengths(123_456, 61).as_str(), "99999cam a22000614a 4500");
        assert_ne!(leader, leader.deleted());
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_a_leader_that_reads_back_unrepaired(text in ".{0,40}") {
            let (leader, _) = Leader::read(&text);
            proptest::prop_assert!(leader.as_bytes().iter().all(|byte| (b' '..=b'~').contains(byte)));
            let again = Leader::read(leader.as_str());
            proptest::prop_assert_eq!((again.0.as_str(), again.1), (leader.as_str(), false));
        }
    }
}
