//! Writing MARCXML.
//!
//! Escaped bytes are put together by hand: this is the hot path of every sync, and quick-xml's writer takes three
//! times as long. That the outcome is XML 1.0 follows from [`Record`]'s invariants, and tests read it back strictly.

use super::NAMESPACE;
use crate::marc::field::Field;
use crate::marc::model::Record;

/// One record as an XML document of its own without a declaration, namespace included: what an event carries.
#[must_use]
pub fn to_string(record: &Record) -> String {
    // The markup around a field and a subfield is about this long; growing step by step would cost more than writing.
    const FIELD_MARKUP: usize = 56;
    const SUBFIELD_MARKUP: usize = 32;
    let markup = 128 + record.len() * FIELD_MARKUP + record.subfield_count() * SUBFIELD_MARKUP;
    let mut target = Vec::with_capacity(record.all_text().len() + markup);
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
    let escaping = Escaping::of(record);
    for field in record.fields() {
        write_field(target, &field, escaping);
    }
    target.extend_from_slice(b"</record>");
}

fn write_field(target: &mut Vec<u8>, field: &Field<'_>, escaping: Escaping) {
    match field {
        Field::Control { tag, value } => {
            target.extend_from_slice(b"<controlfield tag=\"");
            target.extend_from_slice(tag.as_bytes());
            target.extend_from_slice(b"\">");
            write_text(target, value, escaping);
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
                write_text(target, subfield.value, escaping);
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

/// What has to be looked for in the texts of one record. One look over all of a record's text is much cheaper than one
/// at each of its hundred short values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escaping {
    /// Nothing.
    Nothing,
    /// `&`, `<` and `>`.
    Markup,
    /// Those and carriage returns.
    MarkupAndReturns,
}

impl Escaping {
    fn of(record: &Record) -> Self {
        let text = record.all_text().as_bytes();
        if memchr::memchr(b'\r', text).is_some() {
            Self::MarkupAndReturns
        } else if memchr::memchr3(b'&', b'<', b'>', text).is_some() {
            Self::Markup
        } else {
            Self::Nothing
        }
    }

    fn find(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Markup => memchr::memchr3(b'&', b'<', b'>', bytes),
            Self::MarkupAndReturns => bytes.iter().position(|byte| matches!(byte, b'&' | b'<' | b'>' | b'\r')),
        }
    }
}

/// Writes element content. A carriage return is written as a reference, since XML readers turn a bare one into a
/// line feed; `>` is escaped so that `]]>` cannot appear.
fn write_text(target: &mut Vec<u8>, text: &str, escaping: Escaping) {
    let mut rest = text.as_bytes();
    while let Some(position) = escaping.find(rest) {
        let (before, from) = rest.split_at(position);
        target.extend_from_slice(before);
        target.extend_from_slice(match from.first() {
            Some(b'&') => b"&amp;",
            Some(b'<') => b"&lt;",
            Some(b'>') => b"&gt;",
            _ => b"&#13;",
        });
        rest = from.get(1..).unwrap_or_default();
    }
    target.extend_from_slice(rest);
}
