//! A strict reading of XML 1.0, stricter than quick-xml alone: every character must be legal, one root, nothing beside
//! it, and no reference to anything but predefined entities and legal characters.

use quick_xml::events::Event;
use quick_xml::{NsReader, XmlVersion};

/// The number of `record` elements in the MARC namespace, or what is wrong with the document.
pub(crate) fn count_records(document: &[u8]) -> Result<usize, String> {
    let text = std::str::from_utf8(document).map_err(|error| format!("not UTF-8: {error}"))?;
    legal(text)?;
    let mut reader = NsReader::from_str(text);
    reader.config_mut().check_comments = true;
    let (mut depth, mut roots, mut records) = (0_usize, 0, 0);
    loop {
        let event = reader.read_event().map_err(|error| format!("at {}: {error}", reader.buffer_position()))?;
        match event {
            Event::Start(start) | Event::Empty(start) if depth == 0 && roots == 1 => {
                return Err(format!("a second root {:?}", start.name()));
            }
            Event::Start(start) => {
                attributes(&start)?;
                let (namespace, local) = reader.resolver().resolve_element(start.name());
                let is_marc = format!("{namespace:?}").contains("http://www.loc.gov/MARC21/slim");
                records += usize::from(is_marc && local.into_inner() == "record");
                roots += usize::from(depth == 0);
                depth += 1;
            }
            Event::Empty(start) => {
                attributes(&start)?;
                roots += usize::from(depth == 0);
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => {
                return Err("text beside the root".to_owned());
            }
            Event::Text(text) if text.contains("]]>") => return Err("]]> in text".to_owned()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => legal(&character.to_string())?,
                Ok(None) if ["amp", "lt", "gt", "quot", "apos"].contains(&&*reference) => {}
                _ => return Err(format!("reference {reference:?}")),
            },
            Event::Eof if depth == 0 && roots == 1 => return Ok(records),
            Event::Eof => return Err(format!("ends at depth {depth} with {roots} roots")),
            _ => {}
        }
    }
}

fn attributes(start: &quick_xml::events::BytesStart<'_>) -> Result<(), String> {
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attribute.value.contains('<') {
            return Err("< in an attribute".to_owned());
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
        legal(&value)?;
    }
    Ok(())
}

fn legal(text: &str) -> Result<(), String> {
    match text
        .chars()
        .find(|c| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}'))
    {
        Some(character) => Err(format!("illegal character {character:?}")),
        None => Ok(()),
    }
}

#[test]
fn the_strict_reading_refuses_what_xml_forbids() {
    assert_eq!(count_records(b"<record xmlns='http://www.loc.gov/MARC21/slim'>&amp;&#13;</record>"), Ok(1));
    assert_eq!(count_records(b"<record/>"), Ok(0));
    for bad in [
        "<a>\u{1}</a>",
        "<a>&#1;</a>",
        "<a>&x;</a>",
        "<a b='\u{ffff}'/>",
        "<a/><b/>",
        "<a><b></a></b>",
        "<a>",
        "",
        "x",
        "<a b='1' b='2'/>",
        "<a>]]></a>",
        "<a>&</a>",
    ] {
        assert!(count_records(bad.as_bytes()).is_err(), "{bad:?} passed");
    }
}
