//! Writing MARC-in-JSON.

use crate::marc::model::{Field, Record};

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
    write_text(target, record.leader().as_bytes());
    target.extend_from_slice(b"\",\"fields\":[");
    for (position, field) in record.fields().enumerate() {
        if position > 0 {
            target.push(b',');
        }
        write_field(target, &field);
    }
    target.extend_from_slice(b"]}");
}

fn write_field(target: &mut Vec<u8>, field: &Field<'_>) {
    target.extend_from_slice(b"{\"");
    target.extend_from_slice(field.tag().as_bytes());
    match field {
        Field::Control { value, .. } => {
            target.extend_from_slice(b"\":\"");
            write_text(target, value.as_bytes());
            target.extend_from_slice(b"\"}");
        }
        Field::Data { indicators: [first, second], subfields, .. } => {
            target.extend_from_slice(b"\":{\"ind1\":\"");
            write_text(target, &[first.as_byte()]);
            target.extend_from_slice(b"\",\"ind2\":\"");
            write_text(target, &[second.as_byte()]);
            target.extend_from_slice(b"\",\"subfields\":[");
            for (position, subfield) in subfields.iter().enumerate() {
                target.extend_from_slice(if position > 0 { b",{\"" } else { b"{\"" });
                write_text(target, &[subfield.code.as_byte()]);
                target.extend_from_slice(b"\":\"");
                write_text(target, subfield.value.as_bytes());
                target.extend_from_slice(b"\"}");
            }
            target.extend_from_slice(b"]}}");
        }
    }
}

/// Writes what stands between quotes. Of the characters that JSON wants escaped, a record's text can only hold these.
fn write_text(target: &mut Vec<u8>, bytes: &[u8]) {
    let mut written = 0;
    for (position, byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            _ => continue,
        };
        target.extend_from_slice(bytes.get(written..position).unwrap_or_default());
        target.extend_from_slice(escape);
        written = position + 1;
    }
    target.extend_from_slice(bytes.get(written..).unwrap_or_default());
}
