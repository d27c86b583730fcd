//! A bib as the library keeps it.

use std::sync::Arc;

use jiff::civil::Date;

use super::VarField;
use super::description::{Description, LazyDescription};
use crate::simulator::json::push_display;
use crate::simulator::site::Code;

/// A live bib.
#[derive(Debug, Clone)]
pub(crate) struct Bib {
    /// What it says.
    pub(crate) description: Arc<LazyDescription>,
    /// Fixed field 31; which values suppress is the site's choice.
    pub(crate) code3: char,
    /// Where its items are.
    pub(crate) locations: Vec<&'static Code>,
    /// Fixed field 28; an uncatalogued bib has none.
    pub(crate) catalogued: Option<Date>,
    /// Whether the export to MARC leaves it out, as with a blank MARC type (`sierra-api.md` §4.1).
    pub(crate) is_unexportable: bool,
}

impl Bib {
    /// What it says.
    pub(crate) fn description(&self) -> &Description {
        self.description.get()
    }

    /// Writes the description anew.
    pub(crate) fn describe(&mut self, description: Description) {
        self.description = Arc::new(LazyDescription::written(description));
    }
}

/// The field that repeats the record number within the record, as an overlay profile leaves it (`sierra-api.md`
/// §4.3: 935 in real records).
pub(crate) fn record_number_field(id: u64) -> VarField {
    VarField::marc(RECORD_NUMBER_TAG, "935", "  ").with('a', format!(".{}", staff_number('b', id)))
}

/// The field tag of [`record_number_field`].
pub(crate) const RECORD_NUMBER_TAG: char = 'v';

/// Appends [`record_number_field`] as the API serves it, without making it first: every bib of a page has one.
pub(crate) fn push_record_number_field(out: &mut String, id: u64) {
    out.push_str(r#"{"fieldTag":"v","marcTag":"935","ind1":" ","ind2":" ","subfields":[{"tag":"a","content":".b"#);
    push_display(out, id);
    out.push(check_digit(id));
    out.push_str("\"}]}");
}

/// A record number as staff see it: the prefix of its kind, the number, its check digit.
pub(crate) fn staff_number(prefix: char, id: u64) -> String {
    format!("{prefix}{id}{}", check_digit(id))
}

/// The check digit of a record number: weights 2, 3, 4 … from the right, modulo 11, ten written `x`.
fn check_digit(id: u64) -> char {
    let (mut rest, mut weight, mut sum) = (id, 2, 0);
    while rest > 0 {
        sum += (rest % 10) * weight;
        rest /= 10;
        weight += 1;
    }
    match sum % 11 {
        10 => 'x',
        digit => char::from(b'0' + u8::try_from(digit).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_writes_the_same_field() {
        for id in [1_000_001, 1_571_371, 9] {
            let (mut short, mut long) = (String::new(), String::new());
            push_record_number_field(&mut short, id);
            record_number_field(id).push_json(&mut long);
            assert_eq!(short, long);
        }
    }

    /// `.b15713714`, `.b15116372` and `.b47577174` stand in recorded 935 and 959 fields.
    #[test]
    fn check_digits_agree_with_recorded_numbers() {
        assert_eq!(check_digit(1_571_371), '4');
        assert_eq!(check_digit(1_511_637), '2');
        assert_eq!(check_digit(4_757_717), '4');
        assert_eq!(check_digit(1_000_001), 'x');
    }
}
