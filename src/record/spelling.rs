//! Record numbers as people hand them over: in files, on command lines, copied from a screen or an address bar.
//!
//! Here a check digit is never guessed away: a number that is written as Sierra displays it must have the right one, so
//! that a slip of the pen does not ask for another record.

use super::{RecordNumber, Stream};

/// Why a text is no record number of the wanted kind. No message repeats the text: it may be a patron's number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpellingError {
    /// No digits where they should be, or more than 18.
    #[error("is not a record number: expected digits such as 1234567, or {letter}1234567 with or without check digit")]
    Malformed {
        /// The letter of the wanted kind.
        letter: char,
    },
    /// A number or an address of another kind of record.
    #[error("is a record of another kind: expected {stream}")]
    OtherKind {
        /// The wanted kind.
        stream: Stream,
    },
    /// The check digit does not match.
    #[error("has a wrong check digit{}; if the number has no check digit, write it without letter", expected_text(*.expected))]
    CheckDigit {
        /// The right one; `None` where it must not be told, for patrons.
        expected: Option<char>,
    },
}

fn expected_text(expected: Option<char>) -> String {
    expected.map_or_else(String::new, |expected| format!(": expected {expected}"))
}

/// Reads any spelling of a record number of `stream`:
///
/// - `1234567`: digits alone are the number itself, of any length, without check digit;
/// - `b1234567`: a letter and up to seven digits, without check digit;
/// - `b12345678`, `b123456789`, `b1234567x`: a letter and more places, of which the last is the check digit;
/// - `.b12345678`: as Sierra displays it, always with a check digit; `a` stands for any (sierra-api.md §7 item 17);
/// - `https://…/v6/bibs/1234567` and `https://…/record=b1234567`: links to the record.
///
/// White space around it, quotation marks and a comma or semicolon behind it do not count, as in files that a
/// spreadsheet wrote.
///
/// # Errors
/// When it is none of these, of another kind, or its check digit is wrong.
pub fn spelled(text: &str, stream: Stream) -> Result<RecordNumber, SpellingError> {
    let text = text.trim_start_matches('\u{feff}').trim().trim_end_matches([',', ';']).trim().trim_matches('"').trim();
    if let Some((_, rest)) = text.split_once("://") {
        return linked(rest, stream);
    }
    let letter = stream.letter();
    let malformed = SpellingError::Malformed { letter };
    let (is_displayed, body) = text.strip_prefix('.').map_or((false, text), |body| (true, body));
    let mut places = body.chars();
    let Some(first) = places.next() else { return Err(malformed) };
    if first.is_ascii_digit() && !is_displayed {
        return digits(body).ok_or(malformed);
    }
    if !first.is_ascii_alphabetic() {
        return Err(malformed);
    }
    let rest = places.as_str();
    if !first.eq_ignore_ascii_case(&letter) {
        let is_numbered = rest.starts_with(|place: char| place.is_ascii_digit());
        return Err(if is_numbered { SpellingError::OtherKind { stream } } else { malformed });
    }
    if let Some(number) = digits(rest).filter(|_| !is_displayed && rest.len() <= 7) {
        return Ok(number);
    }
    let Some(last) = rest.chars().next_back().map(|last| last.to_ascii_lowercase()) else { return Err(malformed) };
    let Some(number) = rest.get(..rest.len() - 1).and_then(digits) else { return Err(malformed) };
    let expected = number.check_digit();
    match last {
        'a' => Ok(number),
        _ if last == expected => Ok(number),
        'x' | '0'..='9' => Err(SpellingError::CheckDigit { expected: (stream != Stream::Patrons).then_some(expected) }),
        _ => Err(malformed),
    }
}

/// `host/iii/sierra-api/v6/bibs/1234567`, `catalog/record=b1234567~S1`.
fn linked(address: &str, stream: Stream) -> Result<RecordNumber, SpellingError> {
    let malformed = SpellingError::Malformed { letter: stream.letter() };
    let path = address.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let mut segments = path.rsplit('/');
    let Some(last) = segments.next() else { return Err(malformed) };
    if let Some(record) = last.strip_prefix("record=") {
        return spelled(record.split('~').next().unwrap_or_default(), stream);
    }
    match segments.next() {
        Some(kind) if kind == stream.name() => digits(last).ok_or(malformed),
        Some(kind) if is_kind(kind) => Err(SpellingError::OtherKind { stream }),
        _ => Err(malformed),
    }
}

