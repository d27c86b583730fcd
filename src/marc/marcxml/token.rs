//! XML as the few tokens that MARCXML is made of.

use std::io::BufRead;

use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use super::NAMESPACE;
use super::bounded::Bounded;
use super::strict;
use crate::marc::read::ReadError;

/// An element, by what it means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Collection,
    Record,
    Leader,
    Controlfield,
    Datafield,
    Subfield,
    /// Named like a part of a record, but of another namespace or spelling.
    Alien,
    /// Of the MARC namespace, and none of the above.
    Unknown,
    /// None of these: an envelope around records, or an extension inside.
    Foreign,
}

/// A step through the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Open(Element),
    Close,
    /// The end of the input, between documents or after the last.
    End,
}

/// The attributes of the element opened last; a missing one is empty, and the others are of no interest.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) tag: String,
    pub(super) ind1: String,
    pub(super) ind2: String,
    pub(super) code: String,
}

/// Reads tokens. Entities are never expanded, and memory is bounded: elements by [`MAX_DEPTH`], everything else by
/// [`MAX_PART_BYTES`].
pub(super) struct Tokens<R> {
    xml: NsReader<Bounded<R>>,
    buffer: Vec<u8>,
    depth: usize,
    /// The text before the token, references resolved and CDATA merged.
    pub(super) text: String,
    /// Whether that text referred to an entity that XML does not predefine.
    pub(super) met_entity: bool,
    pub(super) attributes: Attributes,
    /// Whether the element opened last has a namespace.
    pub(super) is_bound: bool,
    /// The local name of that element if it is [`Element::Alien`] or [`Element::Foreign`].
    pub(super) name: String,
    has_started: bool,
    prolog: Prolog,
}

/// What came before the root element of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prolog {
    Nothing,
    Declaration,
    DocumentType,
}

/// The parts of a record. Their names in other letter case or another namespace are a mistake worth telling.
const PARTS: [&str; 4] = ["leader", "controlfield", "datafield", "subfield"];
/// How deep elements may nest. A record in an OAI-PMH answer sits five deep.
const MAX_DEPTH: usize = 64;
/// How much XML one record, or what lies between two, may have.
pub(super) const MAX_PART_BYTES: u64 = 128 << 20;

impl<R: BufRead> Tokens<R> {
    pub(super) fn new(input: R) -> Self {
        let mut xml = NsReader::from_reader(Bounded::new(input, MAX_PART_BYTES));
        let config = xml.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = true;
        Self {
            xml,
            buffer: Vec::new(),
            depth: 0,
            text: String::new(),
            met_entity: false,
            attributes: Attributes::default(),
            is_bound: false,
            name: String::new(),
            has_started: false,
            prolog: Prolog::Nothing,
        }
    }

    /// How many bytes of the input were taken.
    pub(super) fn offset(&self) -> u64 {
        self.xml.get_ref().taken()
    }

    /// How many elements are open.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Grants the next part of the document its own [`MAX_PART_BYTES`].
    pub(super) fn renew(&mut self) {
        self.xml.get_mut().renew();
    }

