//! A MARC record that is valid once built.

use std::fmt;

use super::error::MarcError;
use super::field::{Field, Subfield, SubfieldSpan, Subfields, range, slice};
use super::leader::Leader;
use super::settings::OnIllegal;
use super::tag::{Indicator, SubfieldCode, Tag};
use super::text::{self, Findings};

/// A MARC record: a leader and fields in order.
///
/// Whatever is in it can be written in MARCXML and MARC-in-JSON as it stands, and in ISO 2709 if it fits there:
/// the leader has 24 characters, tags, indicators and subfield codes are checked ([`Tag`], [`Indicator`],
/// [`SubfieldCode`]), text holds only what XML 1.0 can hold, a control field has no subfields and a data field has at
/// least one.
///
/// All text lies in one buffer and fields are spans of it, so that a record read into the memory of the one before
/// costs no allocation. That is why fields are views ([`Field`]) and are changed by taking away and adding.
#[derive(Clone, Default)]
pub struct Record {
    leader: Leader,
    text: String,
    fields: Vec<FieldSpan>,
    subfields: Vec<SubfieldSpan>,
}

/// The most text one record may hold. No catalogue record comes near; it bounds what a hostile file can cost.
pub const MAX_TEXT_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, Copy)]
struct FieldSpan {
    tag: Tag,
    indicators: [Indicator; 2],
    /// Of the text for a control field, of the subfields for a data field.
    start: u32,
    end: u32,
}

impl Record {
    /// An empty record with this leader.
    #[must_use]
    pub fn new(leader: Leader) -> Self {
        Self { leader, ..Self::default() }
    }

    /// The stand-in for a deleted record in MARC outputs: leader status `d` (BR-088) and the number in 001.
    #[must_use]
    pub fn tombstone(id: crate::record::RecordNumber) -> Self {
        let mut record = Self::new(Leader::default().deleted());
        record.append_control(Tag::CONTROL_NUMBER, &id.to_string(), OnIllegal::Drop).expect("digits always fit");
        record
    }

    /// The leader.
    #[must_use]
    pub const fn leader(&self) -> &Leader {
        &self.leader
    }

    /// Replaces the leader.
    pub fn set_leader(&mut self, leader: Leader) {
        self.leader = leader;
    }

    /// The fields in order.
    #[must_use = "iterators do nothing unless consumed"]
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Field<'_>> + Clone {
        self.fields.iter().map(|span| self.view(span))
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The value of the first control field with this tag.
    #[must_use]
    pub fn control(&self, tag: Tag) -> Option<&str> {
        self.fields().find_map(|field| match field {
            Field::Control { tag: found, value } if found == tag => Some(value),
            _ => None,
        })
    }

    /// Adds a control field at the end.
    ///
    /// # Errors
    /// When the tag is that of a data field, the value holds a character that XML 1.0 forbids, or the record would
    /// grow beyond [`MAX_TEXT_BYTES`]. The record is then unchanged.
    pub fn push_control(&mut self, tag: Tag, value: &str) -> Result<(), MarcError> {
        if !tag.is_control() {
            return Err(MarcError::TagClass { tag, expected: "control" });
        }
        refuse_illegal(value, || tag.to_string())?;
        self.append_control(tag, value, OnIllegal::Quarantine).map(drop)
    }

    /// Adds a data field at the end.
    ///
    /// # Errors
    /// When the tag is that of a control field, there is no subfield, a value holds a character that XML 1.0 forbids,
    /// or the record would grow beyond [`MAX_TEXT_BYTES`]. The record is then unchanged.
    pub fn push_data<'a>(
        &mut self,
        tag: Tag,
        indicators: [Indicator; 2],
        subfields: impl IntoIterator<Item = (SubfieldCode, &'a str)>,
    ) -> Result<(), MarcError> {
        if tag.is_control() {
            return Err(MarcError::TagClass { tag, expected: "data" });
        }
        let (text_before, subfields_before) = (self.text.len(), self.subfields.len());
        let appended = (|| {
            for (code, value) in subfields {
                refuse_illegal(value, || format!("{tag}${code}"))?;
                self.append_subfield(code, value, OnIllegal::Quarantine)?;
            }
            if self.close_data(tag, indicators, subfields_before) { Ok(()) } else { Err(MarcError::NoSubfield { tag }) }
        })();
        if appended.is_err() {
            self.text.truncate(text_before);
            self.subfields.truncate(subfields_before);
        }
        appended
    }

