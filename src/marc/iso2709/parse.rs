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

struct Entry<'a> {
    /// `None` if it cannot be one.
    tag: Option<Tag>,
    /// The tag as it stands there.
    came: &'a [u8],
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
        Ok(Self { directory, data, text })
    }

    fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, Damage>> {
        self.directory.chunks_exact(ENTRY_BYTES).map(|entry| {
            let damaged = |what| Damage::Directory { what };
            let (came, rest) = entry.split_at(3);
            let (length, start) = rest.split_at(4);
            let tag = came.try_into().ok().and_then(Tag::from_bytes);
            let (Some(length), Some(start)) = (number(length), number(start)) else {
                return Err(damaged("a length or a start is not a number"));
            };
            // A field lies between two terminators. This also keeps its ends off the middle of a character.
            let begins = start == 0 || self.data.get(start - 1) == Some(&FIELD_TERMINATOR);
            let end = (start + length).checked_sub(1).filter(|&end| end >= start);
            match end {
                Some(end) if begins && self.data.get(end) == Some(&FIELD_TERMINATOR) => {
                    Ok(Entry { tag, came, start, end })
                }
                _ => Err(tag.map_or(damaged("a field with an odd tag is misplaced"), |tag| Damage::Misplaced { tag })),
            }
        })
    }

    /// The quick way: `None` if anything asks for care.
    fn note_down(&self, record: &mut Record) -> Option<()> {
        if text::is_suspect_besides_delimiters(self.data) {
            return None;
        }
        record.adopt_text(self.text)?;
        // Each field after the one before, and nothing between: all else is for the careful way.
        let mut next = 0;
        for entry in self.entries() {
            let Entry { tag, start, end, .. } = entry.ok()?;
            if start != next {
                return None;
            }
            next = end + 1;
            let tag = tag?;
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
        (next == self.data.len() && next > 0).then_some(())
    }

    /// The careful way.
    fn copy_into(&self, builder: &mut Builder<'_>) -> Result<(), Damage> {
        self.check_coverage(builder)?;
        for entry in self.entries() {
            let Entry { tag, came, start, end } = entry?;
            let field =
                self.text.get(start..end).ok_or(Damage::Directory { what: "a field ends inside a character" })?;
            let Some(tag) = tag.or_else(|| builder.tag(&String::from_utf8_lossy(came), String::new)) else { continue };
            if tag.is_control() {
                builder.control(tag, field)?;
            } else {
                copy_data(builder, tag, field)?;
            }
        }
        builder.finish();
        Ok(())
    }

    /// Whether each byte of the data belongs to one field. Two entries on one field mean that one of them is wrong, and
    /// they would let a small file make an enormous one; data without an entry may be what an editor took out.
    fn check_coverage(&self, builder: &mut Builder<'_>) -> Result<(), Damage> {
        let damaged = |what| Damage::Directory { what };
        let spans = self.entries().map(|entry| entry.map(|entry| (entry.start, entry.end + 1)));
        let mut spans = spans.collect::<Result<Vec<_>, _>>()?;
        if spans.is_empty() && !self.data.is_empty() {
            return Err(damaged("it is empty, and there is data"));
        }
        spans.sort_unstable();
        let (mut covered, mut uncovered) = (0, 0);
        for (start, end) in spans {
            uncovered += start.checked_sub(covered).ok_or(damaged("its fields overlap"))?;
            covered = end;
        }
        uncovered += self.data.len().saturating_sub(covered);
        if uncovered > 0 {
            builder.losses.push(LossKind::DataUncovered, "", || {
                format!("{} that no field of the directory covers left out", text::count(uncovered as u64, "byte"))
            });
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
            format!("{} before the first subfield left out", text::count(stray.len() as u64, "byte"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a record together from fields as they stand in the data, each with its terminator.
    fn assemble(leader: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut directory, mut data) = (Vec::new(), Vec::new());
        for (tag, field) in fields {
            directory.extend_from_slice(format!("{tag}{:04}{:05}", field.len(), data.len()).as_bytes());
            data.extend_from_slice(field);
        }
        let base = LEADER_BYTES + directory.len() + 1;
        let mut bytes = leader.as_bytes().to_vec();
        bytes[..5].copy_from_slice(format!("{:05}", base + data.len() + 1).as_bytes());
        bytes[12..17].copy_from_slice(format!("{base:05}").as_bytes());
        bytes.extend([directory, vec![FIELD_TERMINATOR], data, vec![0x1D]].concat());
        bytes
    }

    const LEADER: &str = "00000nam a2200000 a 4500";

    fn parsed(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), Damage> {
        let (mut record, mut losses) = (Record::default(), Losses::default());
        parse(bytes, &mut record, OnIllegal::Drop, &mut losses)?;
        let losses =
            losses.into_vec().iter().map(|loss| format!("{} {}: {}", loss.kind, loss.field, loss.detail)).collect();
        Ok((record.fields().map(|field| format!("{field:?}")).collect(), losses))
    }

    #[test]
    fn a_sound_record_is_read_in_the_order_of_its_directory() {
        let bytes = assemble(
            LEADER,
            &[("245", b"10\x1faTitle\x1fb\x1fc \x1e"), ("001", b"x\x1e"), ("100", "1 \x1fa漢\x1e".as_bytes())],
        );
        assert_eq!(
            parsed(&bytes),
            Ok((vec!["245 10 $aTitle$b$c ".into(), "001 x".into(), "100 1  $a漢".into()], vec![]))
        );
    }

    #[test]
    fn odd_fields_cost_only_what_is_odd() {
        let bytes = assemble(
            LEADER,
            &[
                ("001", b"a\x1fb\x1e"),
                ("245", b"\x1faNo indicators\x1e"),
                ("246", b"1\x1faOne indicator\x1e"),
                ("300", b"  only content\x1e"),
                ("500", b"  stray\x1faNote\x1e"),
                ("501", b"  \x1e"),
                ("502", "  \x1f漢x\x1f\x1fay\x1e".as_bytes()),
                ("503", b"\x01\x7f\x1fax\x07\x1e"),
            ],
        );
        let (fields, losses) = parsed(&bytes).expect("parses");
        assert_eq!(
            fields,
            [
                "001 ab",
                "245    $aNo indicators",
                "246 1  $aOne indicator",
                "300    $aonly content",
                "500    $aNote",
                "502    $ay",
                "503    $ax",
            ]
        );
        assert_eq!(
            losses,
            [
                "characters-dropped 001: 1 character: U+001F",
                "indicator-replaced 245: 0 of 2 indicators; the others written as blank",
                "indicator-replaced 246: 1 of 2 indicators; the others written as blank",
                "content-as-subfield 300: content became $a",
                "content-ignored 500: 5 bytes before the first subfield left out",
                "field-empty 501: field left out",
                "subfield-code-invalid 502: code \"漢\" with 1 byte of text; subfield left out",
                "subfield-code-invalid 502: code \"\" with 0 bytes of text; subfield left out",
                "characters-dropped 503$a: 1 character: U+0007",
                "indicator-replaced 503: indicator 1 was \"\\u{1}\"; written as blank",
                "indicator-replaced 503: indicator 2 was \"\\u{7f}\"; written as blank",
            ]
        );
    }

    #[test]
    fn a_forbidden_character_in_an_otherwise_sound_record_is_noticed() {
        for illegal in ["\u{7}", "\u{1d}", "\u{1e}", "\u{fffe}"] {
            let bytes =
                assemble(LEADER, &[("001", b"x\x1e"), ("245", format!("10\u{1f}aT{illegal}\u{1e}").as_bytes())]);
            let (fields, losses) = parsed(&bytes).expect("parses");
            assert_eq!((fields[1].as_str(), losses.len()), ("245 10 $aT", 1), "{illegal:?}: {losses:?}");
            assert!(losses[0].starts_with("characters-dropped 245$a"));
        }
    }

    /// BR-085: the reader does not trust the counts of the leader.
    #[test]
    fn an_indicator_count_of_4_does_not_shift_the_subfields() {
        let bytes = assemble("00000nam a4200000 a 4500", &[("245", b"10\x1faTitle\x1e")]);
        let (fields, losses) = parsed(&bytes).expect("parses");
        assert_eq!(fields, ["245 10 $aTitle"]);
        assert_eq!(losses.len(), 1);
        assert!(losses[0].starts_with("leader-repaired leader: was "));
    }

    #[test]
    fn utf8_is_recognised_whatever_the_leader_says_and_marc8_is_refused() {
        let blank = "00000nam  2200000 a 4500";
        let field = |bytes: &[u8]| parsed(&assemble(blank, &[("245", &[b"10\x1fa", bytes, b"\x1e"].concat())]));
        assert_eq!(field("é漢".as_bytes()), Ok((vec!["245 10 $aé漢".into()], vec![])));
        assert_eq!(field(b"caf\xe2e"), Err(Damage::Marc8), "ANSEL: a combining acute before its letter");
        assert_eq!(field(b"H\x1bb2\x1bsO"), Err(Damage::Marc8), "an escape to subscripts");
        let marked = assemble(LEADER, &[("245", b"10\x1facaf\xe9\x1e")]);
        assert_eq!(parsed(&marked), Err(Damage::NotUtf8));
    }

    #[test]
    fn damaged_directories_are_refused_by_name() {
        let good = assemble(LEADER, &[("001", b"x\x1e"), ("245", b"10\x1faT\x1e")]);
        let with = |position: usize, text: &str| {
            let mut bytes = good.clone();
            bytes[position..position + text.len()].copy_from_slice(text.as_bytes());
            parsed(&bytes)
        };
        let damaged = |what| Err(Damage::Directory { what });
        assert_eq!(with(12, "x"), damaged("no base address"));
        assert_eq!(with(12, "00000"), damaged("the base address is outside of the record"));
        assert_eq!(with(12, "99999"), damaged("the base address is outside of the record"));
        assert_eq!(with(12, "00048"), damaged("it does not end at the base address"));
        assert_eq!(with(27, "00x2"), damaged("a length or a start is not a number"));
        let tag = |text| Tag::new(text).expect("a tag");
        assert_eq!(with(27, "0000"), Err(Damage::Misplaced { tag: tag("001") }));
        assert_eq!(with(27, "9999"), Err(Damage::Misplaced { tag: tag("001") }));
        assert_eq!(with(43, "00003"), Err(Damage::Misplaced { tag: tag("245") }));
        assert_eq!(with(43, "99999"), Err(Damage::Misplaced { tag: tag("245") }));
        // One byte into the field, and to its end.
        assert_eq!(with(39, "000500003"), Err(Damage::Misplaced { tag: tag("245") }));
        // Both entries on the same field: one of them is wrong, and small files could be made to grow without end.
        let twice = assemble(LEADER, &[("500", b"  \x1fax\x1e"), ("500", b"  \x1fax\x1e")]);
        let mut overlapping = twice.clone();
        overlapping[43..48].copy_from_slice(b"00000");
        assert_eq!(parsed(&overlapping), damaged("its fields overlap"));
        let mut directory = overlapping[24..36].repeat(40);
        directory.push(FIELD_TERMINATOR);
        let base = 24 + directory.len();
        let bytes =
            [format!("{:05}nam a22{base:05} a 4500", base + 7).into_bytes(), directory, b"  \x1fax\x1e\x1d".to_vec()]
                .concat();
        assert_eq!(parsed(&bytes), damaged("its fields overlap"));
        let bytes = b"00033nam a2200025 a 4500\x1e  \x1fax\x1e\x1d";
        assert_eq!(parsed(bytes), damaged("it is empty, and there is data"));
    }

    #[test]
    fn data_that_no_entry_covers_is_a_loss_wherever_it_lies() {
        let three = [("001", &b"x\x1e"[..]), ("500", b"  \x1faNote\x1e"), ("245", b"10\x1faT\x1e")];
        for (left_out, bytes) in [(0, 2), (1, 9), (2, 6)] {
            let mut record = assemble(LEADER, &three);
            record.drain(24 + 12 * left_out..36 + 12 * left_out);
            let (length, base) = (record.len(), 24 + 25);
            record[..5].copy_from_slice(format!("{length:05}").as_bytes());
            record[12..17].copy_from_slice(format!("{base:05}").as_bytes());
            let (fields, losses) = parsed(&record).expect("the other fields are sound");
            assert_eq!(fields.len(), 2);
            assert_eq!(
                losses,
                [format!("data-uncovered : {bytes} bytes that no field of the directory covers left out")]
            );
        }
    }

    /// MARC 21 has 001 to 009; what else begins with two zeros is a data field to some readers.
    #[test]
    fn an_odd_tag_costs_its_field_alone() {
        for tag in ["0-1", "00A", "000", "   ", "24\u{e}"] {
            let bytes = assemble(LEADER, &[("001", b"x\x1e"), (tag, b"lost\x1e"), ("245", b"10\x1faT\x1e")]);
            let (fields, losses) = parsed(&bytes).expect("the other fields are sound");
            assert_eq!(fields, ["001 x", "245 10 $aT"], "{tag:?}");
            assert_eq!(losses, [format!("tag-invalid : tag {tag:?}; field left out")]);
        }
    }

    #[test]
    fn a_record_without_fields_is_read_and_mentioned() {
        let (fields, losses) = parsed(&assemble(LEADER, &[])).expect("a leader is something");
        assert_eq!((fields.len(), losses), (0, vec!["no-marc-fields : the record has no field".to_owned()]));
    }

    proptest::proptest! {
        /// The quick way may give up on anything, but what it reads is what the careful way reads.
        #[test]
        fn the_quick_and_the_careful_way_agree(
            fields in proptest::collection::vec(("00[1-9]|[1-9][0-9]{2}", "[ 0-9]{0,3}(\u{1f}[a-c<]?[a-z é\u{fffd}\u{7}]{0,6}){0,4}"), 0..8)
        ) {
            let fields: Vec<(String, Vec<u8>)> =
                fields.into_iter().map(|(tag, field)| (tag, [field.into_bytes(), vec![FIELD_TERMINATOR]].concat())).collect();
            let bytes = assemble(LEADER, &fields.iter().map(|(tag, field)| (tag.as_str(), field.as_slice())).collect::<Vec<_>>());
            let parts = Parts::of(&bytes).expect("well assembled");
            let (mut quick, mut careful, mut losses) = (Record::default(), Record::default(), Losses::default());
            let went_quickly = parts.note_down(&mut quick).is_some();
            parts.copy_into(&mut Builder { record: &mut careful, losses: &mut losses, policy: OnIllegal::Drop }).expect("parses");
            if went_quickly {
                proptest::prop_assert_eq!(quick, careful);
                proptest::prop_assert_eq!(losses.into_vec(), Vec::new());
            }
        }
    }
}
