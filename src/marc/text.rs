//! Which characters a record's text may hold, and what happens to the others.
//!
//! The measure is XML 1.0 (its production `Char`), the narrowest of the three forms: it has no way at all to write
//! U+0000 to U+001F (tab, line feed and carriage return apart), U+FFFE and U+FFFF. Writers that let them through make
//! files that no conforming parser reads (BR-083). The ISO 2709 delimiters are among them, so no text can break out
//! of its field in that form either.

use super::settings::OnIllegal;

/// Whether XML 1.0 can hold `character`.
#[must_use]
pub fn is_legal(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// What was found in a text by [`clean_onto`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// How many characters XML 1.0 forbids.
    pub(super) illegal: u64,
    /// The first few of them, each once.
    pub(super) examples: Vec<char>,
    /// How many U+FFFD: text that was damaged before it reached us.
    pub(super) damaged: u64,
}

impl Findings {
    /// For people: `3 characters: U+0007, U+FFFE`. Escapes are how MARC-8 changes its character set; whether they are
    /// that here, nobody can tell.
    pub(super) fn describe_illegal(&self) -> String {
        let examples: Vec<String> = self.examples.iter().map(|&character| code_point(character)).collect();
        let guess = if self.examples.contains(&'\u{1b}') { "; perhaps the text around is MARC-8" } else { "" };
        format!("{}: {}{guess}", count(self.illegal, "character"), examples.join(", "))
    }
}

/// A code point as Unicode writes it: `U+0007`.
pub(super) fn code_point(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

/// A number with its noun: `1 byte`, `2 bytes`.
pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// How many different characters [`Findings`] names.
const MAX_EXAMPLES: usize = 4;

/// Appends `text` to `target` without what XML 1.0 forbids: left out, or replaced by U+FFFD.
/// `OnIllegal::Quarantine` leaves out as well; its caller looks at the findings and gives the record up.
pub(super) fn clean_onto(target: &mut String, text: &str, policy: OnIllegal) -> Findings {
    let mut findings = Findings::default();
    if !is_suspect(text.as_bytes()) {
        target.push_str(text);
        return findings;
    }
    for character in text.chars() {
        if is_legal(character) {
            findings.damaged += u64::from(character == char::REPLACEMENT_CHARACTER);
            target.push(character);
            continue;
        }
        findings.illegal += 1;
        if findings.examples.len() < MAX_EXAMPLES && !findings.examples.contains(&character) {
            findings.examples.push(character);
        }
        if policy == OnIllegal::Replace {
            target.push(char::REPLACEMENT_CHARACTER);
        }
    }
    findings
}

/// Whether UTF-8 `bytes` may hold something to look at: `false` is certain, `true` is not.
pub(super) fn is_suspect(bytes: &[u8]) -> bool {
    look(bytes, 0x20)
}

/// Like [`is_suspect`] for the data of an ISO 2709 record, where field (1E) and subfield (1F) delimiters are at home.
pub(super) fn is_suspect_besides_delimiters(bytes: &[u8]) -> bool {
    look(bytes, 0x1E)
}

/// The first look has no branches, so that it compiles to vector code. U+FFFD to U+FFFF begin with the bytes EF BF;
/// ligatures and presentation forms share the first of them, so that it alone proves nothing.
fn look(bytes: &[u8], first_legal: u8) -> bool {
    let (has_control, has_ef) = bytes.iter().fold((false, false), |(has_control, has_ef), &byte| {
        let is_control = (byte < first_legal) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r');
        (has_control | is_control, has_ef | (byte == 0xEF))
    });
    has_control || (has_ef && memchr::memmem::find(bytes, b"\xEF\xBF").is_some())
}

/// `text` for an error or a loss: in quotes, escaped, and at most 80 bytes long.
pub(super) fn quote(text: &str) -> String {
    const ROOM: usize = 75;
    let mut quoted = String::with_capacity(text.len().min(ROOM) + 5);
    quoted.push('"');
    for character in text.chars() {
        let before = quoted.len();
        quoted.extend(character.escape_debug());
        if quoted.len() > ROOM {
            quoted.truncate(before);
            quoted.push('…');
            break;
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str, policy: OnIllegal) -> (String, Findings) {
        let mut target = String::new();
        let findings = clean_onto(&mut target, text, policy);
        (target, findings)
    }

    /// BR-083.
    #[test]
    fn what_xml_forbids_is_dropped_or_replaced_and_counted() {
        let text = "a\u{0}b\u{1f}\u{1f}c\u{fffe}\u{ffff}\td\r\n";
        let (dropped, findings) = clean(text, OnIllegal::Drop);
        assert_eq!(dropped, "abc\td\r\n");
        assert_eq!(findings.describe_illegal(), "5 characters: U+0000, U+001F, U+FFFE, U+FFFF");
        assert_eq!(clean(text, OnIllegal::Replace).0, "a\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}\u{fffd}\td\r\n");
    }

    #[test]
    fn every_character_is_judged_as_the_xml_recommendation_does() {
        let forbidden: Vec<u32> =
            (0..=0x10FFFF).filter(|&point| char::from_u32(point).is_some_and(|c| !is_legal(c))).collect();
        let expected: Vec<u32> = (0..0x20).filter(|p| ![9, 10, 13].contains(p)).chain([0xFFFE, 0xFFFF]).collect();
        assert_eq!(forbidden, expected);
        for &point in &forbidden {
            let text: String = char::from_u32(point).into_iter().collect();
            assert!(is_suspect(text.as_bytes()), "U+{point:04X} must not pass the quick look");
        }
    }

    #[test]
    fn damage_that_came_in_is_seen_and_left_as_it_is() {
        let (text, findings) = clean("caf\u{fffd}", OnIllegal::Drop);
        assert_eq!((text.as_str(), findings.damaged, findings.illegal), ("caf\u{fffd}", 1, 0));
        assert!(clean("ｆｕｌｌ　ｗｉｄｔｈ", OnIllegal::Drop).1 == Findings::default());
    }

    #[test]
    fn quotes_never_exceed_eighty_bytes() {
        for text in ["x".repeat(200_000), "\u{1}".repeat(500), "漢".repeat(90), "a\"b".into(), String::new()] {
            let quoted = quote(&text);
            assert!(quoted.len() <= 80, "{} bytes", quoted.len());
            assert!(quoted.starts_with('"') && quoted.ends_with('"'));
        }
        assert_eq!(quote("a\"\u{7}"), r#""a\"\u{7}""#);
    }
}
