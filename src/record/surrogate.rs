//! Lone UTF-16 surrogates in JSON escapes, replaced before anything reads them.
//!
//! A Java server can cut a text in the middle of a surrogate pair and write `\ud83d` alone. JSON allows the escape, no
//! text of Rust, XML or PostgreSQL can hold it, and one such title would spoil a page of two thousand records (BR-083).

use std::borrow::Cow;

use memchr::memmem;

/// `json` with every lone surrogate escape rewritten to `\ufffd`, and how many there were. Borrowed when there were
/// none. The text does not grow: both spellings take six bytes.
#[must_use]
pub fn replace_unpaired(json: &str) -> (Cow<'_, str>, usize) {
    // Nearly every page has no surrogate at all; two vectorised searches are far cheaper than one walk.
    let suspicious = |needle: &str| memmem::find(json.as_bytes(), needle.as_bytes()).is_some();
    if !suspicious("\\ud") && !suspicious("\\uD") {
        return (Cow::Borrowed(json), 0);
    }
    let mut repaired = String::new();
    let mut copied = 0;
    let mut count = 0;
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', json.as_bytes().get(at..).unwrap_or_default()) {
        let escape = at + offset;
        at = match unit(json, escape) {
            None => escape + 2,
            Some(0xd800..=0xdbff) if matches!(unit(json, escape + 6), Some(0xdc00..=0xdfff)) => escape + 12,
            Some(0xd800..=0xdfff) => {
                repaired.push_str(json.get(copied..escape).unwrap_or_default());
                repaired.push_str("\\ufffd");
                copied = escape + 6;
                count += 1;
                copied
            }
            Some(_) => escape + 6,
        };
    }
    if count == 0 {
        return (Cow::Borrowed(json), 0);
    }
    repaired.push_str(json.get(copied..).unwrap_or_default());
    (Cow::Owned(repaired), count)
}

/// The UTF-16 unit written at `at` as `\uXXXX`, if one is.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) { u16::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        let (text, count) = replace_unpaired(r#"["\ud83d\ude00","\ud83d","x\uDE00y","\ud83d\ud83d\ude00","\ud83dA"]"#);
        assert_eq!(text, r#"["\ud83d\ude00","\ufffd","x\ufffdy","\ufffd\ud83d\ude00","\ufffdA"]"#);
        assert_eq!(count, 4);
    }

    #[test]
    fn halves_become_the_replacement_character_and_pairs_stay() {
        for (json, expected, count) in [
            (r#""\ud83d""#, r#""\ufffd""#, 1),
            (r#""\uDE00x""#, r#""\ufffdx""#, 1),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#, 0),
            (r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#, 2),
            (r#""\\ud83d \" \ud83d""#, r#""\\ud83d \" \ufffd""#, 1),
            (r#""é \ud83d\n""#, r#""é \ufffd\n""#, 1),
            (r#""\ud7ff \ue000 \ud8""#, r#""\ud7ff \ue000 \ud8""#, 0),
            ("plain", "plain", 0),
        ] {
            let (repaired, found) = replace_unpaired(json);
            assert_eq!((repaired.as_ref(), found), (expected, count), "{json}");
            assert_eq!(matches!(repaired, Cow::Borrowed(_)), count == 0);
        }
    }

    #[test]
    fn escaped_backslashes_are_not_mistaken_for_escapes() {
        let json = r#"["\\ud83d","\\\\ud83d","\n\ud7ff"]"#;
        assert_eq!(replace_unpaired(json), (Cow::Borrowed(json), 0));
        assert_eq!(replace_unpaired(r#"["\\\ud83d"]"#), (Cow::Owned(r#"["\\\ufffd"]"#.to_owned()), 1));
    }

    #[test]
    fn broken_escapes_are_left_to_the_parser() {
        for json in [r#"["\ud"#, r#"["\ud8"]"#, r#"["\udzzz"]"#, "\"\\", "\\ud83", "é\\ué\\ud"] {
            assert_eq!(replace_unpaired(json), (Cow::Borrowed(json), 0), "{json}");
        }
    }

    proptest! {
        /// Whatever strings a page holds, what comes out is read by serde_json and differs only where it must.
        #[test]
        fn any_sequence_of_units_becomes_readable(units in proptest::collection::vec(any::<u16>(), 0..40)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let (text, _) = replace_unpaired(&json);
            let read: String = serde_json::from_str(&text).expect("reads");
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        /// BR-083: whatever escapes stand in a text, what comes out parses.
        #[test]
        fn a_repaired_text_parses(parts in proptest::collection::vec("(\\\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\n|\\\\\\\\|x|é)", 0..20)) {
            let json = format!("\"{}\"", parts.concat());
            let (repaired, _) = replace_unpaired(&json);
            prop_assert!(serde_json::from_str::<String>(&repaired).is_ok(), "{repaired}");
        }
    }
}
