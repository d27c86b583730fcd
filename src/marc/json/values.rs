//! Cuts a JSON input into the values that stand for records.

use std::io::BufRead;

use super::input::{Input, Passage};
use super::scanner::{Scanner, Step};
use crate::marc::read::{Damage, ReadError};

/// Objects of an input that is one object, an array of them, several one after the other (NDJSON or not), or, with a
/// page key, pages such as `{"entries":[…]}` in any of these places. Holds one object at a time.
///
/// An element that is no object, or nests too deeply, costs itself. After JSON that is broken reading goes on at the
/// next `{` that begins its line as deep as the broken object did, or at the next object that is whole and looks like a
/// record. When there is none before the end of the input, that is an error of its own, since nobody knows what the rest
/// held. Only a line of NDJSON that is cut exactly where an object may begin (after a colon, an opening bracket or a
/// comma in an array) takes its neighbour along: nothing tells that apart from an object laid out over several lines.
#[derive(Debug)]
pub(in crate::marc) struct Values<R> {
    input: Input<R>,
    kind: Kind,
    place: Place,
    /// The object found last.
    value: Vec<u8>,
    ordinal: u64,
    value_offset: u64,
    /// How far the object found last is indented, if it begins its line.
    indent: Option<u64>,
    /// Where an object begins that was found, and read, while looking for where to go on.
    held: Option<u64>,
    /// Whether a page may have ended unnoticed since its beginning was seen.
    is_adrift: bool,
    /// Where damage began after which nothing was found any more.
    lost: Option<u64>,
    is_done: bool,
}

/// What the objects are.
#[derive(Debug, Clone, Copy)]
pub(in crate::marc) struct Kind {
    /// The key of a page's records; `None` where there are no pages.
    pub(in crate::marc) page_key: Option<&'static str>,
    /// Whether an object is a record and not a part of one.
    pub(in crate::marc) is_record: fn(&[u8]) -> bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between values.
    Top,
    /// In the outermost array.
    Array,
    /// In the array of a page.
    Page { in_array: bool },
    /// After the array of a page, before its closing brace.
    PageRest { in_array: bool },
}

/// How following a value ended.
enum Followed {
    /// With its end.
    Value { is_too_deep: bool, is_too_large: bool },
    /// At the beginning of a page's array.
    Page,
    /// At a byte that cannot stand there.
    Broken(&'static str),
    /// At the end of the input.
    Cut,
}

/// How many bytes one object may have.
pub(in crate::marc) const MAX_VALUE_BYTES: usize = 128 << 20;

impl<R: BufRead> Values<R> {
    pub(in crate::marc) fn new(input: R, kind: Kind) -> Self {
        Self {
            input: Input::new(input),
            kind,
            place: Place::Top,
            value: Vec::new(),
            ordinal: 0,
            value_offset: 0,
            indent: None,
            held: None,
            is_adrift: false,
            lost: None,
            is_done: false,
        }
    }

    /// The bytes of the object found last.
    pub(in crate::marc) fn value(&self) -> &[u8] {
        &self.value
    }

    /// An error about the object found last.
    pub(in crate::marc) fn damaged(&self, damage: Damage) -> ReadError {
        ReadError::Damaged { ordinal: self.ordinal, offset: self.value_offset, damage }
    }

    /// Finds the next object; `false` at the end of the input.
    pub(in crate::marc) fn next(&mut self) -> Result<bool, ReadError> {
        if self.is_done {
            return Ok(false);
        }
        let found = self.find();
        self.is_done = match &found {
            Ok(is_value) => !is_value,
            Err(error) => !error.is_one_record(),
        };
        found
    }

    fn find(&mut self) -> Result<bool, ReadError> {
        if let Some(offset) = self.held.take() {
            self.ordinal += 1;
            self.value_offset = offset;
            return Ok(true);
        }
        if let Some(offset) = self.lost {
            let reason = "no record was found after the damage there, and nobody knows what the rest held";
            return Err(ReadError::Unreadable { offset, reason: reason.to_owned() });
        }
        loop {
            if let Place::PageRest { in_array } = self.place {
                self.rest_of_page()?;
                self.place = if in_array { Place::Array } else { Place::Top };
                continue;
            }
            let next = self.input.peek()?;
            match (self.place, next) {
                (Place::Top, None) if self.ordinal == 0 && self.input.is_blank() => {
                    return Err(self.unreadable("the input is empty"));
                }
                (Place::Top, None) => return Ok(false),
                (_, None) => return Err(self.unreadable("the input ends inside an array")),
                (Place::Top, Some(b'[')) => {
                    self.input.consume(1);
                    self.place = Place::Array;
                }
                (Place::Array, Some(b']')) => {
                    self.input.consume(1);
                    self.place = Place::Top;
                }
                (Place::Page { in_array }, Some(b']')) => {
                    self.input.consume(1);
                    self.place = Place::PageRest { in_array };
                }
                (Place::Array | Place::Page { .. }, Some(b',')) => self.input.consume(1),
                (_, Some(b'{')) => {
                    if self.object()? {
                        return Ok(true);
                    }
                }
                (Place::Top, Some(first)) if self.ordinal == 0 => {
                    return Err(self.unreadable(match first {
                        b'<' => "this is XML or HTML, not JSON",
                        b'0'..=b'9' => "this is no JSON but perhaps ISO 2709",
                        b'E' => "this is an error answer of Sierra, not JSON",
                        0xFE | 0xFF => "this is UTF-16: convert it to UTF-8 first",
                        _ => "this is not JSON",
                    }));
                }
                (_, Some(_)) => return Err(self.no_object()?),
            }
        }
    }

