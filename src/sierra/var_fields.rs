//! varFields read in one go from a value that is known to be JSON.
//!
//! They are three quarters of a page, and by now a parser has been over them once: what is between two quotes is known
//! to be text, and brackets are known to match. So this reader only looks for the next quote. It knows the shape that
//! Sierra sends and nothing else: at the first surprise it gives up, and [`super::fields`] reads the whole list with
//! care. What it does read comes to the same; a test holds the two against each other.

use std::borrow::Cow;

use compact_str::CompactString;
use serde_json::value::RawValue;

use crate::record::{Subfield, VarField};

/// The room that usual lists need: growing step by step costs a good part of the time that reading takes.
const USUAL_FIELDS: usize = 40;
const USUAL_SUBFIELDS: usize = 4;

/// The variable fields in order; `None` when anything about them is unusual.
pub(super) fn read(raw: &RawValue) -> Option<Vec<VarField>> {
    Reader { text: raw.get(), at: 0 }.list(USUAL_FIELDS, Reader::field)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn field(&mut self) -> Option<VarField> {
        let start = self.at;
        self.usual_field().or_else(|| {
            self.at = start;
            self.any_field()
        })
    }

    /// A field with its keys in Sierra's order, without a blank between them: one comparison for each stretch.
    fn usual_field(&mut self) -> Option<VarField> {
        let mut field = VarField {
            field_tag: self.short(r#"{"fieldTag":""#, 1)?,
            marc_tag: Some(self.short(r#"","marcTag":""#, 3)?),
            ind1: Some(self.short(r#"","ind1":""#, 1)?),
            ind2: Some(self.short(r#"","ind2":""#, 1)?),
            ..VarField::default()
        };
        if self.pass(r#"","subfields":"#).is_some() {
            field.subfields = self.list(USUAL_SUBFIELDS, Reader::subfield)?;
        } else {
            self.pass(r#"","content":"#)?;
            field.content = self.text()?.map(Cow::into_owned);
        }
        self.pass("}")?;
        Some(field)
    }

    fn any_field(&mut self) -> Option<VarField> {
        let mut field = VarField::default();
        self.members(|reader, key| {
            match key {
                "fieldTag" => field.field_tag = reader.text()?.map(CompactString::from).unwrap_or_default(),
                "marcTag" => field.marc_tag = reader.text()?.map(CompactString::from),
                "ind1" => field.ind1 = reader.text()?.map(CompactString::from),
                "ind2" => field.ind2 = reader.text()?.map(CompactString::from),
                "content" => field.content = reader.text()?.map(Cow::into_owned),
                "subfields" => field.subfields = reader.list(USUAL_SUBFIELDS, Reader::subfield)?,
                _ => return None,
            }
            Some(())
        })?;
        Some(field)
    }

    fn subfield(&mut self) -> Option<Subfield> {
        let start = self.at;
        self.usual_subfield().or_else(|| {
            self.at = start;
            self.any_subfield()
        })
    }

    fn usual_subfield(&mut self) -> Option<Subfield> {
        let tag = self.short(r#"{"tag":""#, 1)?;
        self.pass(r#"","content":"#)?;
        let content = self.text()?.map(Cow::into_owned).unwrap_or_default();
        self.pass("}")?;
        Some(Subfield { tag, content })
    }

    fn any_subfield(&mut self) -> Option<Subfield> {
        let mut subfield = Subfield::default();
        self.members(|reader, key| {
            match key {
                "tag" => subfield.tag = reader.text()?.map(CompactString::from).unwrap_or_default(),
                "content" => subfield.content = reader.text()?.map(Cow::into_owned).unwrap_or_default(),
                _ => return None,
            }
            Some(())
        })?;
        Some(subfield)
    }

    /// The text of `length` ASCII characters, none of them an escape, that follows `before` without its last quote.
    fn short(&mut self, before: &str, length: usize) -> Option<CompactString> {
        self.pass(before)?;
        let text = self.text.get(self.at..self.at + length)?;
        if text.bytes().any(|byte| !byte.is_ascii() || matches!(byte, b'"' | b'\\')) {
            return None;
        }
        self.at += length;
        Some(text.into())
    }

    /// Passes over `expected`, which must stand here letter for letter.
    fn pass(&mut self, expected: &str) -> Option<()> {
        self.text.as_bytes().get(self.at..)?.starts_with(expected.as_bytes()).then(|| self.at += expected.len())
    }

    /// The elements of an array, each read by `element`.
    fn list<T>(&mut self, usual: usize, element: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.take(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(Vec::new());
        }
        let mut elements = Vec::with_capacity(usual);
        loop {
            elements.push(element(self)?);
            if !self.goes_on(b']')? {
                return Some(elements);
            }
        }
    }

    /// The members of an object: `member` is called at each value, with its key. A later key overrides an earlier one.
    fn members(&mut self, mut member: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.take(b'"')?;
            // Keys are short: a plain loop beats a search that warms up.
            let rest = self.text.get(self.at..)?;
            let length = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\'))?;
            let key = rest.get(..length)?;
            self.at += length;
            self.take(b'"')?;
            self.take(b':')?;
            member(self, key)?;
            if !self.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// A text or null.
    fn text(&mut self) -> Option<Option<Cow<'a, str>>> {
        if self.peek()? == b'n' {
            // No other word begins with this letter.
            self.at += "null".len();
            return Some(None);
        }
        self.take(b'"')?;
        let rest = self.text.get(self.at..)?;
        let length = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
        if rest.as_bytes().get(length) == Some(&b'"') {
            self.at += length + 1;
            return Some(Some(Cow::Borrowed(rest.get(..length)?)));
        }
        self.escaped(rest, length).map(|text| Some(Cow::Owned(text)))
    }

    /// A text whose first escape is at `escape`.
    fn escaped(&mut self, rest: &str, mut escape: usize) -> Option<String> {
        let mut text = String::with_capacity(2 * escape + 32);
        let mut from = 0;
        loop {
            text.push_str(rest.get(from..escape)?);
            let character = match rest.as_bytes().get(escape)? {
                b'"' => {
                    self.at += escape + 1;
                    return Some(text);
                }
                _ => *rest.as_bytes().get(escape + 1)?,
            };
            text.push(match character {
                b'"' | b'\\' | b'/' => char::from(character),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                // Sierra writes UTF-8; code points come in files that went through other hands.
                _ => return None,
            });
            from = escape + 2;
            escape = from + memchr::memchr2(b'"', b'\\', rest.as_bytes().get(from..)?)?;
        }
    }

    /// Whether a comma follows and not the end.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            _ if byte == end => Some(false),
            _ => None,
        }
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// The next byte that is not whitespace.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }
}
