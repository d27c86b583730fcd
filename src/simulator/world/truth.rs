//! What the library really holds, to compare a copy with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Content, Slot, VarField, World, record_number_field};
use crate::simulator::api::serve;
use crate::simulator::kind::Kind;

/// Everything of one kind, as it would be served once all commits are visible.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Live records by number.
    pub live: BTreeMap<u64, TrueRecord>,
    /// Deleted records by number, with the local day of their deletion. Those whose tombstone is gone are here too.
    pub deleted: BTreeMap<u64, Date>,
}

/// One live record.
#[derive(Debug, Clone, PartialEq)]
pub struct TrueRecord {
    /// The record number.
    pub id: u64,
    /// `updatedDate`.
    pub updated: Timestamp,
    /// Whether it is hidden from readers.
    pub suppressed: bool,
    /// The bibs that an item hangs from, ascending; empty for other kinds.
    pub links: Vec<u64>,
    /// All fields that the API can serve of it, as it would serve them; but `marc`, which repeats `varFields`.
    pub json: String,
    /// The leader and MARC fields of a bib in stored order, without fields that have no MARC tag; else empty.
    pub marc: Vec<MarcField>,
}

/// A MARC field; the leader has the tag `LDR` and is there only when the record has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarcField {
    /// The tag as stored, which need not be three digits.
    pub tag: String,
    /// The indicators, when the field has any.
    pub indicators: Option<[char; 2]>,
    /// The content.
    pub value: MarcValue,
}

/// What a MARC field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarcValue {
    /// A text: control fields and the leader.
    Text(String),
    /// Subfields by code.
    Subfields(Vec<(char, String)>),
}

impl TrueRecord {
    /// The fields to look into.
    #[must_use]
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.json).expect("the simulator writes valid JSON")
    }
}

impl World {
    /// All records of a kind. For a large library prefer [`World::true_record`]: this holds everything at once.
    #[must_use]
    pub fn truth(&self, kind: Kind) -> Truth {
        let live = self.ids(kind).into_iter().filter_map(|id| Some((id, self.true_record(kind, id)?))).collect();
        Truth { live, deleted: self.deleted(kind) }
    }

    /// The deleted records of a kind with the local day of their deletion.
    #[must_use]
    pub fn deleted(&self, kind: Kind) -> BTreeMap<u64, Date> {
        fn dead<R: Clone>(shelf: &super::Shelf<R>) -> BTreeMap<u64, Date> {
            let tombstones = shelf.all_committed().filter_map(|(id, slot)| match slot {
                Slot::Deleted(_, day) => Some((id, *day)),
                Slot::Live(..) => None,
            });
            tombstones.chain(shelf.forgotten().iter().map(|(id, day)| (*id, *day))).collect()
        }
        match kind {
            Kind::Bibs => dead(&self.bibs),
            Kind::Items => dead(&self.items),
            Kind::Patrons => dead(&self.patrons),
        }
    }

    /// One live record, or nothing when it is deleted or unknown.
    #[must_use]
    pub fn true_record(&self, kind: Kind, id: u64) -> Option<TrueRecord> {
        let json = serve::whole_entry(self, kind, id)?;
        let (updated, suppressed, mut links, marc) = match kind {
            Kind::Bibs => {
                let slot = self.bibs.committed(id)?;
                let bib = slot.live()?;
                let fields = bib.description().fields_with(record_number_field(id));
                let marc = fields.iter().filter_map(marc_field).collect();
                (slot.stamps().updated, self.suppresses(bib.code3), Vec::new(), marc)
            }
            Kind::Items => {
                let slot = self.items.committed(id)?;
                let item = slot.live()?;
                (slot.stamps().updated, self.suppresses(item.code2), item.bib_ids.clone(), Vec::new())
            }
            Kind::Patrons => {
                let slot = self.patrons.committed(id)?;
                (slot.stamps().updated, slot.live()?.is_suppressed, Vec::new(), Vec::new())
            }
        };
        links.sort_unstable();
        Some(TrueRecord { id, updated, suppressed, links, json, marc })
    }

    /// Every value of a patron that may appear nowhere outside the patron stream, and there only masked: names,
    /// cards, addresses and so on, and the record numbers that items carry in fixed fields 66 and 67 (BR-124).
    #[must_use]
    pub fn canaries(&self) -> Vec<String> {
        let mut canaries = Vec::new();
        for (id, slot) in self.patrons.all_committed() {
            let Some(patron) = slot.live() else { continue };
            let member = &patron.member;
            canaries.push(id.to_string());
            canaries.extend([&member.name, &member.barcode, &member.email, &member.phone].map(String::clone));
            canaries.extend([&member.unique_id, &member.message].map(String::clone));
            canaries.extend(member.address.iter().cloned());
        }
        for (_, slot) in self.items.all_committed() {
            let Some(item) = slot.live() else { continue };
            canaries.extend(item.circulation.last_patron.iter().map(u64::to_string));
            canaries.extend(item.circulation.loan.iter().map(|loan| loan.patron.to_string()));
        }
        canaries.sort_unstable();
        canaries.dedup();
        canaries
    }
}

fn marc_field(field: &VarField) -> Option<MarcField> {
    let tag = match &field.marc_tag {
        Some(tag) => tag.clone(),
        None if field.field_tag == '_' => "LDR".into(),
        None => return None,
    };
    let value = match &field.content {
        Content::Text(text) => MarcValue::Text(text.clone()),
        Content::Subfields(subfields) => MarcValue::Subfields(subfields.clone()),
    };
    Some(MarcField { tag, indicators: field.indicators, value })
}