    /// Takes one object; `false` when it turned out to be a page.
    fn object(&mut self) -> Result<bool, ReadError> {
        self.begin();
        let is_in_page = matches!(self.place, Place::Page { .. }) && !self.is_adrift;
        let page_key = if is_in_page { None } else { self.kind.page_key };
        match self.follow(Scanner::new(page_key), true)? {
            Followed::Value { is_too_large: true, .. } => {
                Err(self.damaged(Damage::TooLarge { limit_bytes: MAX_VALUE_BYTES }))
            }
            Followed::Value { is_too_deep: true, .. } => {
                Err(self.damaged(Damage::Json { what: "it nests too deeply".to_owned() }))
            }
            Followed::Value { .. } => Ok(true),
            Followed::Page => {
                self.ordinal -= 1;
                self.enter_page();
                Ok(false)
            }
            Followed::Broken(what) => {
                let error = self.damaged(Damage::Json { what: what.to_owned() });
                self.resynchronise()?;
                Err(error)
            }
            Followed::Cut => Err(self.damaged(Damage::Truncated)),
        }
    }

    /// Takes one element that is no object, and whose end is known if what follows is what must follow.
    fn no_object(&mut self) -> Result<ReadError, ReadError> {
        self.begin();
        let error = self.damaged(Damage::Structure { what: "something that is not an object" });
        if self.place != Place::Top
            && let Followed::Value { .. } = self.follow(Scanner::new(None), false)?
            && matches!(self.input.peek()?, Some(b',' | b']') | None)
        {
            return Ok(error);
        }
        self.resynchronise()?;
        Ok(error)
    }

    /// Passes over what follows the array of a page.
    fn rest_of_page(&mut self) -> Result<(), ReadError> {
        match self.follow(Scanner::after_value_in_object(), false)? {
            Followed::Value { .. } | Followed::Page => Ok(()),
            Followed::Broken(what) => Err(self.unreadable(what)),
            Followed::Cut => Err(self.unreadable("the input ends inside a page")),
        }
    }

    fn begin(&mut self) {
        self.ordinal += 1;
        self.value_offset = self.input.offset();
        self.indent = self.input.indent();
    }

    fn enter_page(&mut self) {
        let in_array = matches!(self.place, Place::Array | Place::Page { in_array: true });
        self.place = Place::Page { in_array };
        self.is_adrift = false;
    }

    /// Runs `scanner` over the input, keeping what it passes if asked to.
    fn follow(&mut self, mut scanner: Scanner, is_kept: bool) -> Result<Followed, ReadError> {
        let mut size = 0;
        self.value.clear();
        loop {
            let chunk = self.input.fill()?;
            if chunk.is_empty() {
                return Ok(Followed::Cut);
            }
            let step = scanner.feed(chunk);
            let used = match step {
                Step::More => chunk.len(),
                Step::Done(position) | Step::Page(position) | Step::Broken(position, _) => position,
            };
            size += used;
            if is_kept && size <= MAX_VALUE_BYTES {
                self.value.extend_from_slice(chunk.get(..used).unwrap_or_default());
            }
            self.input.consume(used);
            let is_too_large = size > MAX_VALUE_BYTES;
            if is_too_large {
                self.value = Vec::new();
            }
            match step {
                Step::More => {}
                Step::Done(_) => return Ok(Followed::Value { is_too_deep: scanner.is_too_deep(), is_too_large }),
                Step::Page(_) => return Ok(Followed::Page),
                Step::Broken(_, what) => return Ok(Followed::Broken(what)),
            }
        }
    }

    /// Passes over everything up to the next record, the next byte included in the search.
    fn resynchronise(&mut self) -> Result<(), ReadError> {
        self.is_adrift = true;
        let damage = self.input.offset();
        let mut passage = Passage::default();
        loop {
            let Some(byte) = self.input.peek_byte()? else {
                // What is passed over on the last line may all belong to the broken record.
                let is_open = self.place != Place::Top;
                self.lost = (passage.is_beyond_line || is_open).then_some(damage);
                return Ok(());
            };
            if byte != b'{' {
                self.input.skip_to(b'{', &mut passage)?;
                continue;
            }
            let indent = self.input.indent();
            if indent == Some(0) || (indent.is_some() && indent == self.indent) {
                return Ok(());
            }
            passage.is_beyond_line |= passage.has_line_end;
            if indent.is_none() && !matches!(passage.last, b',' | b'[' | b'}' | b']') {
                passage.last = b'{';
                self.input.consume(1);
                continue;
            }
            let offset = self.input.offset();
            match self.follow(Scanner::new(self.kind.page_key), true)? {
                Followed::Page => {
                    self.enter_page();
                    return Ok(());
                }
                Followed::Value { is_too_deep: false, is_too_large: false } if (self.kind.is_record)(&self.value) => {
                    self.held = Some(offset);
                    self.indent = indent;
                    return Ok(());
                }
                Followed::Value { .. } => passage.last = b'}',
                Followed::Broken(_) | Followed::Cut => passage.last = 0,
            }
        }
    }

    fn unreadable(&self, reason: &str) -> ReadError {
        ReadError::Unreadable { offset: self.input.offset(), reason: reason.to_owned() }
    }
}