    /// Sorts the fields by tag, digits before letters; fields with the same tag keep their order.
    pub fn sort_by_tag(&mut self) {
        if !self.fields.is_sorted_by_key(|field| field.tag) {
            self.fields.sort_by_key(|field| field.tag);
        }
    }

    /// Keeps the fields for which `keep` says so; returns how many went. The text of those that went is gone from
    /// memory too.
    pub fn retain_fields(&mut self, mut keep: impl FnMut(&Field<'_>) -> bool) -> usize {
        self.rebuild(|field| keep(field), |_, _| true).0
    }

    /// Keeps the subfields for which `keep` says so; returns how many went. A data field left without subfields
    /// goes as well. The text of what went is gone from memory too.
    pub fn retain_subfields(&mut self, keep: impl FnMut(Tag, Subfield<'_>) -> bool) -> usize {
        self.rebuild(|_| true, keep).1
    }

    fn rebuild(
        &mut self,
        mut keep_field: impl FnMut(&Field<'_>) -> bool,
        mut keep_subfield: impl FnMut(Tag, Subfield<'_>) -> bool,
    ) -> (usize, usize) {
        const FITS: &str = "a part of a record fits where the whole did";
        let (mut fields_gone, mut subfields_gone) = (0, 0);
        let mut kept = Self::new(self.leader);
        for field in self.fields() {
            if !keep_field(&field) {
                fields_gone += 1;
                continue;
            }
            match field {
                Field::Control { tag, value } => {
                    kept.append_control(tag, value, OnIllegal::Drop).expect(FITS);
                }
                Field::Data { tag, indicators, subfields } => {
                    let first = kept.subfields.len();
                    for subfield in subfields.iter() {
                        if keep_subfield(tag, subfield) {
                            kept.append_subfield(subfield.code, subfield.value, OnIllegal::Drop).expect(FITS);
                        } else {
                            subfields_gone += 1;
                        }
                    }
                    kept.close_data(tag, indicators, first);
                }
            }
        }
        if fields_gone + subfields_gone > 0 {
            *self = kept;
        }
        (fields_gone, subfields_gone)
    }

    fn view(&self, span: &FieldSpan) -> Field<'_> {
        if span.tag.is_control() {
            Field::Control { tag: span.tag, value: slice(&self.text, span.start, span.end) }
        } else {
            let spans = self.subfields.get(range(span.start, span.end)).unwrap_or_default();
            Field::Data { tag: span.tag, indicators: span.indicators, subfields: Subfields { text: &self.text, spans } }
        }
    }
}

/// What readers and `from_sierra` build with: unchecked order of calls, checked text.
impl Record {
    /// Empties the record and keeps its memory.
    pub(super) fn clear(&mut self, leader: Leader) {
        self.leader = leader;
        self.text.clear();
        self.fields.clear();
        self.subfields.clear();
    }

    /// All text of all fields in one piece, and perhaps delimiters between: for searching.
    pub(super) fn all_text(&self) -> &str {
        &self.text
    }

    /// Makes room for text that is about to be appended.
    pub(super) fn reserve(&mut self, text_bytes: usize, fields: usize, subfields: usize) {
        self.text.reserve(text_bytes.min(MAX_TEXT_BYTES));
        self.fields.reserve(fields);
        self.subfields.reserve(subfields);
    }

    /// Adds a control field, cleaning its value.
    pub(super) fn append_control(&mut self, tag: Tag, value: &str, policy: OnIllegal) -> Result<Findings, MarcError> {
        let (start, end, findings) = self.append_text(value, policy)?;
        self.fields.push(FieldSpan { tag, indicators: [Indicator::BLANK; 2], start, end });
        Ok(findings)
    }

    /// Adds a subfield to the field that [`Record::close_data`] will make, cleaning its value.
    pub(super) fn append_subfield(
        &mut self,
        code: SubfieldCode,
        value: &str,
        policy: OnIllegal,
    ) -> Result<Findings, MarcError> {
        let (start, end, findings) = self.append_text(value, policy)?;
        self.subfields.push(SubfieldSpan { code, start, end });
        Ok(findings)
    }

    /// Takes text that is legal but for the delimiters around the parts that will be adopted; `None` if it is too long.
    pub(super) fn adopt_text(&mut self, text: &str) -> Option<()> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        self.text.clear();
        self.text.push_str(text);
        Some(())
    }

    /// Makes a control field of a part of the adopted text.
    pub(super) fn adopt_control(&mut self, tag: Tag, start: usize, end: usize) -> Option<()> {
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        self.fields.push(FieldSpan { tag, indicators: [Indicator::BLANK; 2], start, end });
        Some(())
    }

    /// Makes a subfield of a part of the adopted text, for [`Record::close_data`].
    pub(super) fn adopt_subfield(&mut self, code: SubfieldCode, start: usize, end: usize) -> Option<()> {
        self.subfields.push(SubfieldSpan { code, start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? });
        Some(())
    }

    /// How many subfields there are: the `first` of the field that comes next.
    pub(super) fn subfield_count(&self) -> usize {
        self.subfields.len()
    }

    /// Takes back the subfields from `first` on.
    pub(super) fn forget_subfields(&mut self, first: usize) {
        self.subfields.truncate(first);
    }

    /// Makes a data field of the subfields from `first` on; `false` if there is none.
    pub(super) fn close_data(&mut self, tag: Tag, indicators: [Indicator; 2], first: usize) -> bool {
        let (Ok(start), Ok(end)) = (u32::try_from(first), u32::try_from(self.subfields.len())) else { return false };
        if start == end {
            return false;
        }
        self.fields.push(FieldSpan { tag, indicators, start, end });
        true
    }

    fn append_text(&mut self, value: &str, policy: OnIllegal) -> Result<(u32, u32, Findings), MarcError> {
        let too_large = MarcError::TooLarge { limit_bytes: MAX_TEXT_BYTES };
        if self.text.len().saturating_add(value.len()) > MAX_TEXT_BYTES {
            return Err(too_large);
        }
        let start = self.text.len();
        let findings = text::clean_onto(&mut self.text, value, policy);
        match (u32::try_from(start), u32::try_from(self.text.len())) {
            (Ok(start), Ok(end)) => Ok((start, end, findings)),
            _ => Err(too_large),
        }
    }
}

impl PartialEq for Record {
    /// Same leader but for its lengths, same fields in the same order.
    fn eq(&self, other: &Self) -> bool {
        self.leader == other.leader && self.fields().eq(other.fields())
    }
}

impl Eq for Record {}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "LDR {}", self.leader)?;
        self.fields().try_for_each(|field| writeln!(formatter, "{field:?}"))
    }
}

