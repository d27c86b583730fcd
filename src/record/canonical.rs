//! The canonical form of a JSON value: the same bytes for the same value, whatever its key order and whitespace.
//!
//! For hashing only: it is not JSON. Strings are unescaped; numbers stay as they were written, so that `1.0` and `1`
//! differ. Every value begins with a byte that tells its kind and ends where its length or a closing byte says, so
//! that no two values share a form.

use std::ops::Range;

use serde_json::value::RawValue;

/// How deep values are looked into. What lies deeper is taken as it is written: equal texts are still equal.
const DEPTH_LIMIT: usize = 96;

/// Makes canonical forms; keeps its scratch space between calls.
#[derive(Debug, Default)]
pub struct Canonicalizer {
    members: Vec<Member>,
    sorted: Vec<u8>,
}

/// Tells by its key whether a member of the outermost object is left out.
type LeaveOut<'a> = Option<&'a dyn Fn(&[u8]) -> bool>;

/// A member of an object, as ranges of the output.
#[derive(Debug)]
struct Member {
    key: Range<usize>,
    end: usize,
    start: usize,
}

impl Canonicalizer {
    /// Appends the canonical form of `value` to `form`.
    pub fn append(&mut self, value: &RawValue, form: &mut Vec<u8>) {
        let mut text = Text { bytes: value.get().as_bytes(), at: 0 };
        self.value(&mut text, 0, None, form);
    }

    /// Like [`Canonicalizer::append`], but if `value` is an object, without the members whose key `leave_out` names.
    pub fn append_without(&mut self, value: &RawValue, leave_out: impl Fn(&[u8]) -> bool, form: &mut Vec<u8>) {
        let mut text = Text { bytes: value.get().as_bytes(), at: 0 };
        self.value(&mut text, 0, Some(&leave_out), form);
    }

    /// Appends the canonical form of a string.
    pub fn append_str(text: &str, form: &mut Vec<u8>) {
        form.push(b's');
        append_sized(text.as_bytes(), form);
    }

    fn value(&mut self, text: &mut Text<'_>, depth: usize, leave_out: LeaveOut<'_>, form: &mut Vec<u8>) {
        match text.peek() {
            Some(b'{' | b'[') if depth >= DEPTH_LIMIT => {
                form.push(b'r');
                append_sized(text.nested(), form);
            }
            Some(b'{') => self.object(text, depth, leave_out, form),
            Some(b'[') => self.array(text, depth, form),
            Some(b'"') => text.string(form),
            Some(_) => {
                // A number or a literal; neither needs more than its own letters.
                form.push(b'n');
                append_sized(text.word(), form);
            }
            None => {}
        }
    }

    fn array(&mut self, text: &mut Text<'_>, depth: usize, form: &mut Vec<u8>) {
        form.push(b'[');
        text.skip(1);
        loop {
            match text.peek() {
                Some(b']') | None => break,
                Some(b',') => text.skip(1),
                Some(_) => self.value(text, depth + 1, None, form),
            }
        }
        text.skip(1);
        form.push(b']');
    }

    fn object(&mut self, text: &mut Text<'_>, depth: usize, leave_out: LeaveOut<'_>, form: &mut Vec<u8>) {
        form.push(b'{');
        let (first_member, first_byte) = (self.members.len(), form.len());
        text.skip(1);
        loop {
            match text.peek() {
                Some(b'}') | None => break,
                Some(b',') => text.skip(1),
                Some(_) => {
                    let start = form.len();
                    text.string(form);
                    // One byte of kind and four of length stand before the key.
                    let key = start + 5..form.len();
                    if text.peek() == Some(b':') {
                        text.skip(1);
                    }
                    let left_out = leave_out.is_some_and(|leave_out| form.get(key.clone()).is_some_and(leave_out));
                    self.value(text, depth + 1, None, form);
                    if left_out {
                        form.truncate(start);
                    } else {
                        self.members.push(Member { key, start, end: form.len() });
                    }
                }
            }
        }
        text.skip(1);
        self.sort(first_member, first_byte, form);
        form.push(b'}');
    }

