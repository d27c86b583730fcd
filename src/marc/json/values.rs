//! Cuts a JSON input into the values that stand for records.

use std::io::{self, BufRead};

use super::scanner::{Scanner, Step};
use crate::marc::read::{Damage, ReadError};

/// Objects of an input that is one object, an array of them, several one after the other (NDJSON or not), or, with a
/// page key, pages such as `{"entries":[…]}` in any of these places. Holds one object at a time.
///
/// After a damaged object reading goes on at the next line that begins with `{`. Only a line of NDJSON that is cut
/// exactly where an object may begin (after a colon, an opening bracket or a comma in an array) takes its neighbour
/// along: nothing tells that apart from an object laid out over several lines.
#[derive(Debug)]
pub(in crate::marc) struct Values<R> {
    input: R,
    page_key: Option<&'static str>,
    place: Place,
    /// The object found last.
    value: Vec<u8>,
    offset: u64,
    ordinal: u64,
    value_offset: u64,
    /// The byte before the next one, to know the beginning of a line.
    previous: u8,
    is_done: bool,
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

/// How many bytes one object may have.
pub(in crate::marc) const MAX_VALUE_BYTES: usize = 128 << 20;

impl<R: BufRead> Values<R> {
    pub(in crate::marc) fn new(input: R, page_key: Option<&'static str>) -> Self {
        Self {
            input,
            page_key,
            place: Place::Top,
            value: Vec::new(),
            offset: 0,
            ordinal: 0,
            value_offset: 0,
            previous: b'\n',
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
        loop {
            if let Place::PageRest { in_array } = self.place {
                self.scan(Scanner::after_value_in_object(), false)?;
                self.place = if in_array { Place::Array } else { Place::Top };
                continue;
            }
            let next = self.peek()?;
            match (self.place, next) {
                (Place::Top, None) if self.ordinal == 0 && self.offset == 0 => {
                    return Err(self.unreadable("the input is empty"));
                }
                (Place::Top, None) => return Ok(false),
                (_, None) => return Err(self.unreadable("the input ends inside an array")),
                (Place::Top, Some(b'[')) => {
                    self.consume(1);
                    self.place = Place::Array;
                }
                (Place::Array, Some(b']')) => {
                    self.consume(1);
                    self.place = Place::Top;
                }
                (Place::Page { in_array }, Some(b']')) => {
                    self.consume(1);
                    self.place = Place::PageRest { in_array };
                }
                (Place::Array | Place::Page { .. }, Some(b',')) => self.consume(1),
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
                (_, Some(_)) => {
                    self.begin();
                    self.resynchronise()?;
                    return Err(self.damaged(Damage::Structure { what: "something that is not an object" }));
                }
            }
        }
    }

    /// Takes one object; `false` when it turned out to be a page.
    fn object(&mut self) -> Result<bool, ReadError> {
        self.begin();
        let is_in_page = matches!(self.place, Place::Page { .. });
        let is_value = self.scan(Scanner::new(if is_in_page { None } else { self.page_key }), true)?;
        if is_value {
            return Ok(true);
        }
        self.ordinal -= 1;
        self.place = Place::Page { in_array: self.place == Place::Array };
        Ok(false)
    }

    fn begin(&mut self) {
        self.ordinal += 1;
        self.value_offset = self.offset;
        self.value.clear();
    }

    /// Runs `scanner` over the input, keeping what it passes if asked to; `false` when a page begins.
    fn scan(&mut self, mut scanner: Scanner, is_kept: bool) -> Result<bool, ReadError> {
        let mut size = 0;
        loop {
            let chunk = fill(&mut self.input, self.offset)?;
            if chunk.is_empty() {
                if !is_kept {
                    return Err(self.unreadable("the input ends inside a page"));
                }
                self.place = Place::Top;
                return Err(self.damaged(Damage::Truncated));
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
            self.previous = chunk.get(used.wrapping_sub(1)).copied().unwrap_or(self.previous);
            self.input.consume(used);
            self.offset += used as u64;
            match step {
                Step::More => {}
                Step::Done(_) if is_kept && size > MAX_VALUE_BYTES => {
                    self.value = Vec::new();
                    return Err(self.damaged(Damage::TooLarge { limit_bytes: MAX_VALUE_BYTES }));
                }
                Step::Done(_) => return Ok(true),
                Step::Page(_) => return Ok(false),
                Step::Broken(_, what) if is_kept => {
                    self.resynchronise()?;
                    return Err(self.damaged(Damage::Json { what: what.to_owned() }));
                }
                Step::Broken(_, what) => return Err(self.unreadable(what)),
            }
        }
    }

    /// Passes over everything up to a line that begins with `{`, the next byte included in the search.
    fn resynchronise(&mut self) -> Result<(), ReadError> {
        loop {
            let (previous, chunk) = (self.previous, fill(&mut self.input, self.offset)?);
            match chunk.first() {
                None => {
                    self.place = Place::Top;
                    return Ok(());
                }
                Some(b'{') if previous == b'\n' => return Ok(()),
                Some(_) => {}
            }
            let used = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |position| position + 1);
            self.consume(used);
        }
    }

    /// The next byte that is not blank, without taking it.
    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            let (offset, chunk) = (self.offset, fill(&mut self.input, self.offset)?);
            if offset == 0 && chunk.starts_with(b"\xEF\xBB\xBF") {
                self.consume(3);
                continue;
            }
            if chunk.is_empty() {
                return Ok(None);
            }
            match chunk.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(position) => {
                    let byte = chunk.get(position).copied();
                    self.consume(position);
                    return Ok(byte);
                }
                None => {
                    let used = chunk.len();
                    self.consume(used);
                }
            }
        }
    }

    /// Takes bytes of the chunk that [`fill`] just showed.
    fn consume(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if let Ok(chunk) = fill(&mut self.input, self.offset)
            && let Some(&last) = chunk.get(bytes - 1)
        {
            self.previous = last;
        }
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    fn unreadable(&self, reason: &str) -> ReadError {
        ReadError::Unreadable { offset: self.offset, reason: reason.to_owned() }
    }
}

fn fill(input: &mut impl BufRead, offset: u64) -> Result<&[u8], ReadError> {
    // The borrow checker does not let a loop return what it borrowed, so interruptions are waited out first.
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(ReadError::Io { offset, source }),
        }
    }
    input.fill_buf().map_err(|source| ReadError::Io { offset, source })
}