fn is_kind(segment: &str) -> bool {
    matches!(segment, "bibs" | "items" | "patrons" | "orders" | "holdings" | "authorities" | "volumes")
}

fn digits(text: &str) -> Option<RecordNumber> {
    let sound = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok().map(RecordNumber::new) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<u64, SpellingError> {
        spelled(text, Stream::Bibs).map(RecordNumber::value)
    }

    #[test]
    fn links_files_and_screens_are_understood() {
        for text in [
            "1024364",
            "b1024364",
            "B10243641",
            ".b10243641",
            ".b1024364a",
            "b1024364a",
            "\u{feff}\"b10243641\",",
            " 1024364 ; ",
            "https://catalog.example.edu/iii/sierra-api/v6/bibs/1024364",
            "http://catalog.example.edu/iii/sierra-api/v6/bibs/1024364/?fields=id",
            "https://catalog.example.edu/record=b1024364~S1",
        ] {
            assert_eq!(read(text), Ok(1_024_364), "{text}");
        }
    }

    #[test]
    fn other_kinds_wrong_check_digits_and_soup_are_refused() {
        let wrong = Err(SpellingError::CheckDigit { expected: Some('1') });
        for text in ["b10243642", ".b1024364x", "b1024364x"] {
            assert_eq!(read(text), wrong, "{text}");
        }
        let other = Err(SpellingError::OtherKind { stream: Stream::Bibs });
        for text in ["i1024364", ".p10243641", "https://h/iii/sierra-api/v6/items/1024364", "https://h/record=i1024364"]
        {
            assert_eq!(read(text), other, "{text}");
        }
        for text in [
            "",
            ".",
            "b",
            "bx",
            ".1024364",
            "12 34",
            "١٢٣",
            "b12é",
            "é",
            "b1024364z",
            "1234567890123456789",
            "b@site",
            "https://h/",
            "https://h/login",
            "-5",
            "1.5",
        ] {
            assert_eq!(read(text), Err(SpellingError::Malformed { letter: 'b' }), "{text}");
        }
    }

    /// PRV-1: what is said about a patron's number does not help to find it.
    #[test]
    fn nothing_is_told_of_patrons() {
        let said = spelled(".p10243642", Stream::Patrons).expect_err("wrong").to_string();
        assert!(!said.contains("1024364") && !said.contains("expected 1"), "{said}");
    }

    proptest! {
        #[test]
        fn every_spelling_of_a_number_reads_back(value in 1_000_000_u64..100_000_000, place in 0_usize..3) {
            let stream = Stream::ALL[place];
            let number = RecordNumber::new(value);
            let (letter, digit) = (stream.letter(), number.check_digit());
            let mut spellings = vec![
                value.to_string(),
                format!("{letter}{value}{digit}"),
                format!("{letter}{value}a"),
                number.display_form(stream),
                number.display_form(stream).to_uppercase(),
                format!("https://h.example/iii/sierra-api/v6/{stream}/{value}"),
            ];
            if value < 10_000_000 {
                spellings.push(format!("{letter}{value}"));
            }
            for text in spellings {
                prop_assert_eq!(spelled(&text, stream), Ok(number), "{}", text);
            }
        }

        #[test]
        fn every_other_check_digit_is_refused(value in 1_000_000_u64..100_000_000, digit in "[0-9x]") {
            prop_assume!(!digit.starts_with(RecordNumber::new(value).check_digit()));
            for text in [format!("b{value}{digit}"), format!(".b{value}{digit}")] {
                let refused = spelled(&text, Stream::Bibs);
                prop_assert!(matches!(refused, Err(SpellingError::CheckDigit { .. })), "{} {:?}", text, refused);
            }
        }

        #[test]
        fn soup_never_panics(text in "\\PC{0,30}") {
            let _read = spelled(&text, Stream::Items);
        }
    }
}