    /// Puts the members of the innermost object into the order of their keys; of equal keys the last one stays, as
    /// JSON readers do.
    fn sort(&mut self, first_member: usize, first_byte: usize, form: &mut Vec<u8>) {
        let members = self.members.get_mut(first_member..).unwrap_or_default();
        let key = |member: &Member| form.get(member.key.clone()).unwrap_or_default();
        if !members.is_sorted_by(|a, b| key(a) < key(b)) {
            members.sort_by(|a, b| key(a).cmp(key(b)));
            self.sorted.clear();
            for (index, member) in members.iter().enumerate() {
                if members.get(index + 1).is_some_and(|next| key(next) == key(member)) {
                    continue;
                }
                self.sorted.extend_from_slice(form.get(member.start..member.end).unwrap_or_default());
            }
            form.truncate(first_byte);
            form.extend_from_slice(&self.sorted);
        }
        self.members.truncate(first_member);
    }
}

/// A reader over valid JSON. It never fails: `RawValue` holds nothing else.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    /// The next byte that is not whitespace.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// A number or literal.
    fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t' | b'"');
        let length = rest.iter().position(ends).unwrap_or(rest.len()).max(1);
        self.skip(length);
        rest.get(..length).unwrap_or(rest)
    }

    /// A whole array or object as it is written.
    fn nested(&mut self) -> &'a [u8] {
        let start = self.at;
        let mut open = 0_usize;
        let mut unescaped = Vec::new();
        loop {
            match self.peek() {
                Some(b'{' | b'[') => open += 1,
                Some(b'}' | b']') => open = open.saturating_sub(1),
                Some(b'"') => {
                    unescaped.clear();
                    self.string(&mut unescaped);
                    continue;
                }
                Some(_) => {}
                None => break,
            }
            self.skip(1);
            if open == 0 {
                break;
            }
        }
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// Appends the string that begins here, unescaped.
    fn string(&mut self, form: &mut Vec<u8>) {
        self.skip(1);
        form.push(b's');
        // Nearly every string is short and has no escape: a plain loop then beats a search that warms up.
        let rest = self.rest();
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
        if rest.get(length) == Some(&b'"') {
            append_sized(rest.get(..length).unwrap_or_default(), form);
            self.skip(length + 1);
            return;
        }
        let size_at = form.len();
        form.extend_from_slice(&[0; 4]);
        loop {
            let rest = self.rest();
            let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            form.extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.skip(plain + 1);
            if rest.get(plain) != Some(&b'\\') {
                break;
            }
            self.escape(form);
        }
        let size = u32::try_from(form.len() - size_at - 4).unwrap_or(u32::MAX);
        if let Some(place) = form.get_mut(size_at..size_at + 4) {
            place.copy_from_slice(&size.to_le_bytes());
        }
    }

    fn escape(&mut self, form: &mut Vec<u8>) {
        let kind = self.bytes.get(self.at).copied().unwrap_or(b'"');
        self.skip(1);
        match kind {
            b'b' => form.push(8),
            b'f' => form.push(12),
            b'n' => form.push(b'\n'),
            b'r' => form.push(b'\r'),
            b't' => form.push(b'\t'),
            b'u' => self.unicode_escape(form),
            itself => form.push(itself),
        }
    }

    fn unicode_escape(&mut self, form: &mut Vec<u8>) {
        let first = self.four_digits();
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with(b"\\u") {
            let before = self.at;
            self.skip(2);
            let second = self.four_digits();
            if (0xdc00..0xe000).contains(&second) {
                append_char(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), form);
                return;
            }
            self.at = before;
        }
        append_char(first, form);
    }

    fn four_digits(&mut self) -> u32 {
        let digits = self.rest().get(..4).unwrap_or_default();
        self.skip(4);
        digits.iter().fold(0, |value, digit| value * 16 + char::from(*digit).to_digit(16).unwrap_or(0))
    }
}

fn append_sized(bytes: &[u8], form: &mut Vec<u8>) {
    form.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    form.extend_from_slice(bytes);
}

