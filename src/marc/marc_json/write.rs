//! Writing MARC-in-JSON.

use crate::marc::field::Field;
use crate::marc::model::Record;

/// One record as a JSON object.
#[must_use]
pub fn to_string(record: &Record) -> String {
    let mut target = Vec::new();
    write_record(&mut target, record);
    String::from_utf8(target).expect("only ASCII syntax and text that was a str are written")
}

/// Appends one record as a JSON object without a line end.
pub fn write_record(target: &mut Vec<u8>, record: &Record) {
    target.extend_from_slice(b"{\"leader\":\"");
    write_text(target, record.leader().as_bytes(), false);
    target.extend_from_slice(b"\",\"fields\":[");
    // One look over all of a record's text is cheaper than one at each of its hundred short values.
    let has_blanks = memchr::memchr3(b'\t', b'\n', b'\r', record.all_text().as_bytes()).is_some();
    for (position, field) in record.fields().enumerate() {
        if position > 0 {
            target.push(b',');
        }
        write_field(target, &field, has_blanks);
    }
    target.extend_from_slice(b"]}");
}

fn write_field(target: &mut Vec<u8>, field: &Field<'_>, has_blanks: bool) {
    target.extend_from_slice(b"{\"");
    target.extend_from_slice(field.tag().as_bytes());
    match field {
        Field::Control { value, .. } => {
            target.extend_from_slice(b"\":\"");
            write_text(target, value.as_bytes(), has_blanks);
            target.extend_from_slice(b"\"}");
        }
        Field::Data { indicators: [first, second], subfields, .. } => {
            target.extend_from_slice(b"\":{\"ind1\":\"");
            write_text(target, &[first.as_byte()], false);
            target.extend_from_slice(b"\",\"ind2\":\"");
            write_text(target, &[second.as_byte()], false);
            target.extend_from_slice(b"\",\"subfields\":[");
            for (position, subfield) in subfields.iter().enumerate() {
                target.extend_from_slice(if position > 0 { b",{\"" } else { b"{\"" });
                write_text(target, &[subfield.code.as_byte()], false);
                target.extend_from_slice(b"\":\"");
                write_text(target, subfield.value.as_bytes(), has_blanks);
                target.extend_from_slice(b"\"}");
            }
            target.extend_from_slice(b"]}}");
        }
    }
}

/// Writes what stands between quotes. Of the characters that JSON wants escaped, a record's text can only hold these.
fn write_text(target: &mut Vec<u8>, bytes: &[u8], has_blanks: bool) {
    let find = |bytes: &[u8]| {
        if has_blanks {
            bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\t' | b'\n' | b'\r'))
        } else {
            memchr::memchr2(b'"', b'\\', bytes)
        }
    };
    let mut rest = bytes;
    while let Some(position) = find(rest) {
        let (before, from) = rest.split_at(position);
        target.extend_from_slice(before);
        target.extend_from_slice(match from.first() {
            Some(b'"') => b"\\\"",
            Some(b'\t') => b"\\t",
            Some(b'\n') => b"\\n",
            Some(b'\r') => b"\\r",
            _ => b"\\\\",
        });
        rest = from.get(1..).unwrap_or_default();
    }
    target.extend_from_slice(rest);
}
