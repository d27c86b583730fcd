//! Unpaired surrogates in JSON.
//!
//! JSON can spell half a character: `"\ud83d"` alone. No text of Rust, XML or PostgreSQL can hold that, serde_json
//! refuses the whole document for it, and consumers of a raw copy fail on it one by one (BR-083).

use std::borrow::Cow;

/// `json` with every unpaired surrogate escape replaced by the escape of U+FFFD, and how many there were.
///
/// Apply it to the text of an entry whose parsing failed, then parse again and keep the repaired text as the record's
/// raw JSON too. Sound pairs and everything else stay as they are, byte for byte; without any unpaired surrogate
/// nothing is copied.
#[must_use]
pub fn replace_unpaired(json: &str) -> (Cow<'_, str>, usize) {
    let mut repaired = String::new();
    let mut copied = 0;
    let mut count = 0;
    let mut position = 0;
    while let Some(length) = json.as_bytes().get(position..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let escape = position + length;
        match surrogate_at(json, escape) {
            None => position = escape + 2,
            Some(Half::Low) => {
                splice(&mut repaired, json, &mut copied, escape);
                count += 1;
                position = escape + ESCAPE_BYTES;
            }
            Some(Half::High) => {
                if surrogate_at(json, escape + ESCAPE_BYTES) == Some(Half::Low) {
                    position = escape + 2 * ESCAPE_BYTES;
                } else {
                    splice(&mut repaired, json, &mut copied, escape);
                    count += 1;
                    position = escape + ESCAPE_BYTES;
                }
            }
        }
    }
    if count == 0 {
        return (Cow::Borrowed(json), 0);
    }
    repaired.push_str(json.get(copied..).unwrap_or_default());
    (Cow::Owned(repaired), count)
}

/// `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

fn surrogate_at(json: &str, position: usize) -> Option<Half> {
    let escape = json.as_bytes().get(position..position + ESCAPE_BYTES)?;
    let [b'\\', b'u', b'd' | b'D', second, third, fourth] = escape else { return None };
    if !third.is_ascii_hexdigit() || !fourth.is_ascii_hexdigit() {
        return None;
    }
    match second {
        b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(Half::High),
        b'c'..=b'f' | b'C'..=b'F' => Some(Half::Low),
        _ => None,
    }
}

fn splice(repaired: &mut String, json: &str, copied: &mut usize, escape: usize) {
    repaired.push_str(json.get(*copied..escape).unwrap_or_default());
    repaired.push_str("\\ufffd");
    *copied = escape + ESCAPE_BYTES;
}

#[cfg(test)]
mod tests {
    use super::*;

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

    proptest::proptest! {
        /// BR-083: whatever escapes stand in a text, what comes out parses.
        #[test]
        fn a_repaired_text_parses(parts in proptest::collection::vec("(\\\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\n|\\\\\\\\|x|é)", 0..20)) {
            let json = format!("\"{}\"", parts.concat());
            let (repaired, _) = replace_unpaired(&json);
            proptest::prop_assert!(serde_json::from_str::<String>(&repaired).is_ok(), "{repaired}");
        }
    }
}
