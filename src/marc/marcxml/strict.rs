//! What XML 1.0 demands and the parser does not look at.

use crate::marc::text;

/// Checks what stands between `<` and `>` of a start tag: names, blanks between attributes, no `<` and no character that
/// XML forbids.
pub(super) fn check_tag(tag: &str) -> Result<(), &'static str> {
    const MALFORMED: &str = "an element has a malformed attribute";
    if memchr::memchr(b'<', tag.as_bytes()).is_some() {
        return Err("a < stands inside a tag");
    }
    check_characters(tag)?;
    let (name, mut rest) = tag.split_at(tag.find(is_blank).unwrap_or(tag.len()));
    check_name(name)?;
    loop {
        let attribute = rest.trim_start_matches(is_blank);
        if attribute.is_empty() {
            return Ok(());
        }
        if attribute.len() == rest.len() {
            return Err("no blank stands between two attributes");
        }
        let (name, value) = attribute.split_once('=').ok_or(MALFORMED)?;
        check_name(name.trim_end_matches(is_blank))?;
        let value = value.trim_start_matches(is_blank);
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\'')).ok_or(MALFORMED)?;
        let (_, after) = value.strip_prefix(quote).and_then(|value| value.split_once(quote)).ok_or(MALFORMED)?;
        rest = after;
    }
}

/// Checks text as it stands in the document.
pub(super) fn check_text(raw: &str) -> Result<(), &'static str> {
    let bytes = raw.as_bytes();
    let ends_cdata = |end: usize| bytes.get(..end).is_some_and(|before| before.ends_with(b"]]"));
    if memchr::memchr_iter(b'>', bytes).any(ends_cdata) { Err("]]> stands in text") } else { Ok(()) }
}

/// Checks that XML allows all characters of `text`.
pub(super) fn check_characters(text: &str) -> Result<(), &'static str> {
    if text::is_suspect(text.as_bytes()) && !text.chars().all(text::is_legal) {
        return Err("a character that XML forbids");
    }
    Ok(())
}

/// Whether only what may stand between elements is in `text`; files put together keep their byte order marks.
pub(super) fn is_blank_text(text: &str) -> bool {
    text.chars().all(|character| is_blank(character) || character == '\u{feff}')
}

/// Letters beyond ASCII are taken as they come.
fn check_name(name: &str) -> Result<(), &'static str> {
    let mut bytes = name.bytes();
    let begins = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':' | 0x80..);
    let goes_on = |byte: u8| begins(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if bytes.next().is_some_and(begins) && bytes.all(goes_on) {
        Ok(())
    } else {
        Err("an element or attribute has a name that cannot be one")
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_checked() {
        for tag in ["a", "a ", "m:record", "é", "a b='1' c = \"'\"\n", "a b=\"\"", "a b='&lt;'"] {
            assert_eq!(check_tag(tag), Ok(()), "{tag}");
        }
        for tag in [
            "1a",
            "",
            " a",
            "a 1='b'",
            "a b='1'c='2'",
            "a b='<'",
            "a b",
            "a b=1",
            "a b='1",
            "a \u{1}='1'",
            "a b='\u{1}'",
        ] {
            assert!(check_tag(tag).is_err(), "{tag}");
        }
    }

    #[test]
    fn the_end_of_cdata_is_no_text() {
        assert!(check_text("a > b ]> c ]] >").is_ok());
        assert!(check_text("a ]]> b").is_err() && check_text("]]>").is_err() && check_text(">]]]>").is_err());
    }
}
