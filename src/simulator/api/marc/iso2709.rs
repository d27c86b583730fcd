//! Writes ISO 2709, with its ceilings: a record of 99,999 bytes, a field of 9,999.

use super::super::super::world::{Content, VarField};

/// The longest record that five digits can measure.
const LONGEST_RECORD: usize = 99_999;
/// The longest field that four digits can measure, its terminator included.
const LONGEST_FIELD: usize = 9_999;
/// Bytes of leader, of one directory entry, and of the two terminators around the fields.
const LEADER: usize = 24;
const ENTRY: usize = 12;
const TERMINATORS: usize = 2;

/// A record being put together; fields that no longer fit are left out and counted.
pub(super) struct Draft {
    leader: String,
    fields: Vec<(String, Vec<u8>)>,
    length: usize,
    left_out: usize,
}

impl Draft {
    /// A record without fields yet.
    pub(super) fn new(leader: &str) -> Self {
        Self { leader: leader.to_owned(), fields: Vec::new(), length: LEADER + TERMINATORS, left_out: 0 }
    }

    /// Adds a field if it has a MARC tag and fits.
    pub(super) fn push(&mut self, field: &VarField) {
        let Some(tag) = field.marc_tag.as_deref().filter(|tag| tag.len() == 3) else { return };
        let data = encoded(field);
        if data.len() > LONGEST_FIELD || self.length + ENTRY + data.len() > LONGEST_RECORD {
            self.left_out += 1;
            return;
        }
        self.length += ENTRY + data.len();
        self.fields.push((tag.to_owned(), data));
    }

    /// The record's bytes and how many fields did not fit.
    pub(super) fn finish(mut self) -> (Vec<u8>, usize) {
        self.fields.sort_by(|(left, _), (right, _)| left.cmp(right));
        let base = LEADER + self.fields.len() * ENTRY + 1;
        let kinds = self.leader.get(5..9).unwrap_or("nam ");
        let description = self.leader.get(17..20).unwrap_or(" a ");
        let mut record = format!("{:05}{kinds}a22{base:05}{description}4500", self.length).into_bytes();
        let mut start = 0;
        for (tag, data) in &self.fields {
            record.extend_from_slice(format!("{tag}{:04}{start:05}", data.len()).as_bytes());
            start += data.len();
        }
        record.push(0x1e);
        for (_, data) in &self.fields {
            record.extend_from_slice(data);
        }
        record.push(0x1d);
        (record, self.left_out)
    }
}

fn encoded(field: &VarField) -> Vec<u8> {
    let mut data = Vec::new();
    match &field.content {
        Content::Text(text) => data.extend_from_slice(text.as_bytes()),
        Content::Subfields(subfields) => {
            let mut text = String::from_iter(field.indicators.unwrap_or([' ', ' ']));
            for (code, value) in subfields {
                text.push('\u{1f}');
                text.push(*code);
                text.push_str(value);
            }
            data.extend_from_slice(text.as_bytes());
        }
    }
    data.push(0x1e);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_base_address_are_true() {
        let mut draft = Draft::new("00000nam  2200000 a 4500");
        draft.push(&VarField::marc('t', "245", "10").with('a', "Größe"));
        draft.push(&VarField::control('o', "001", "ex1"));
        let (record, left_out) = draft.finish();
        let text = String::from_utf8(record).unwrap();
        assert_eq!(left_out, 0);
        assert_eq!(text, "00066nam a2200049 a 4500001000400000245001200004\u{1e}ex1\u{1e}10\u{1f}aGröße\u{1e}\u{1d}");
        assert_eq!(text.len(), 66);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_counted() {
        let mut draft = Draft::new("00000nam  2200000 a 4500");
        for number in 0..3_000 {
            draft.push(&VarField::marc('i', "945", "  ").with('a', format!("item {number:030}")));
        }
        draft.push(&VarField::marc('n', "500", "  ").with('a', "x".repeat(9_996)));
        let (record, left_out) = draft.finish();
        assert!(record.len() <= 99_999 && record.len() > 99_900, "{}", record.len());
        assert!(left_out > 1_000);
    }
}