fn refuse_illegal(value: &str, field: impl Fn() -> String) -> Result<(), MarcError> {
    if !text::is_suspect(value.as_bytes()) {
        return Ok(());
    }
    match value.chars().find(|&character| !text::is_legal(character)) {
        None => Ok(()),
        Some(character) => Err(MarcError::IllegalCharacter { field: field(), code_point: text::code_point(character) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> Tag {
        Tag::new(text).expect("a tag")
    }

    fn code(byte: u8) -> SubfieldCode {
        SubfieldCode::new(byte).expect("a code")
    }

    fn sample() -> Record {
        let mut record = Record::new(Leader::default());
        record.push_control(tag("001"), "x").expect("valid");
        record
            .push_data(tag("909"), [Indicator::BLANK; 2], [(code(b'a'), "private"), (code(b'b'), "open")])
            .expect("valid");
        record.push_data(tag("590"), [Indicator::BLANK; 2], [(code(b'x'), "private")]).expect("valid");
        record
    }

    fn lines(record: &Record) -> Vec<String> {
        record.fields().map(|field| format!("{field:?}")).collect()
    }

    #[test]
    fn what_a_record_cannot_hold_is_refused_and_leaves_it_as_it_was() {
        let mut record = sample();
        let illegal = |field: &str| MarcError::IllegalCharacter { field: field.into(), code_point: "U+001F".into() };
        assert_eq!(
            record.push_control(tag("245"), "x"),
            Err(MarcError::TagClass { tag: tag("245"), expected: "control" })
        );
        assert_eq!(record.push_control(tag("001"), "a\u{1f}"), Err(illegal("001")));
        let blank = [Indicator::BLANK; 2];
        assert_eq!(
            record.push_data(tag("001"), blank, [(code(b'a'), "x")]),
            Err(MarcError::TagClass { tag: tag("001"), expected: "data" })
        );
        assert_eq!(record.push_data(tag("245"), blank, []), Err(MarcError::NoSubfield { tag: tag("245") }));
        assert_eq!(
            record.push_data(tag("245"), blank, [(code(b'a'), "x"), (code(b'b'), "\u{1f}")]),
            Err(illegal("245$b"))
        );
        assert_eq!(record, sample());
        assert_eq!(record.text, sample().text, "nothing of the refused ones is left");
    }

    #[test]
    fn text_beyond_the_limit_is_refused() {
        let mut record = sample();
        let half = "x".repeat(MAX_TEXT_BYTES / 2);
        record.push_control(tag("009"), &half).expect("half fits");
        assert_eq!(record.push_control(tag("009"), &half), Err(MarcError::TooLarge { limit_bytes: MAX_TEXT_BYTES }));
        assert_eq!(record.len(), 4);
    }

    /// A12: what is masked before the outbox is gone, not just out of sight.
    #[test]
    fn dropped_fields_and_subfields_are_gone_from_memory() {
        let mut record = sample();
        assert_eq!(record.retain_fields(|field| field.tag() != tag("590")), 1);
        assert_eq!(record.retain_subfields(|tag, subfield| !(tag.as_str() == "909" && subfield.code == code(b'a'))), 1);
        assert_eq!(lines(&record), ["001 x", "909    $bopen"]);
        assert!(!record.text.contains("private"));
        assert_eq!(record.retain_subfields(|_, subfield| subfield.code != code(b'b')), 1);
        assert_eq!(lines(&record), ["001 x"], "a field without subfields goes");
        assert_eq!((record.retain_fields(|_| true), record.len()), (0, 1));
    }

    #[test]
    fn sorting_keeps_the_order_within_a_tag() {
        let mut record = sample();
        record.push_data(tag("590"), [Indicator::BLANK; 2], [(code(b'a'), "second")]).expect("valid");
        record.sort_by_tag();
        let expected = ["001 x", "590    $xprivate", "590    $asecond", "909    $aprivate$bopen"];
        assert_eq!(lines(&record), expected);
    }

    #[test]
    fn records_are_equal_by_what_they_say() {
        let mut other = sample();
        other.push_control(tag("009"), "gone again").expect("valid");
        other.retain_fields(|field| field.tag() != tag("009"));
        other.set_leader(Leader::default().with_lengths(99, 60));
        assert_eq!(other, sample());
        other.set_leader(Leader::default().deleted());
        assert_ne!(other, sample());
        assert_ne!(Record::default(), sample());
    }
}
