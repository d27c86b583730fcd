//! Writes JSON text straight into a string.
//!
//! A page of 2,000 bibs is some 14 MB; going through a tree of values would take longer than everything else here.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::Date;

/// Appends `value` as a JSON string, quotes included.
pub(crate) fn push_string(out: &mut String, value: &str) {
    out.push('"');
    let mut clean_from = 0;
    for (position, byte) in value.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(value.get(clean_from..position).unwrap_or_default());
        if escape.is_empty() {
            push_display(out, format_args!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        clean_from = position + 1;
    }
    out.push_str(value.get(clean_from..).unwrap_or_default());
    out.push('"');
}

/// Appends whatever `value` displays as.
pub(crate) fn push_display(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("writing into a string cannot fail");
}

/// A date and time as Sierra writes it: whole seconds, `Z`.
pub(crate) fn push_stamp(out: &mut String, stamp: Timestamp) {
    push_display(out, format_args!("\"{stamp:.0}\""));
}

/// An object being written; [`Object::close`] ends it.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Opens an object at the end of `out`.
    pub(crate) fn open(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Writes the key and hands out the buffer, into which exactly one value must be written.
    pub(crate) fn key(&mut self, key: &str) -> &mut String {
        if !self.is_empty {
            self.out.push(',');
        }
        self.is_empty = false;
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        self.out
    }

    /// A text.
    pub(crate) fn string(&mut self, key: &str, value: &str) {
        push_string(self.key(key), value);
    }

    /// A number, or anything else that displays as JSON.
    pub(crate) fn display(&mut self, key: &str, value: impl std::fmt::Display) {
        push_display(self.key(key), value);
    }

    /// A date and time.
    pub(crate) fn stamp(&mut self, key: &str, value: Timestamp) {
        push_stamp(self.key(key), value);
    }

    /// A date.
    pub(crate) fn date(&mut self, key: &str, value: Date) {
        push_display(self.key(key), format_args!("\"{value}\""));
    }

    /// An object within this one.
    pub(crate) fn object(&mut self, key: &str) -> Object<'_> {
        Object::open(self.key(key))
    }

    /// An array of texts.
    pub(crate) fn strings<'v>(&mut self, key: &str, values: impl IntoIterator<Item = &'v str>) {
        push_array(self.key(key), values, push_string);
    }

    /// Ends the object.
    pub(crate) fn close(self) {
        self.out.push('}');
    }
}

/// Appends an array whose elements `push` writes.
pub(crate) fn push_array<T>(
    out: &mut String,
    values: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (position, value) in values.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        push(out, value);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_survives_a_strict_reader() {
        let text: String = ('\0'..='\u{2ff}').chain("\u{2028}\u{10ffff}é\u{301}𝄞".chars()).collect();
        let mut out = String::new();
        push_string(&mut out, &text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
