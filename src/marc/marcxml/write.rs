//! Writing MARCXML.
//!
//! Escaped bytes are put together by hand: this is the hot path of every sync, and quick-xml's writer takes three
//! times as long. That the outcome is XML 1.0 follows from [`Record`]'s invariants, and tests read it back strictly.

use super::NAMESPACE;
use crate::marc::model::{Field, Record};

/// One record as an XML document of its own without a declaration, namespace included: what an event carries.
#[must_use]
pub fn to_string(record: &Record) -> String {
    let mut target = Vec::new();
    write_record(&mut target, record, Namespace::Declared);
    String::from_utf8(target).expect("only ASCII markup and text that was a str are written")
}

/// Whether a `<record>` declares the namespace itself or stands in a collection that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// `<record xmlns="…">`.
    Declared,
    /// `<record>`.
    Inherited,
}

/// Appends one `<record>` without a line end.
pub fn write_record(target: &mut Vec<u8>, record: &Record, namespace: Namespace) {
    target.extend_from_slice(b"<record");
    if namespace == Namespace::Declared {
        target.extend_from_slice(b" xmlns=\"");
        target.extend_from_slice(NAMESPACE.as_bytes());
        target.push(b'"');
    }
    target.extend_from_slice(b"><leader>");
    target.extend_from_slice(record.leader().as_bytes());
    target.extend_from_slice(b"</leader>");
    for field in record.fields() {
        write_field(target, &field);
    }
    target.extend_from_slice(b"</record>");
}

fn write_field(target: &mut Vec<u8>, field: &Field<'_>) {
    match field {
        Field::Control { tag, value } => {
            target.extend_from_slice(b"<controlfield tag=\"");
            target.extend_from_slice(tag.as_bytes());
            target.extend_from_slice(b"\">");
            write_text(target, value);
            target.extend_from_slice(b"</controlfield>");
        }
        Field::Data { tag, indicators: [first, second], subfields } => {
            target.extend_from_slice(b"<datafield tag=\"");
            target.extend_from_slice(tag.as_bytes());
            target.extend_from_slice(b"\" ind1=\"");
            write_attribute(target, first.as_byte());
            target.extend_from_slice(b"\" ind2=\"");
            write_attribute(target, second.as_byte());
            target.extend_from_slice(b"\">");
            for subfield in subfields.iter() {
                target.extend_from_slice(b"<subfield code=\"");
                write_attribute(target, subfield.code.as_byte());
                target.extend_from_slice(b"\">");
                write_text(target, subfield.value);
                target.extend_from_slice(b"</subfield>");
            }
            target.extend_from_slice(b"</datafield>");
        }
    }
}

/// Writes one printable ASCII character inside double quotes.
fn write_attribute(target: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => target.extend_from_slice(b"&quot;"),
        b'&' => target.extend_from_slice(b"&amp;"),
        b'<' => target.extend_from_slice(b"&lt;"),
        b'>' => target.extend_from_slice(b"&gt;"),
        _ => target.push(byte),
    }
}

/// Writes element content. A carriage return is written as a reference, since XML readers turn a bare one into a
/// line feed; `>` is escaped so that `]]>` cannot appear.
fn write_text(target: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (position, byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'\r' => b"&#13;",
            _ => continue,
        };
        target.extend_from_slice(bytes.get(written..position).unwrap_or_default());
        target.extend_from_slice(escape);
        written = position + 1;
    }
    target.extend_from_slice(bytes.get(written..).unwrap_or_default());
}
