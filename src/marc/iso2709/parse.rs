//! One ISO 2709 record, whose extent is known, as a [`Record`].
//!
//! There are two ways through. The quick one keeps the record's data as a whole and only notes where things are; it
//! gives up at the first sight of anything unusual. The careful one copies text by text, repairs and reports. Where
//! both succeed they agree, which a test makes sure of.

use super::{ENTRY_BYTES, FIELD_TERMINATOR, LEADER_BYTES, SUBFIELD_DELIMITER};
use crate::marc::builder::Builder;
use crate::marc::leader::Leader;
use crate::marc::loss::{LossKind, Losses};
use crate::marc::model::Record;
use crate::marc::read::Damage;
use crate::marc::settings::OnIllegal;
use crate::marc::tag::{Indicator, SubfieldCode, Tag};
use crate::marc::text;

/// Parses `bytes`, a whole record with its terminator, into `record`.
pub(super) fn parse(bytes: &[u8], record: &mut Record, policy: OnIllegal, losses: &mut Losses) -> Result<(), Damage> {
    let (leader, repaired) = read_leader(bytes);
    if repaired {
        losses.push(LossKind::LeaderRepaired, "leader", || {
            format!("was {}", text::quote(&String::from_utf8_lossy(bytes.get(..LEADER_BYTES).unwrap_or_default())))
        });
    }
    let parts = Parts::of(bytes)?;
    record.clear(leader);
    if parts.note_down(record).is_some() {
        return Ok(());
    }
    record.clear(leader);
    parts.copy_into(&mut Builder { record, losses, policy })
}

fn read_leader(bytes: &[u8]) -> (Leader, bool) {
    match bytes.get(..LEADER_BYTES).map(std::str::from_utf8) {
        Some(Ok(text)) => Leader::read(text),
        _ => Leader::read(""),
    }
}

/// Five, or four, digits.
pub(super) fn number(bytes: &[u8]) -> Option<usize> {
    bytes
        .iter()
        .try_fold(0, |number: usize, byte| byte.is_ascii_digit().then(|| number * 10 + usize::from(byte - b'0')))
}

struct Parts<'a> {
    directory: &'a [u8],
    data: &'a [u8],
    text: &'a str,
}

struct Entry {
    tag: Tag,
    start: usize,
    /// Where the field's terminator is.
    end: usize,
}

