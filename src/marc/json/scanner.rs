//! Finds where a JSON value ends without building it.

/// Follows one JSON value byte by byte: pure, and fed with chunks as they come.
///
/// It knows the grammar as far as needed to notice at once that a value is damaged, so that a cut line in NDJSON does
/// not swallow its neighbours: brackets match, keys, colons and commas are in place, no text spans lines. What is
/// inside scalars and texts is the parser's business.
#[derive(Debug)]
pub(in crate::marc) struct Scanner {
    open: Vec<u8>,
    state: State,
    is_too_deep: bool,
    /// The key whose array value ends the scan, in the outermost object.
    page_key: Option<&'static str>,
    /// The start of the key read last in the outermost object.
    key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    KeyOrEnd,
    Key,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
    Scalar,
    Text { is_key: bool },
    Escape { is_key: bool },
}

/// What a chunk led to. Positions count from the start of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::marc) enum Step {
    /// The value goes on in the next chunk.
    More,
    /// The value ends before this position.
    Done(usize),
    /// The array of the page key begins; its first element comes at or after this position.
    Page(usize),
    /// The value is damaged; the byte at this position cannot stand there.
    Broken(usize, &'static str),
}

/// How deep values may nest; serde_json has a limit of 128.
const MAX_DEPTH: usize = 120;
/// How deep they may nest for their end to be found all the same.
const MAX_FOLLOWED: usize = 1 << 20;

impl Scanner {
    /// For a value that begins with the next byte.
    pub(in crate::marc) fn new(page_key: Option<&'static str>) -> Self {
        Self { open: Vec::new(), state: State::Value, is_too_deep: false, page_key, key: Vec::new() }
    }

    /// For the rest of an object after the value of one of its keys.
    pub(in crate::marc) fn after_value_in_object() -> Self {
        Self { open: vec![b'{'], state: State::CommaOrEnd, is_too_deep: false, page_key: None, key: Vec::new() }
    }

    /// Whether the value nests deeper than a parser would follow. Its end is found nevertheless.
    pub(in crate::marc) fn is_too_deep(&self) -> bool {
        self.is_too_deep
    }

    /// Follows the next chunk of the input.
    pub(in crate::marc) fn feed(&mut self, chunk: &[u8]) -> Step {
        let mut position = 0;
        while let Some(&byte) = chunk.get(position) {
            match self.state {
                State::Text { is_key } => {
                    let rest = chunk.get(position..).unwrap_or_default();
                    let Some(length) = memchr::memchr3(b'"', b'\\', b'\n', rest) else {
                        self.note_key(is_key, rest);
                        return Step::More;
                    };
                    self.note_key(is_key, rest.get(..length).unwrap_or_default());
                    position += length;
                    self.state = match rest.get(length) {
                        Some(b'"') if is_key => State::Colon,
                        Some(b'"') if self.open.is_empty() => return Step::Done(position + 1),
                        Some(b'"') => State::CommaOrEnd,
                        Some(b'\\') => State::Escape { is_key },
                        _ => return Step::Broken(position, "a text is cut off by the end of its line"),
                    };
                }
                State::Escape { is_key } => {
                    self.note_key(is_key, b"\\");
                    self.state = State::Text { is_key };
                }
                State::Scalar if self.open.is_empty() && !is_of_scalar(byte) => return Step::Done(position),
                _ if byte.is_ascii_whitespace() => {
                    if self.state == State::Scalar {
                        self.state = State::CommaOrEnd;
                    }
                }
                _ => match self.structure(byte) {
                    Ok(Turn::On) => {}
                    Ok(Turn::Done) => return Step::Done(position + 1),
                    Ok(Turn::Page) => return Step::Page(position + 1),
                    Err(what) => return Step::Broken(position, what),
                },
            }
            position += 1;
        }
        Step::More
    }

