//! Sierra record numbers and their spellings.
//!
//! The API writes `1234567`; the staff client `b1234567x` with a check digit; displays `.b1234567x`; SQL and the
//! OPAC may put `a` where the check digit stands (sierra-api.md §7 item 17). Numbers overlap between kinds.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Stream;

/// A record number without letter and check digit, as the API writes it. Compared as a number, never as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordNumber(u64);

/// Why a text is not a record number of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordNumberError {
    /// Not digits, or no digits at all, or more than 18 of them.
    #[error("{text:?} is not a record number: expected digits such as 1234567 or {letter}1234567x")]
    Malformed {
        /// The text that was read.
        text: String,
        /// The letter of the wanted kind.
        letter: char,
    },
    /// The letter belongs to another kind of record.
    #[error("{text:?} is a record number of another kind: expected the letter {letter}")]
    OtherKind {
        /// The text that was read.
        text: String,
        /// The letter of the wanted kind.
        letter: char,
    },
    /// The check digit does not match the number.
    #[error("{text:?} has a wrong check digit: {letter}{number} ends in {expected}")]
    CheckDigit {
        /// The text that was read.
        text: String,
        /// The letter of the wanted kind.
        letter: char,
        /// The number before the check digit.
        number: u64,
        /// The check digit that this number has.
        expected: char,
    },
}

impl RecordNumber {
    /// Wraps a number as the API gives it.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number as an integer.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The number after this one, saturating.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Reads any spelling of a record number of `stream`: `1234567`, `b1234567`, `b1234567x`, `.b1234567x`,
    /// `b1234567a` (wildcard). Digits alone carry no check digit, since lengths are no guide (8-digit numbers exist).
    /// After a letter, a last place that is `x` or `a` is a check digit; digits after a letter are taken with a
    /// check digit when there are eight or more of them and the last one matches.
    ///
    /// # Errors
    /// When the text is malformed, of another kind, or its `x` check digit is wrong.
    pub fn parse(text: &str, stream: Stream) -> Result<Self, RecordNumberError> {
        let letter = stream.letter();
        let malformed = || RecordNumberError::Malformed { text: text.to_owned(), letter };
        let trimmed = text.trim();
        let body = trimmed.strip_prefix('.').unwrap_or(trimmed);
        let Some(first) = body.chars().next() else { return Err(malformed()) };
        if first.is_ascii_digit() {
            return digits(body).map(Self).ok_or_else(malformed);
        }
        if !first.eq_ignore_ascii_case(&letter) {
            return Err(if first.is_ascii_alphabetic() {
                RecordNumberError::OtherKind { text: text.to_owned(), letter }
            } else {
                malformed()
            });
        }
        let rest = body.get(1..).unwrap_or_default();
        let Some(last) = rest.chars().last() else { return Err(malformed()) };
        let without_last = rest.get(..rest.len() - last.len_utf8()).unwrap_or_default();
        match last {
            'a' | 'A' => digits(without_last).map(Self).ok_or_else(malformed),
            'x' | 'X' => {
                let number = Self(digits(without_last).ok_or_else(malformed)?);
                let expected = number.check_digit();
                if expected == 'x' {
                    Ok(number)
                } else {
                    Err(RecordNumberError::CheckDigit { text: text.to_owned(), letter, number: number.0, expected })
                }
            }
            _ if rest.len() >= 8 => {
                let whole = digits(rest).ok_or_else(malformed)?;
                let number = Self(digits(without_last).ok_or_else(malformed)?);
                Ok(if number.check_digit() == last { number } else { Self(whole) })
            }
            _ => digits(rest).map(Self).ok_or_else(malformed),
        }
    }

    /// The check digit: weights 2, 3, 4 … from the right, sum modulo 11, ten written `x`
    /// (sierra-api.md §7 item 17).
    #[must_use]
    pub fn check_digit(self) -> char {
        let mut rest = self.0;
        let (mut sum, mut weight) = (0_u64, 2_u64);
        while rest > 0 {
            sum += (rest % 10) * weight;
            rest /= 10;
            weight += 1;
        }
        match u32::try_from(sum % 11) {
            Ok(digit) if digit < 10 => char::from_digit(digit, 10).unwrap_or('x'),
            _ => 'x',
        }
    }

    /// The display form with letter and check digit: `.b1234567x`.
    #[must_use]
    pub fn display_form(self, stream: Stream) -> String {
        format!(".{}{}{}", stream.letter(), self.0, self.check_digit())
    }
}

impl fmt::Display for RecordNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Serialize for RecordNumber {
    /// Always a string, as in our events.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RecordNumber {
    /// Reads a JSON number or a string of digits: Sierra sends both (sierra-api.md §2.4).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = RecordNumber;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a record number as an integer or a string of digits")
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<RecordNumber, E> {
                Ok(RecordNumber(value))
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<RecordNumber, E> {
                u64::try_from(value).map(RecordNumber).map_err(|_| E::custom("a record number cannot be negative"))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<RecordNumber, E> {
                digits(value.trim()).map(RecordNumber).ok_or_else(|| E::custom("a record number must be digits only"))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn digits(text: &str) -> Option<u64> {
    let sound = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digit_of_ten_is_written_x() {
        // 1024364: 4·2 + 6·3 + 3·4 + 4·5 + 2·6 + 0·7 + 1·8 = 78, 78 mod 11 = 1; the search below finds a ten.
        let ten = (1_000_000..1_000_100).map(RecordNumber::new).find(|number| number.check_digit() == 'x');
        let number = ten.expect("one in eleven numbers has the check digit x");
        assert_eq!(RecordNumber::parse(&number.display_form(Stream::Bibs), Stream::Bibs), Ok(number));
        assert_eq!(RecordNumber::new(1_024_364).check_digit(), '1');
    }

    #[test]
    fn every_spelling_of_a_number_is_understood() {
        let number = RecordNumber::new(1_024_364);
        for text in ["1024364", "b1024364", "b10243641", ".b10243641", "b1024364a", " B10243641 "] {
            assert_eq!(RecordNumber::parse(text, Stream::Bibs), Ok(number), "{text}");
        }
        assert_eq!(RecordNumber::parse("10243641", Stream::Bibs), Ok(RecordNumber::new(10_243_641)));
    }

    #[test]
    fn other_kinds_wrong_check_digits_and_soup_are_refused() {
        assert!(matches!(
            RecordNumber::parse("i1024364", Stream::Bibs),
            Err(RecordNumberError::OtherKind { letter: 'b', .. })
        ));
        assert!(matches!(
            RecordNumber::parse("b1024364x", Stream::Bibs),
            Err(RecordNumberError::CheckDigit { expected: '1', .. })
        ));
        for text in ["", ".", "b", "bx", "12 34", "١٢٣", "b12é", "1234567890123456789", "é"] {
            assert!(RecordNumber::parse(text, Stream::Bibs).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_and_strings_decode_alike() {
        let ids: Vec<RecordNumber> = serde_json::from_str(r#"[7, "7", " 7 "]"#).expect("decodes");
        assert_eq!(ids, vec![RecordNumber::new(7); 3]);
        for bad in ["-1", "\"b7\"", "1.5", "null", "true", "\"\""] {
            assert!(serde_json::from_str::<RecordNumber>(bad).is_err(), "{bad}");
        }
    }
}