/// A half of a surrogate pair that stands alone has no character; three bytes that no valid text has stand for it.
fn append_char(code: u32, form: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(character) => form.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let [_, _, high, low] = code.to_be_bytes();
            form.extend_from_slice(&[0xff, high, low]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn canonical(text: &str) -> Vec<u8> {
        let raw: Box<RawValue> = serde_json::from_str(text).expect("valid JSON");
        let mut form = Vec::new();
        Canonicalizer::default().append(&raw, &mut form);
        form
    }

    #[test]
    fn key_order_whitespace_and_escapes_do_not_count() {
        let forms = [
            r#"{"a":[1,{"x":null,"y":true}],"é/":"\u00e9\n\ud83d\ude00"}"#,
            "{ \"\\u00e9\\/\" :\t\"é\\n😀\" ,\r\n \"a\": [ 1 , { \"y\" : true, \"x\" : null } ] }",
        ];
        assert_eq!(canonical(forms[0]), canonical(forms[1]));
    }

    #[test]
    fn values_that_differ_have_forms_that_differ() {
        let texts = [
            "null",
            "\"null\"",
            "true",
            "1",
            "1.0",
            "1e0",
            "10",
            "\"1\"",
            "[]",
            "{}",
            "[[]]",
            "[1]",
            "[1,1]",
            "[11]",
            "[\"a\",\"b\"]",
            "[\"ab\"]",
            "[\"b\",\"a\"]",
            "{\"a\":1}",
            "{\"a\":\"1\"}",
            "{\"a\":1,\"b\":2}",
            "{\"a\":2,\"b\":1}",
            "{\"a\":{\"b\":1}}",
            "[{\"a\":1},{\"b\":1}]",
            "[{\"a\":1,\"b\":1}]",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ufffd\"",
            "\"\"",
            "\"]\"",
            "[\"]\"]",
        ];
        let mut forms: Vec<Vec<u8>> = texts.iter().map(|text| canonical(text)).collect();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), texts.len());
    }

    #[test]
    fn of_a_repeated_key_the_last_one_counts() {
        assert_eq!(canonical(r#"{"a":1,"b":2,"a":3}"#), canonical(r#"{"b":2,"a":3}"#));
        assert_eq!(canonical(r#"{"a":1,"a":3}"#), canonical(r#"{"a":3}"#));
    }

    #[test]
    fn left_out_members_do_not_count_but_those_below_do() {
        let form = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            let mut form = Vec::new();
            Canonicalizer::default().append_without(&raw, |key| key == b"84", &mut form);
            form
        };
        assert_eq!(form(r#"{"84":{"value":1},"31":2}"#), form(r#"{"31":2,"84":[9]}"#));
        assert_ne!(form(r#"{"31":{"84":1}}"#), form(r#"{"31":{"84":2}}"#));
    }

    #[test]
    fn very_deep_values_are_taken_as_they_are_written() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(canonical(&deep(r#""]""#)), canonical(&deep(r#""]""#)));
        assert_ne!(canonical(&deep("1")), canonical(&deep("2")));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,6}|[\"\\\\/\n\u{e9}]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-c\"é]{0,2}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_has_one_form_however_it_is_written(value in values(), other in values()) {
            let compact = canonical(&value.to_string());
            prop_assert_eq!(&compact, &canonical(&serde_json::to_string_pretty(&value).unwrap()));
            prop_assert_eq!(&compact, &canonical(&shuffled(&value)));
            prop_assert_eq!(compact == canonical(&other.to_string()), value == other);
        }
    }

    /// Writes `value` with the members of every object in reverse, and everything but ASCII letters escaped.
    fn shuffled(value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .rev()
                    .map(|(key, value)| format!("{}: {}", shuffled(&json!(key)), shuffled(value)))
                    .collect();
                format!("{{{}\n}}", members.join(" ,"))
            }
            Value::Array(values) => format!("[ {} ]", values.iter().map(shuffled).collect::<Vec<_>>().join(",\t")),
            Value::String(text) => {
                let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
                format!("\"{units}\"")
            }
            other => other.to_string(),
        }
    }
}
