//! A JSON input as it is walked through: where we are in it, and in its line.

use std::io::{self, BufRead};

use crate::marc::read::ReadError;

/// Bytes with their place. A byte order mark at the start is passed over.
#[derive(Debug)]
pub(super) struct Input<R> {
    bytes: R,
    offset: u64,
    /// How many blanks stand before the next byte on its line, if nothing else does.
    indent: Option<u64>,
    /// Whether nothing but blanks came so far.
    is_blank: bool,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// What was passed over.
#[derive(Debug, Default)]
pub(super) struct Passage {
    /// The last byte that is not blank.
    pub(super) last: u8,
    /// Whether a line ended.
    pub(super) has_line_end: bool,
    /// Whether something but blanks came after the end of a line.
    pub(super) is_beyond_line: bool,
}

impl Passage {
    fn note(&mut self, passed: &[u8]) {
        if let Some(last) = passed.iter().rev().find(|byte| !byte.is_ascii_whitespace()) {
            self.last = *last;
        }
        let beyond = match memchr::memchr(b'\n', passed) {
            _ if self.has_line_end => passed,
            Some(end) => {
                self.has_line_end = true;
                passed.get(end + 1..).unwrap_or_default()
            }
            None => &[],
        };
        self.is_beyond_line |= !beyond.trim_ascii().is_empty();
    }
}

impl<R: BufRead> Input<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { bytes, offset: 0, indent: Some(0), is_blank: true }
    }

    /// Bytes from the start of the input.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// How far the next byte is indented, if it begins its line.
    pub(super) fn indent(&self) -> Option<u64> {
        self.indent
    }

    /// Whether nothing but blanks came so far.
    pub(super) fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// What can be had without taking it; empty at the end.
    pub(super) fn fill(&mut self) -> Result<&[u8], ReadError> {
        // The borrow checker does not let a loop return what it borrowed, so interruptions are waited out first.
        loop {
            match self.bytes.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { offset: self.offset, source }),
            }
        }
        self.bytes.fill_buf().map_err(|source| ReadError::Io { offset: self.offset, source })
    }

    /// Takes bytes of the chunk that [`Input::fill`] just showed.
    pub(super) fn consume(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let Ok(chunk) = self.bytes.fill_buf() else { return };
        let taken = chunk.get(..bytes).unwrap_or(chunk);
        let blanks = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace).then_some(bytes.len() as u64);
        self.indent = match memchr::memrchr(b'\n', taken) {
            Some(end) => taken.get(end + 1..).and_then(blanks),
            None => self.indent.and_then(|before| Some(before + blanks(taken)?)),
        };
        self.is_blank = self.is_blank && blanks(taken).is_some();
        self.bytes.consume(bytes);
        self.offset += bytes as u64;
    }

    /// The next byte, without taking it.
    pub(super) fn peek_byte(&mut self) -> Result<Option<u8>, ReadError> {
        Ok(self.fill()?.first().copied())
    }

    /// The next byte that is not blank, without taking it.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        if self.offset == 0 {
            self.skip_mark()?;
        }
        loop {
            let chunk = self.fill()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let position = chunk.iter().position(|byte| !byte.is_ascii_whitespace());
            let byte = position.and_then(|position| chunk.get(position).copied());
            let used = position.unwrap_or(chunk.len());
            self.consume(used);
            if byte.is_some() {
                return Ok(byte);
            }
        }
    }

    /// Passes over everything before the next `wanted`, or to the end.
    pub(super) fn skip_to(&mut self, wanted: u8, passage: &mut Passage) -> Result<(), ReadError> {
        loop {
            let chunk = self.fill()?;
            if chunk.is_empty() {
                return Ok(());
            }
            let position = memchr::memchr(wanted, chunk);
            let used = position.unwrap_or(chunk.len());
            passage.note(chunk.get(..used).unwrap_or_default());
            self.consume(used);
            if position.is_some() {
                return Ok(());
            }
        }
    }

    /// A mark may come in pieces, as everything may that comes through a pipe.
    fn skip_mark(&mut self) -> Result<(), ReadError> {
        let mut taken = 0;
        while let Some(&wanted) = MARK.get(taken) {
            if self.peek_byte()? != Some(wanted) {
                break;
            }
            self.bytes.consume(1);
            self.offset += 1;
            taken += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_indent_is_known_wherever_chunks_end() {
        let text = b"\xEF\xBB\xBF  {\n    {x {\n{";
        for capacity in 1..text.len() {
            let mut input = Input::new(io::BufReader::with_capacity(capacity, &text[..]));
            let mut indents = Vec::new();
            assert_eq!(input.peek().expect("memory"), Some(b'{'));
            while input.peek_byte().expect("memory").is_some() {
                indents.push(input.indent());
                input.consume(1);
                input.skip_to(b'{', &mut Passage::default()).expect("memory");
            }
            assert_eq!(indents, [Some(2), Some(4), None, Some(0)], "chunks of {capacity}");
        }
    }

    #[test]
    fn what_was_passed_on_later_lines_is_told() {
        for (text, expected) in [("rest of it", false), ("rest\n", false), ("rest\n \n", false), ("a\nb", true)] {
            for capacity in 1..8 {
                let mut input = Input::new(io::BufReader::with_capacity(capacity, text.as_bytes()));
                let mut passage = Passage::default();
                input.skip_to(b'{', &mut passage).expect("memory");
                assert_eq!(passage.is_beyond_line, expected, "{text:?} in chunks of {capacity}");
            }
        }
    }
}
