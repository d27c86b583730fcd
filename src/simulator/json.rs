//! Writes JSON text straight into a string.
//!
//! A page of 2,000 bibs is some 14 MB; going through a tree of values would take longer than everything else here.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Appends `value` as a JSON string, quotes included.
pub(crate) fn push_string(out: &mut String, value: &str) {
    out.push('"');
    if !value.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.push_str(value);
        out.push('"');
        return;
    }
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

/// A date and time as Sierra writes it: whole seconds, `Z`. By hand, since a page holds some ten thousand of them.
pub(crate) fn push_stamp(out: &mut String, stamp: Timestamp) {
    let civil = TimeZone::UTC.to_datetime(stamp);
    out.push('"');
    push_digits(out, i32::from(civil.year()), 4);
    for (before, number) in
        [('-', civil.month()), ('-', civil.day()), ('T', civil.hour()), (':', civil.minute()), (':', civil.second())]
    {
        out.push(before);
        push_digits(out, i32::from(number), 2);
    }
    out.push_str("Z\"");
}

/// A date as Sierra writes it.
pub(crate) fn push_date(out: &mut String, date: Date) {
    out.push('"');
    push_digits(out, i32::from(date.year()), 4);
    out.push('-');
    push_digits(out, i32::from(date.month()), 2);
    out.push('-');
    push_digits(out, i32::from(date.day()), 2);
    out.push('"');
}

/// A number that is not negative, filled up with noughts to `width`.
fn push_digits(out: &mut String, number: i32, width: usize) {
    let mut digits = [b'0'; 10];
    let mut rest = number.unsigned_abs();
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        used += 1;
        rest /= 10;
        if rest == 0 && used >= width {
            break;
        }
    }
    let written = digits.get(digits.len() - used..).and_then(|digits| std::str::from_utf8(digits).ok());
    out.push_str(written.unwrap_or_default());
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
        push_date(self.key(key), value);
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
    fn dates_are_written_as_everybody_writes_them() {
        for second in [0, 951_782_399, 1_767_607_230, 4_102_444_800] {
            let stamp = Timestamp::from_second(second).unwrap();
            let (mut written, mut day) = (String::new(), String::new());
            push_stamp(&mut written, stamp);
            assert_eq!(written, format!("\"{stamp:.0}\""));
            let date = TimeZone::UTC.to_datetime(stamp).date();
            push_date(&mut day, date);
            assert_eq!(day, format!("\"{date}\""));
        }
    }

    #[test]
    fn every_character_survives_a_strict_reader() {
        let text: String = ('\0'..='\u{2ff}').chain("\u{2028}\u{10ffff}é\u{301}𝄞".chars()).collect();
        let mut out = String::new();
        push_string(&mut out, &text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
