//! Writing ISO 2709.

use super::{
    ENTRY_BYTES, FIELD_TERMINATOR, LEADER_BYTES, MAX_FIELD_BYTES, MAX_RECORD_BYTES, RECORD_TERMINATOR,
    SUBFIELD_DELIMITER,
};
use crate::marc::field::Field;
use crate::marc::leader::digits;
use crate::marc::model::Record;
use crate::marc::tag::Tag;

/// Why a record has no ISO 2709 form. Writers that go on regardless lose items or shift the leader (BR-081, BR-082).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DoesNotFit {
    /// One field is too long.
    #[error("field {tag} has {bytes} bytes and ISO 2709 allows {MAX_FIELD_BYTES}: write MARCXML or MARC-in-JSON")]
    Field {
        /// Its tag.
        tag: Tag,
        /// Its length with indicators and delimiters.
        bytes: usize,
    },
    /// There is no field at all: 26 bytes that readers take for a damaged record.
    #[error("the record has no field, and readers of ISO 2709 refuse such a record: write MARCXML or MARC-in-JSON")]
    Empty,
    /// The record as a whole is too long.
    #[error("the record has {bytes} bytes and ISO 2709 allows {MAX_RECORD_BYTES}: write MARCXML or MARC-in-JSON")]
    Record {
        /// Its length.
        bytes: usize,
    },
}

/// Appends one record.
///
/// # Errors
/// When a field or the record does not fit, or there is no field. Nothing is truncated, and nothing has been appended then.
pub fn write_record(target: &mut Vec<u8>, record: &Record) -> Result<(), DoesNotFit> {
    if record.is_empty() {
        return Err(DoesNotFit::Empty);
    }
    let mut data_bytes = 0;
    for field in record.fields() {
        let bytes = field_bytes(&field);
        if bytes > MAX_FIELD_BYTES {
            return Err(DoesNotFit::Field { tag: field.tag(), bytes });
        }
        data_bytes += bytes;
    }
    let base_address = LEADER_BYTES + record.len() * ENTRY_BYTES + 1;
    let record_bytes = base_address + data_bytes + 1;
    if record_bytes > MAX_RECORD_BYTES {
        return Err(DoesNotFit::Record { bytes: record_bytes });
    }
    target.reserve(record_bytes);
    target.extend_from_slice(record.leader().with_lengths(record_bytes, base_address).as_bytes());
    let mut start = 0;
    for field in record.fields() {
        let bytes = field_bytes(&field);
        target.extend_from_slice(field.tag().as_bytes());
        target.extend_from_slice(&digits::<4>(bytes));
        target.extend_from_slice(&digits::<5>(start));
        start += bytes;
    }
    target.push(FIELD_TERMINATOR);
    for field in record.fields() {
        write_field(target, &field);
    }
    target.push(RECORD_TERMINATOR);
    Ok(())
}

fn field_bytes(field: &Field<'_>) -> usize {
    match field {
        Field::Control { value, .. } => value.len() + 1,
        Field::Data { subfields, .. } => 3 + subfields.iter().map(|subfield| 2 + subfield.value.len()).sum::<usize>(),
    }
}

fn write_field(target: &mut Vec<u8>, field: &Field<'_>) {
    match field {
        Field::Control { value, .. } => target.extend_from_slice(value.as_bytes()),
        Field::Data { indicators: [first, second], subfields, .. } => {
            target.extend_from_slice(&[first.as_byte(), second.as_byte()]);
            for subfield in subfields.iter() {
                target.extend_from_slice(&[SUBFIELD_DELIMITER, subfield.code.as_byte()]);
                target.extend_from_slice(subfield.value.as_bytes());
            }
        }
    }
    target.push(FIELD_TERMINATOR);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marc::{Indicator, Leader, SubfieldCode};

    fn record_with(values: &[&str]) -> Record {
        let mut record = Record::new(Leader::default());
        for value in values {
            record.push_data(Tag::new("500").unwrap(), [Indicator::BLANK; 2], [(SubfieldCode::A, *value)]).unwrap();
        }
        record
    }

    #[test]
    fn lengths_are_bytes_and_the_leader_says_utf8() {
        let mut record = Record::new(Leader::read("99999cas  4299999 i 4500").0);
        record.push_control(Tag::CONTROL_NUMBER, "é1").unwrap();
        record.push_data(Tag::new("245").unwrap(), [Indicator::BLANK; 2], [(SubfieldCode::A, "漢")]).unwrap();
        let mut target = Vec::new();
        write_record(&mut target, &record).unwrap();
        let expected = "00062cas a2200049 i 4500001000400000245000800004\u{1e}é1\u{1e}  \u{1f}a漢\u{1e}\u{1d}";
        assert_eq!(String::from_utf8(target).unwrap(), expected);
    }

    #[test]
    fn a_record_without_fields_is_refused() {
        let mut target = Vec::new();
        assert_eq!(write_record(&mut target, &record_with(&[])), Err(DoesNotFit::Empty));
        assert!(target.is_empty());
    }

    /// BR-082: the last byte that fits is written, the first that does not is refused, and nothing is cut.
    #[test]
    fn a_field_of_9999_bytes_fits_and_one_more_is_refused() {
        let mut target = Vec::new();
        write_record(&mut target, &record_with(&[&"x".repeat(9_999 - 5)])).unwrap();
        let before = target.len();
        let refused = write_record(&mut target, &record_with(&["first", &"x".repeat(9_999 - 4)]));
        assert_eq!(refused, Err(DoesNotFit::Field { tag: Tag::new("500").unwrap(), bytes: 10_000 }));
        assert_eq!(target.len(), before, "a refused record leaves no trace");
    }

    /// BR-082.
    #[test]
    fn a_record_of_99999_bytes_fits_and_one_more_is_refused() {
        let fixed = 24 + 11 * 12 + 1 + 1 + 11 * 5;
        let rest = 99_999 - fixed - 10 * 9_000;
        let parts = |last: usize| {
            let mut values = vec!["y".repeat(9_000); 10];
            values.push("z".repeat(last));
            values
        };
        let build = |last| record_with(&parts(last).iter().map(String::as_str).collect::<Vec<_>>());
        let mut target = Vec::new();
        write_record(&mut target, &build(rest)).unwrap();
        assert_eq!((target.len(), &target[..5]), (99_999, &b"99999"[..]));
        assert_eq!(write_record(&mut target, &build(rest + 1)), Err(DoesNotFit::Record { bytes: 100_000 }));
        assert_eq!(target.len(), 99_999);
    }
}
