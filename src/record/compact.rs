//! JSON on one line, as NDJSON needs it.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value that is written on one line, however it came.
#[derive(Debug, Clone, Copy)]
pub struct OneLine<'a>(pub &'a RawValue);

impl Serialize for OneLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if is_one_line(self.0) {
            return self.0.serialize(serializer);
        }
        let mut line = String::with_capacity(self.0.get().len());
        append_one_line(self.0, &mut line);
        RawValue::from_string(line).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Appends `value` without line breaks: as it came when it is on one line already, else without the whitespace
/// between its tokens. Strings and numbers stay letter for letter.
pub fn append_one_line(value: &RawValue, line: &mut String) {
    let text = value.get();
    if is_one_line(value) {
        line.push_str(text);
        return;
    }
    let mut rest = text;
    loop {
        // Outside strings JSON is ASCII, and a string ends at the first quote that is not escaped.
        let outside = memchr::memchr(b'"', rest.as_bytes()).unwrap_or(rest.len());
        let (tokens, string) = rest.split_at(outside);
        line.extend(tokens.chars().filter(|character| !matches!(character, ' ' | '\n' | '\r' | '\t')));
        if string.is_empty() {
            return;
        }
        let (string, after) = string.split_at(string_length(string.as_bytes()));
        line.push_str(string);
        rest = after;
    }
}

fn is_one_line(value: &RawValue) -> bool {
    memchr::memchr2(b'\n', b'\r', value.get().as_bytes()).is_none()
}

/// The length of the string literal that `text` begins with, quotes included.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(offset) if rest.get(offset) == Some(&b'"') => return at + offset + 1,
            Some(offset) => at += offset + 2,
            None => return text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_line(text: &str) -> String {
        let raw: Box<RawValue> = serde_json::from_str(text).expect("valid JSON");
        let mut line = String::new();
        append_one_line(&raw, &mut line);
        line
    }

    #[test]
    fn what_is_on_one_line_stays_letter_for_letter() {
        assert_eq!(one_line(r#"{ "a" : 1.50, "b":"x  y" }"#), r#"{ "a" : 1.50, "b":"x  y" }"#);
    }

    #[test]
    fn whitespace_goes_between_tokens_only() {
        let text = "{\n  \"a \\\" b\\\\\" : [ 1.50,\r\n\t\"é  \\n {}\" ],\n \"c\":  null\n}";
        assert_eq!(one_line(text), r#"{"a \" b\\":[1.50,"é  \n {}"],"c":null}"#);
    }

    proptest::proptest! {
        #[test]
        fn the_value_stays_the_same(keys in proptest::collection::vec("\\PC{0,5}[\"\\\\ ]{0,3}", 0..6)) {
            let value = serde_json::json!({ "keys": keys, "nested": [[], {}, { "a": keys }] });
            let line = one_line(&serde_json::to_string_pretty(&value).unwrap());
            proptest::prop_assert!(!line.contains('\n'));
            proptest::prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
        }
    }
}