impl<'a> Parts<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, Damage> {
        let damaged = |what| Damage::Directory { what };
        let base = bytes.get(12..17).and_then(number).ok_or(damaged("no base address"))?;
        let end = bytes.len().saturating_sub(1);
        let directory_end = base.checked_sub(1).filter(|&position| position >= LEADER_BYTES && base <= end);
        let directory_end = directory_end.ok_or(damaged("the base address is outside of the record"))?;
        if bytes.get(directory_end) != Some(&FIELD_TERMINATOR) {
            return Err(damaged("it does not end at the base address"));
        }
        let directory = bytes.get(LEADER_BYTES..directory_end).unwrap_or_default();
        if !directory.len().is_multiple_of(ENTRY_BYTES) {
            return Err(damaged("it has a broken entry"));
        }
        let data = bytes.get(base..end).unwrap_or_default();
        // MARC-8 marks itself with a blank in 09, but so does much that is UTF-8. Its escape sequences begin with ESC,
        // and its letters with diacritics (E0 to FE, then an ASCII letter) are no UTF-8.
        let says_utf8 = bytes.get(9) == Some(&b'a');
        let text = match std::str::from_utf8(data) {
            Ok(text) if says_utf8 || memchr::memchr(0x1B, data).is_none() => text,
            Err(_) if says_utf8 => return Err(Damage::NotUtf8),
            _ => return Err(Damage::Marc8),
        };
        let parts = Self { directory, data, text };
        // Fields that overlap would let a small file make an enormous one.
        let mut total: usize = 0;
        for entry in parts.entries() {
            let entry = entry?;
            total += entry.end + 1 - entry.start;
        }
        if total > data.len() { Err(damaged("its fields overlap")) } else { Ok(parts) }
    }

    fn entries(&self) -> impl Iterator<Item = Result<Entry, Damage>> {
        self.directory.chunks_exact(ENTRY_BYTES).map(|entry| {
            let damaged = |what| Damage::Directory { what };
            let (tag, rest) = entry.split_at(3);
            let (length, start) = rest.split_at(4);
            let tag =
                tag.try_into().ok().and_then(Tag::from_bytes).ok_or(damaged("a tag is not three letters or digits"))?;
            let (Some(length), Some(start)) = (number(length), number(start)) else {
                return Err(damaged("a length or a start is not a number"));
            };
            // A field lies between two terminators. This also keeps its ends off the middle of a character.
            let begins = start == 0 || self.data.get(start - 1) == Some(&FIELD_TERMINATOR);
            let end = (start + length).checked_sub(1).filter(|&end| end >= start);
            match end {
                Some(end) if begins && self.data.get(end) == Some(&FIELD_TERMINATOR) => Ok(Entry { tag, start, end }),
                _ => Err(Damage::Misplaced { tag }),
            }
        })
    }

    /// The quick way: `None` if anything asks for care.
    fn note_down(&self, record: &mut Record) -> Option<()> {
        if text::is_suspect_besides_delimiters(self.data) {
            return None;
        }
        record.adopt_text(self.text)?;
        for entry in self.entries() {
            let Entry { tag, start, end } = entry.ok()?;
            let field = self.data.get(start..end)?;
            if tag.is_control() {
                if memchr::memchr2(FIELD_TERMINATOR, SUBFIELD_DELIMITER, field).is_some() {
                    return None;
                }
                record.adopt_control(tag, start, end)?;
                continue;
            }
            let &[first, second, SUBFIELD_DELIMITER, ..] = field else { return None };
            let indicators = [Indicator::new(first)?, Indicator::new(second)?];
            let first_subfield = record.subfield_count();
            let mut at = start + 3;
            loop {
                let rest = self.data.get(at..=end)?;
                let length = memchr::memchr2(FIELD_TERMINATOR, SUBFIELD_DELIMITER, rest)?;
                let code = SubfieldCode::new(*rest.first()?)?;
                if length == 0 {
                    return None;
                }
                record.adopt_subfield(code, at + 1, at + length)?;
                at += length;
                if at == end {
                    break;
                }
                if self.data.get(at) != Some(&SUBFIELD_DELIMITER) {
                    return None;
                }
                at += 1;
            }
            record.close_data(tag, indicators, first_subfield);
        }
        Some(())
    }

    /// The careful way.
    fn copy_into(&self, builder: &mut Builder<'_>) -> Result<(), Damage> {
        for entry in self.entries() {
            let Entry { tag, start, end } = entry?;
            let field = self.text.get(start..end).ok_or(Damage::Misplaced { tag })?;
            if tag.is_control() {
                builder.control(tag, field)?;
            } else {
                copy_data(builder, tag, field)?;
            }
        }
        Ok(())
    }
}

fn copy_data(builder: &mut Builder<'_>, tag: Tag, field: &str) -> Result<(), Damage> {
    let mut parts = field.split(char::from(SUBFIELD_DELIMITER));
    let before = parts.next().unwrap_or_default();
    let (ind1, rest) = first_character(before);
    let (ind2, stray) = first_character(rest);
    if ind2.is_empty() {
        builder.losses.push(LossKind::IndicatorReplaced, tag.as_str(), || {
            format!("{} of 2 indicators; the others written as blank", usize::from(!ind1.is_empty()))
        });
    }
    let first = builder.record.subfield_count();
    let mut has_subfields = false;
    for part in parts {
        has_subfields = true;
        let (code, value) = first_character(part);
        builder.subfield(tag, code, value)?;
    }
    match (stray, has_subfields) {
        ("", _) => {}
        (_, false) => builder.content_as_subfield(tag, stray)?,
        (_, true) => builder.losses.push(LossKind::ContentIgnored, tag.as_str(), || {
            format!("{} bytes before the first subfield left out", stray.len())
        }),
    }
    let indicators = [builder.indicator(tag, 1, Some(ind1)), builder.indicator(tag, 2, Some(ind2))];
    builder.close(tag, indicators, first);
    Ok(())
}

/// The first character, which is empty if there is none, and the rest.
fn first_character(text: &str) -> (&str, &str) {
    let length = text.chars().next().map_or(0, char::len_utf8);
    text.split_at_checked(length).unwrap_or_default()
}