    fn structure(&mut self, byte: u8) -> Result<Turn, &'static str> {
        let takes_value = matches!(self.state, State::Value | State::ValueOrEnd);
        let ends_value = matches!(self.state, State::CommaOrEnd | State::Scalar);
        match byte {
            b'{' | b'[' if takes_value => {
                if byte == b'[' && self.is_page() {
                    return Ok(Turn::Page);
                }
                if self.open.len() >= MAX_FOLLOWED {
                    return Err("it nests too deeply");
                }
                self.is_too_deep |= self.open.len() >= MAX_DEPTH;
                self.open.push(byte);
                self.state = if byte == b'{' { State::KeyOrEnd } else { State::ValueOrEnd };
            }
            b'}' if (ends_value || self.state == State::KeyOrEnd) && self.open.last() == Some(&b'{') => {
                return Ok(self.close());
            }
            b']' if (ends_value || self.state == State::ValueOrEnd) && self.open.last() == Some(&b'[') => {
                return Ok(self.close());
            }
            b',' if ends_value => {
                self.state = if self.open.last() == Some(&b'{') { State::Key } else { State::Value };
            }
            b':' if self.state == State::Colon => self.state = State::Value,
            b'"' if takes_value => self.state = State::Text { is_key: false },
            b'"' if matches!(self.state, State::Key | State::KeyOrEnd) => {
                self.key.clear();
                self.state = State::Text { is_key: true };
            }
            _ if takes_value && is_of_scalar(byte) => self.state = State::Scalar,
            _ if self.state == State::Scalar && is_of_scalar(byte) => {}
            _ => return Err("brackets, keys, colons and commas are not where they belong"),
        }
        Ok(Turn::On)
    }

    fn close(&mut self) -> Turn {
        self.open.pop();
        self.state = State::CommaOrEnd;
        if self.open.is_empty() { Turn::Done } else { Turn::On }
    }

    fn is_page(&self) -> bool {
        self.open.len() == 1
            && self.state == State::Value
            && self.page_key.is_some_and(|page_key| page_key.as_bytes() == self.key)
    }

    fn note_key(&mut self, is_key: bool, bytes: &[u8]) {
        const LONGEST: usize = 16;
        if is_key && self.open.len() == 1 && self.page_key.is_some() {
            let room = (LONGEST + 1).saturating_sub(self.key.len());
            self.key.extend(bytes.iter().take(room));
        }
    }
}

fn is_of_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

enum Turn {
    On,
    Done,
    Page,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in chunks of every size: the outcome may not depend on where chunks end.
    fn scan(text: &str) -> Step {
        let outcomes: Vec<Step> = (1..=text.len())
            .map(|size| {
                let mut scanner = Scanner::new(Some("entries"));
                for (number, chunk) in text.as_bytes().chunks(size).enumerate() {
                    let before = number * size;
                    match scanner.feed(chunk) {
                        Step::More => {}
                        Step::Done(position) => return Step::Done(before + position),
                        Step::Page(position) => return Step::Page(before + position),
                        Step::Broken(position, what) => return Step::Broken(before + position, what),
                    }
                }
                Step::More
            })
            .collect();
        assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]), "{text}: {outcomes:?}");
        outcomes[0]
    }

    #[test]
    fn a_value_ends_with_its_last_bracket() {
        for text in [
            r#"{}"#,
            r#"[]"#,
            r#"{"a":"}\"]","b":[1,{"c":null}, -1.5e+3 ,true]}"#,
            r#"{"total": 1 ,"x":{"entries":[1]},"entries":{}}"#,
            "{\n \"a\" :\t[ ]\r\n}",
            "null",
            "-1.5e+3",
            r#""a text, [not] a \"value\"""#,
        ] {
            assert_eq!(scan(&format!("{text}  {{")), Step::Done(text.len()), "{text}");
        }
    }

    #[test]
    fn the_array_of_a_page_is_found_at_the_outermost_level_only() {
        assert_eq!(scan(r#"{"total":1,"entries": [{"id":1}]}"#), Step::Page(23));
        assert_eq!(scan(r#"{"entriesX":[],"xentries":[],"a":{"entries":[]}}"#), Step::Done(48));
        assert_eq!(scan(r#"{"entri\u0065s":[]}"#), Step::Done(19));
    }

    #[test]
    fn damage_is_noticed_where_it_is() {
        for (text, position) in [
            ("{\"a\":\"cut\n{\"id\":2}", 9),
            ("{\"a\":1\n{\"id\":2}", 7),
            ("{\"a\":[{\"b\":2\n{\"id\":2}", 13),
            ("{\"a\":1,\n{\"id\":2}", 8),
            ("{\"a\":1]", 6),
            ("[1}", 2),
            ("{\"a\" 1}", 5),
            ("{a:1}", 1),
            ("{,}", 1),
            ("[1 2]", 3),
            ("[1,]", 3),
        ] {
            assert!(matches!(scan(text), Step::Broken(at, _) if at == position), "{text}: {:?}", scan(text));
        }
    }

    #[test]
    fn the_end_of_a_value_that_nests_too_deeply_is_found() {
        for (depth, is_too_deep) in [(MAX_DEPTH, false), (MAX_DEPTH + 1, true)] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let mut scanner = Scanner::new(None);
            assert_eq!((scanner.feed(text.as_bytes()), scanner.is_too_deep()), (Step::Done(2 * depth), is_too_deep));
        }
        assert!(matches!(Scanner::new(None).feed(&vec![b'['; 2 << 20]), Step::Broken(MAX_FOLLOWED, _)));
    }
}
