//! Sierra's own rendering of a bib as MARC, used to check ours.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::field::Field;
use super::loss::{Loss, LossKind};
use super::marc_json;
use super::model::Record;
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

/// Compares `record`, made by [`super::from_sierra()`] with `settings`, with the `marc` key of the same entry
/// (MARC-in-JSON). Sierra orders fields by group tag, so order says nothing; what [`super::from_sierra()`] leaves out or
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marc::from_sierra;
    use crate::record::{RecordNumber, Subfield, VarField};

    const SIERRAS: &str = r#"{"leader":"00000dam  2200000 a 4500","fields":[{"650":{"subfields":[{"a":"Birds"}],"ind1":" ","ind2":"0"}},
        {"650":{"subfields":[{"a":"Nests"}],"ind1":" ","ind2":"0"}},{"001":"36165241"},{"003":"OCoLC"},{"005":""}]}"#;

    fn fields() -> Vec<VarField> {
        let control = |tag: &str, content: &str| VarField {
            marc_tag: Some(tag.into()),
            content: Some(content.into()),
            ..VarField::default()
        };
        let subject = |content: &str| VarField {
            marc_tag: Some("650".into()),
            ind2: Some("0".into()),
            subfields: vec![Subfield { tag: "a".into(), content: content.into() }],
            ..VarField::default()
        };
        let leader =
            VarField { field_tag: "_".into(), content: Some("00000dam  2200000 a 4500".into()), ..VarField::default() };
        vec![control("001", "36165241"), control("003", "OCoLC"), subject("Nests"), subject("Birds"), leader]
    }

    fn compare(fields: &[VarField], marc: &str, control_number: ControlNumber) -> Comparison {
        let settings = MarcSettings { control_number, ..MarcSettings::default() };
        let (record, _) = from_sierra(RecordNumber::new(7), fields, &settings).expect("converts");
        let raw = RawValue::from_string(marc.to_owned()).expect("JSON");
        check_against(&record, &raw, &settings)
    }

    #[test]
    fn order_status_and_renumbering_are_no_difference() {
        for control_number in [ControlNumber::Keep, ControlNumber::Sierra] {
            let comparison = compare(&fields(), SIERRAS, control_number);
            assert_eq!((comparison.loss(), comparison), (None, Comparison::Same), "{control_number:?}");
        }
    }

    #[test]
    fn every_other_difference_is_counted_by_tag() {
        let mut ours = fields();
        ours[2].subfields[0].content.push('!');
        ours[3].ind1 = Some("1".into());
        ours.push(VarField { marc_tag: Some("008".into()), content: Some("x".into()), ..VarField::default() });
        let marc =
            SIERRAS.replace(" a 4500", " i 4500").replace(r#"{"003":"OCoLC"}"#, r#"{"003":"OCoLC"},{"003":"OCoLC"}"#);
        let loss = compare(&ours, &marc, ControlNumber::Keep).loss().expect("they differ");
        assert_eq!(loss.kind, LossKind::SierraMarcDiffers);
        assert_eq!(loss.detail, "leader; only ours: 008 (1), 650 (2); only Sierra's: 003 (1), 650 (2)");
    }

    #[test]
    fn what_cannot_be_read_is_said_to_be_that() {
        for marc in ["null", "[]", "{}", r#"{"leader":7}"#, r#"{"fields":{}}"#] {
            let comparison = compare(&fields(), marc, ControlNumber::Keep);
            assert!(matches!(comparison, Comparison::Unreadable(_)), "{marc}: {comparison:?}");
            assert!(comparison.loss().is_some_and(|loss| loss.detail.starts_with("Sierra's MARC cannot be read: ")));
        }
    }
}