    pub(super) fn next(&mut self) -> Result<Token, ReadError> {
        self.text.clear();
        self.met_entity = false;
        if !self.has_started {
            self.refuse_other_forms()?;
            self.has_started = true;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let token = loop {
            buffer.clear();
            match self.xml.read_event_into(&mut buffer) {
                Ok(event) => match self.take(event) {
                    Ok(Some(token)) => break Ok(token),
                    Ok(None) => {}
                    Err(reason) => break Err(self.unreadable(format!("not well-formed: {reason}"))),
                },
                Err(error) => break Err(self.failure(error)),
            }
        };
        self.buffer = buffer;
        token
    }

    fn take(&mut self, event: Event<'_>) -> Result<Option<Token>, &'static str> {
        const OUTSIDE: &str = "text stands outside of the root element";
        match event {
            Event::Start(start) | Event::Empty(start) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err("elements nest deeper than 64");
                }
                strict::check_tag(&start)?;
                self.read_attributes(&start)?;
                return Ok(Some(Token::Open(self.meaning(&start))));
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.prolog = Prolog::Nothing;
                }
                return Ok(Some(Token::Close));
            }
            Event::Eof if self.depth > 0 => return Err("the input ends inside an element"),
            Event::Eof => return Ok(Some(Token::End)),
            Event::Text(text) if self.depth == 0 => {
                return if strict::is_blank_text(&text) { Ok(None) } else { Err(OUTSIDE) };
            }
            Event::CData(_) | Event::GeneralRef(_) if self.depth == 0 => return Err(OUTSIDE),
            Event::Text(text) => {
                strict::check_text(&text)?;
                self.text.push_str(&text.xml10_content());
            }
            Event::CData(data) => self.text.push_str(&data.xml10_content()),
            Event::GeneralRef(reference) => self.resolve(&reference),
            Event::Decl(declaration) => {
                if self.depth > 0 || self.prolog != Prolog::Nothing {
                    return Err("a declaration stands in the middle of a document");
                }
                self.prolog = Prolog::Declaration;
                check_encoding(&declaration)?;
            }
            Event::DocType(_) => {
                if self.depth > 0 || self.prolog == Prolog::DocumentType {
                    return Err("a document type stands in the middle of a document");
                }
                self.prolog = Prolog::DocumentType;
            }
            Event::Comment(comment) => strict::check_characters(&comment)?,
            Event::PI(instruction) => strict::check_characters(&instruction)?,
        }
        Ok(None)
    }

    fn resolve(&mut self, reference: &BytesRef<'_>) {
        if reference.is_char_ref() {
            // What is no character at all, such as a surrogate, is treated like one that XML 1.0 forbids.
            self.text.push(reference.resolve_char_ref().ok().flatten().unwrap_or('\0'));
            return;
        }
        match quick_xml::escape::resolve_predefined_entity(reference) {
            Some(text) => self.text.push_str(text),
            None => self.met_entity = true,
        }
    }

    fn meaning(&mut self, start: &BytesStart<'_>) -> Element {
        let (namespace, local) = self.xml.resolver().resolve_element(start.name());
        let local = local.into_inner();
        self.is_bound = matches!(namespace, ResolveResult::Bound(_));
        let is_marc = matches!(namespace, ResolveResult::Bound(Namespace(NAMESPACE)));
        // Much MARCXML has lost its namespace, or its prefix's declaration, on the way.
        let element = match local {
            "collection" if is_marc || !self.is_bound => Element::Collection,
            "record" if is_marc || !self.is_bound => Element::Record,
            "leader" if is_marc || !self.is_bound => Element::Leader,
            "controlfield" if is_marc || !self.is_bound => Element::Controlfield,
            "datafield" if is_marc || !self.is_bound => Element::Datafield,
            "subfield" if is_marc || !self.is_bound => Element::Subfield,
            _ if PARTS.iter().any(|part| local.eq_ignore_ascii_case(part)) => Element::Alien,
            _ if is_marc => Element::Unknown,
            _ => Element::Foreign,
        };
        if matches!(element, Element::Alien | Element::Foreign) {
            self.name.clear();
            self.name.push_str(local);
        }
        element
    }

    fn read_attributes(&mut self, start: &BytesStart<'_>) -> Result<(), &'static str> {
        let Attributes { tag, ind1, ind2, code } = &mut self.attributes;
        [&mut *tag, &mut *ind1, &mut *ind2, &mut *code].into_iter().for_each(String::clear);
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|_| "an element has a malformed attribute")?;
            let slot = match attribute.key.0 {
                "tag" => &mut *tag,
                "ind1" => &mut *ind1,
                "ind2" => &mut *ind2,
                "code" => &mut *code,
                _ => continue,
            };
            match attribute.normalized_value(XmlVersion::Implicit1_0) {
                Ok(value) => slot.push_str(&value),
                Err(_) => self.met_entity = true,
            }
        }
        Ok(())
    }

    /// A file that is something else altogether is said to be that (BR-046). Judged by what comes after a byte order
    /// mark and blanks, however slowly it comes.
    fn refuse_other_forms(&mut self) -> Result<(), ReadError> {
        let mut mark = b"\xEF\xBB\xBF".iter();
        let found = loop {
            let input = self.xml.get_mut();
            let first = match input.fill_buf() {
                Ok(chunk) => chunk.first().copied(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ReadError::Io { offset: 0, source }),
            };
            match first {
                Some(byte) if mark.clone().next() == Some(&byte) => {
                    mark.next();
                    input.consume(1);
                }
                Some(byte) if byte.is_ascii_whitespace() => input.consume(1),
                Some(b'<') => return Ok(()),
                None => break "empty",
                Some(0xFE | 0xFF) => break "UTF-16; convert it to UTF-8 first",
                Some(b'{' | b'[') => break "JSON, not XML",
                Some(b'0'..=b'9') => break "no XML but perhaps ISO 2709",
                Some(_) => break "not XML",
            }
        };
        Err(self.unreadable(format!("this is {found}")))
    }

    fn failure(&self, error: quick_xml::Error) -> ReadError {
        let input = self.xml.get_ref();
        if input.is_spent() {
            return self.unreadable(format!("a single record is larger than {MAX_PART_BYTES} bytes"));
        }
        match error {
            quick_xml::Error::Io(source) => {
                ReadError::Io { offset: self.offset(), source: std::io::Error::new(source.kind(), source.to_string()) }
            }
            quick_xml::Error::Syntax(error) => self.unreadable(format!("not well-formed: {error}")),
            // The others may quote names from the document.
            quick_xml::Error::IllFormed(_) => self.unreadable("not well-formed: tags do not match".to_owned()),
            quick_xml::Error::Encoding(_) => self.unreadable("not UTF-8".to_owned()),
            _ => self.unreadable("not well-formed".to_owned()),
        }
    }

    pub(super) fn unreadable(&self, reason: String) -> ReadError {
        ReadError::Unreadable { offset: self.offset(), reason }
    }
}

fn check_encoding(declaration: &BytesDecl<'_>) -> Result<(), &'static str> {
    let Some(Ok(encoding)) = declaration.encoding() else { return Ok(()) };
    let is_known = ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|known| encoding.eq_ignore_ascii_case(known));
    if is_known { Ok(()) } else { Err("the document declares an encoding other than UTF-8: convert it first") }
}
