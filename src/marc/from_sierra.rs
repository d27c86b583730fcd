//! Sierra's varFields as a MARC record.
//!
//! One surprising field never costs the record or its neighbours (BR-023): it is repaired or left out, and that is
//! reported. `docs/marc.md` tells the rules; their source is sierra-api.md §4.4.

use super::builder::{Builder, short};
use super::error::MarcError;
use super::loss::{Loss, LossKind, Losses};
use super::model::{Field, Record};
use super::settings::{ControlNumber, MarcSettings, OnIllegal};
use super::tag::{Indicator, SubfieldCode, Tag};
use crate::record::{RecordNumber, VarField};

/// The group tag under which Sierra keeps the leader (BR-022).
const LEADER_GROUP: &str = "_";

/// Makes a MARC record of a live bib's varFields: fields sorted by tag, in Sierra's order within a tag.
///
/// Fields without a MARC tag are no MARC and no loss: they stay where they are ([`is_carried`] tells them apart).
///
/// # Errors
/// Only what must be set aside: a character that XML 1.0 forbids under `on_illegal = "quarantine"`, or more text than
/// [`super::model::MAX_TEXT_BYTES`].
pub fn from_sierra(
    id: RecordNumber,
    var_fields: &[VarField],
    settings: &MarcSettings,
) -> Result<(Record, Vec<Loss>), MarcError> {
    let (mut record, mut losses) = (Record::default(), Losses::default());
    reserve(&mut record, var_fields);
    let mut builder = Builder { record: &mut record, losses: &mut losses, policy: settings.on_illegal };
    leader(&mut builder, var_fields);
    for field in var_fields {
        let Some(came) = field.marc_tag.as_deref() else { continue };
        let Some(tag) = builder.tag(came, || format!(" in group {}", short(&field.field_tag))) else { continue };
        if tag.is_control() { control(&mut builder, tag, field)? } else { data(&mut builder, tag, field)? }
    }
    if record.is_empty() {
        losses.push(LossKind::NoMarcFields, "", || format!("none of {} fields is MARC", var_fields.len()));
    }
    if settings.control_number == ControlNumber::Sierra {
        number(&mut record, id)?;
    }
    record.sort_by_tag();
    Ok((record, losses.into_vec()))
}

/// Whether a varField goes into the MARC record: it has a MARC tag or is the leader. Whoever writes the record's JSON
/// beside its MARC keeps the others, so that each field is in one place.
#[must_use]
pub fn is_carried(field: &VarField) -> bool {
    field.marc_tag.is_some() || is_leader(field)
}

fn is_leader(field: &VarField) -> bool {
    field.field_tag == LEADER_GROUP && field.marc_tag.is_none()
}

fn reserve(record: &mut Record, var_fields: &[VarField]) {
    let (mut text, mut subfields) = (0, 0);
    for field in var_fields {
        text += field.content.as_ref().map_or(0, String::len);
        text += field.subfields.iter().map(|subfield| subfield.content.len()).sum::<usize>();
        subfields += field.subfields.len().max(1);
    }
    record.reserve(text, var_fields.len(), subfields);
}

fn leader(builder: &mut Builder<'_>, var_fields: &[VarField]) {
    let mut leaders = var_fields.iter().filter(|field| is_leader(field));
    builder.leader(leaders.next().and_then(|field| field.content.as_deref()));
    let leader = builder.record.leader().without_lengths();
    if leader.status() == b'd' {
        builder.losses.push(LossKind::LeaderStatus, "leader", || "status d on a live record; written as c".to_owned());
        builder.record.set_leader(leader.corrected());
    } else {
        builder.record.set_leader(leader);
    }
    let extra = leaders.count();
    if extra > 0 {
        builder.losses.push(LossKind::LeaderExtra, "leader", || format!("{extra} more ignored"));
    }
}

fn control(builder: &mut Builder<'_>, tag: Tag, field: &VarField) -> Result<(), MarcError> {
    let subfields = field.subfields.len();
    let content = field.content.as_deref().unwrap_or_default();
    if content.is_empty() {
        match subfields {
            0 => builder.losses.push(LossKind::FieldEmpty, tag.as_str(), || "field left out".to_owned()),
            _ => builder.losses.push(LossKind::ControlSubfields, tag.as_str(), || {
                format!("{subfields} subfields and no content; field left out")
            }),
        }
        return Ok(());
    }
    if subfields > 0 {
        builder.losses.push(LossKind::SubfieldsIgnored, tag.as_str(), || {
            format!("{subfields} subfields beside the content left out")
        });
    }
    builder.control(tag, content)
}

fn data(builder: &mut Builder<'_>, tag: Tag, field: &VarField) -> Result<(), MarcError> {
    let first = builder.record.subfield_count();
    for subfield in &field.subfields {
        builder.subfield(tag, &subfield.tag, &subfield.content)?;
    }
    match field.content.as_deref() {
        None | Some("") => {}
        Some(content) if field.subfields.is_empty() => builder.content_as_subfield(tag, content)?,
        Some(content) => builder.losses.push(LossKind::ContentIgnored, tag.as_str(), || {
            format!("{} bytes of content beside subfields left out", content.len())
        }),
    }
    let indicators =
        [builder.indicator(tag, 1, field.ind1.as_deref()), builder.indicator(tag, 2, field.ind2.as_deref())];
    builder.close(tag, indicators, first);
    Ok(())
}

/// Puts Sierra's number into 001 and what was there into 035, unless 035 says it already (sierra-api.md §4.4 item 3).
fn number(record: &mut Record, id: RecordNumber) -> Result<(), MarcError> {
    let stored: Vec<String> = record
        .fields()
        .filter_map(|field| match field {
            Field::Control { tag: Tag::CONTROL_NUMBER, value } => Some(value.trim().to_owned()),
            _ => None,
        })
        .filter(|value| !value.is_empty())
        .collect();
    let agency = record.control(Tag::CONTROL_NUMBER_AGENCY).map(|agency| agency.trim().to_owned());
    record.retain_fields(|field| ![Tag::CONTROL_NUMBER, Tag::CONTROL_NUMBER_AGENCY].contains(&field.tag()));
    // What is appended is digits or was cleaned before, so that no policy has anything to do.
    record.append_control(Tag::CONTROL_NUMBER, &id.to_string(), OnIllegal::Drop)?;
    for number in stored {
        let number = match agency.as_deref() {
            Some(agency) if !agency.is_empty() && !number.starts_with('(') => format!("({agency}){number}"),
            _ => number,
        };
        let is_known = record.fields().any(|field| match field {
            Field::Data { tag: Tag::SYSTEM_CONTROL_NUMBER, subfields, .. } => {
                subfields.get(SubfieldCode::A) == Some(number.as_str())
            }
            _ => false,
        });
        if !is_known {
            let first = record.subfield_count();
            record.append_subfield(SubfieldCode::A, &number, OnIllegal::Drop)?;
            record.close_data(Tag::SYSTEM_CONTROL_NUMBER, [Indicator::BLANK; 2], first);
        }
    }
    Ok(())
}
