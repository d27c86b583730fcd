//! Fixed-length fields: an object keyed by field number, with a label that each site may change.

use jiff::Timestamp;

use super::super::super::json::{Object, push_display, push_stamp, push_string};
use super::super::super::switches::Labels;
use super::Form;

/// The object of fixed fields being written.
pub(super) struct FixedFields<'a, 'o> {
    object: &'a mut Object<'o>,
    labels: Labels,
}

impl<'a, 'o> FixedFields<'a, 'o> {
    /// Writes into `object`.
    pub(super) fn new(object: &'a mut Object<'o>, form: &Form<'_>) -> Self {
        Self { object, labels: form.switches.labels }
    }

    fn field(&mut self, number: u16, label: &str, push_value: impl FnOnce(&mut String), display: Option<&str>) {
        let out = self.object.key(digits(number, &mut [0; 5]));
        let mut field = Object::open(out);
        match self.labels {
            Labels::Recorded => field.string("label", label),
            Labels::Local => field.display("label", format_args!("\"Feld {number}\"")),
            Labels::Absent => {}
        }
        push_value(field.key("value"));
        if let Some(display) = display {
            field.string("display", display);
        }
        field.close();
    }

    /// A code or another text.
    pub(super) fn text(&mut self, number: u16, label: &str, value: &str) {
        self.field(number, label, |out| push_string(out, value), None);
    }

    /// A code with what it stands for.
    pub(super) fn shown(&mut self, number: u16, label: &str, value: &str, display: &str) {
        self.field(number, label, |out| push_string(out, value), Some(display));
    }

    /// A number or a boolean.
    pub(super) fn plain(&mut self, number: u16, label: &str, value: impl std::fmt::Display) {
        self.field(number, label, |out| push_display(out, value), None);
    }

    /// A number that Sierra writes as a text.
    pub(super) fn quoted(&mut self, number: u16, label: &str, value: impl std::fmt::Display) {
        self.plain(number, label, format_args!("\"{value}\""));
    }

    /// A date and time.
    pub(super) fn stamp(&mut self, number: u16, label: &str, value: Timestamp) {
        self.field(number, label, |out| push_stamp(out, value), None);
    }
}

fn digits(number: u16, buffer: &mut [u8; 5]) -> &str {
    let mut rest = number;
    let mut start = buffer.len();
    for (position, digit) in buffer.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        start = position;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    buffer.get(start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_leading_noughts() {
        for number in [0, 7, 24, 107, 264, u16::MAX] {
            assert_eq!(digits(number, &mut [0; 5]), number.to_string());
        }
    }
}
