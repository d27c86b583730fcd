//! Bibs that are hard to convert: what real records have been seen to hold.

use serde::Deserialize;

use super::{Content, NoSuchRecord, VarField, World};

/// Something odd about the fields of a bib.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Oddity {
    /// Characters that XML 1.0 forbids, in a note (BR-083).
    ForbiddenCharacters,
    /// A leader of 23 characters (BR-087).
    ShortLeader,
    /// A leader of 25 characters (BR-087).
    LongLeader,
    /// A leader with nonsense where numbers belong (BR-085, BR-087).
    OddLeader,
    /// A leader that says the record is deleted, while it is not (BR-088).
    DeletedLeader,
    /// No leader (BR-022).
    NoLeader,
    /// A MARC tag of two characters.
    ShortTag,
    /// A control field with subfields.
    ControlWithSubfields,
    /// A data field with a text instead of subfields.
    DataWithText,
    /// A data field without indicators (BR-023).
    NoIndicators,
    /// A subfield code that MARC does not allow.
    BadSubfieldCode,
    /// A title without its main subfield, and two of a subfield that may come once (BR-023).
    OddSubfields,
    /// No fields at all (BR-048).
    NoFields,
    /// A field of 12,912 bytes, more than ISO 2709 can hold (BR-082).
    LongField,
    /// A record of more than 99,999 bytes, no field of which is too long (BR-082).
    LongRecord,
    /// A record of more than 1,300,000 bytes (BR-017).
    HugeRecord,
}

impl Oddity {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::ForbiddenCharacters,
        Self::ShortLeader,
        Self::LongLeader,
        Self::OddLeader,
        Self::DeletedLeader,
        Self::NoLeader,
        Self::ShortTag,
        Self::ControlWithSubfields,
        Self::DataWithText,
        Self::NoIndicators,
        Self::BadSubfieldCode,
        Self::OddSubfields,
        Self::NoFields,
        Self::LongField,
        Self::LongRecord,
        Self::HugeRecord,
    ];

    fn plant(self, fields: &mut Vec<VarField>) {
        match self {
            Self::ForbiddenCharacters => {
                let text = "form feed \u{c}, escape \u{1b}, nul \0, no character \u{fffe} & a \u{7f}";
                fields.push(VarField::marc('n', "500", "  ").with('a', text));
            }
            Self::ShortLeader => lead(fields, "00000nam  2200000 a 450"),
            Self::LongLeader => lead(fields, "00000nam  2200000 a 45000"),
            Self::OddLeader => lead(fields, "     nam  4400000<a 22  "),
            Self::DeletedLeader => lead(fields, "00000dam  2200000 a 4500"),
            Self::NoLeader => fields.retain(|field| field.field_tag != '_'),
            Self::ShortTag => fields.push(VarField::marc('o', "35", "  ").with('a', "(XxSim)short")),
            Self::ControlWithSubfields => fields.push(VarField::marc('y', "007", "  ").with('a', "ta")),
            Self::DataWithText => fields.push(VarField {
                content: Content::Text("a data field without subfields".into()),
                ..VarField::marc('n', "500", "  ")
            }),
            Self::NoIndicators => fields.push(VarField {
                indicators: None,
                ..VarField::marc('n', "500", "  ").with('a', "indicators are missing")
            }),
            Self::BadSubfieldCode => {
                let field = VarField::marc('n', "500", "  ").with('a', "good");
                fields.push(field.with('|', "a bar").with('É', "a letter").with(' ', "a space"));
            }
            Self::OddSubfields => {
                fields.retain(|field| !field.is("245"));
                fields
                    .push(VarField::marc('t', "245", "97").with('b', "a rest without a beginning").with('b', "twice"));
                fields.push(VarField::marc('a', "100", "1 ").with('a', "Two, Zeros").with('0', "n1").with('0', "n2"));
            }
            Self::NoFields => fields.clear(),
            Self::LongField => fields.push(filler(12_912 - 5)),
            Self::LongRecord => fields.extend((0..12).map(|_| filler(9_000))),
            Self::HugeRecord => fields.extend((0..145).map(|_| filler(9_000))),
        }
    }
}

impl World {
    /// Makes a bib odd; an oddity of the leader replaces the leader.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn plant(&mut self, id: u64, oddity: Oddity) -> Result<(), NoSuchRecord> {
        self.rewrite_bib(id, |fields| oddity.plant(fields))
    }
}

fn lead(fields: &mut Vec<VarField>, leader: &str) {
    fields.retain(|field| field.field_tag != '_');
    fields.push(VarField::plain('_', leader));
}

/// A note whose text has this many bytes.
fn filler(bytes: usize) -> VarField {
    VarField::marc('n', "500", "  ").with('a', "All work and no play. ".chars().cycle().take(bytes).collect::<String>())
}
