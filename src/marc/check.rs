//! Sierra's own rendering of a bib as MARC, used to check ours.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::loss::{Loss, LossKind};
use super::marc_json;
use super::model::{Field, Record};
use super::read::Damage;
use super::settings::{ControlNumber, MarcSettings, OnIllegal};
use super::tag::Tag;

/// What came of comparing a record with Sierra's own MARC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// Both say the same, order aside.
    Same,
    /// They differ.
    Different(Difference),
    /// Sierra's cannot be read.
    Unreadable(Damage),
}

/// Where two renderings of one record differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Whether the leaders do, lengths aside.
    pub leader: bool,
    /// Fields that only we have: how many of each tag.
    pub only_ours: BTreeMap<Tag, usize>,
    /// Fields that only Sierra has: how many of each tag.
    pub only_sierras: BTreeMap<Tag, usize>,
}

/// Compares `record`, made by [`super::from_sierra`] with `settings`, with the `marc` key of the same entry
/// (MARC-in-JSON). Sierra orders fields by group tag, so order says nothing; what [`super::from_sierra`] leaves out or
/// moves by rule is no difference either: empty control fields, a status of `d`, and 001, 003 and 035 if the settings
/// put Sierra's number into 001.
#[must_use]
pub fn check_against(record: &Record, sierra_marc_json: &RawValue, settings: &MarcSettings) -> Comparison {
    let mut sierras = Record::default();
    let policy = if settings.on_illegal == OnIllegal::Replace { OnIllegal::Replace } else { OnIllegal::Drop };
    if let Err(damage) = marc_json::read::parse(sierra_marc_json.get().as_bytes(), &mut sierras, policy) {
        return Comparison::Unreadable(damage);
    }
    let renumbered = settings.control_number == ControlNumber::Sierra;
    let (ours, theirs) = (sorted_fields(record, renumbered), sorted_fields(&sierras, renumbered));
    let mut leader = *sierras.leader();
    if leader.status() == b'd' {
        leader = leader.corrected();
    }
    let mut difference = Difference { leader: leader != *record.leader(), ..Difference::default() };
    difference.compare(&ours, &theirs);
    if difference == Difference::default() { Comparison::Same } else { Comparison::Different(difference) }
}

impl Comparison {
    /// The comparison as a loss to report, unless both say the same.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        let detail = match self {
            Self::Same => return None,
            Self::Unreadable(damage) => format!("Sierra's MARC cannot be read: {damage}"),
            Self::Different(difference) => difference.to_string(),
        };
        Some(Loss { kind: LossKind::SierraMarcDiffers, field: String::new(), detail })
    }
}

impl Difference {
    /// Walks two sorted lists side by side.
    fn compare(&mut self, ours: &[Field<'_>], theirs: &[Field<'_>]) {
        let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(our), Some(their)) => our.cmp(their),
            };
            if order.is_le()
                && let Some(our) = ours.next()
                && order.is_lt()
            {
                *self.only_ours.entry(our.tag()).or_default() += 1;
            }
            if order.is_ge()
                && let Some(their) = theirs.next()
                && order.is_gt()
            {
                *self.only_sierras.entry(their.tag()).or_default() += 1;
            }
        }
    }
}

impl std::fmt::Display for Difference {
    /// `leader; only ours: 245 (1), 650 (2); only Sierra's: 245 (1)`, at most eight tags of each.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 8;
        let mut parts = Vec::new();
        if self.leader {
            parts.push("leader".to_owned());
        }
        for (name, tags) in [("only ours", &self.only_ours), ("only Sierra's", &self.only_sierras)] {
            if tags.is_empty() {
                continue;
            }
            let listed: Vec<String> = tags.iter().take(SHOWN).map(|(tag, count)| format!("{tag} ({count})")).collect();
            let more = if tags.len() > SHOWN { " and more" } else { "" };
            parts.push(format!("{name}: {}{more}", listed.join(", ")));
        }
        formatter.write_str(&parts.join("; "))
    }
}

fn sorted_fields(record: &Record, is_renumbered: bool) -> Vec<Field<'_>> {
    let moved = [Tag::CONTROL_NUMBER, Tag::CONTROL_NUMBER_AGENCY, Tag::SYSTEM_CONTROL_NUMBER];
    let mut fields: Vec<Field<'_>> = record
        .fields()
        .filter(|field| !matches!(field, Field::Control { value: "", .. }))
        .filter(|field| !(is_renumbered && moved.contains(&field.tag())))
        .collect();
    fields.sort_unstable();
    fields
}
