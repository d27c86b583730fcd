//! Sierra's varFields as a MARC record.
//!
//! One surprising field never costs the record or its neighbours (BR-023): it is repaired or left out, and that is
//! reported. `docs/marc.md` tells the rules; their source is sierra-api.md §4.4.

use super::error::MarcError;
use super::leader::Leader;
use super::loss::{Loss, LossKind, Losses};
use super::model::Record;
use super::settings::{ControlNumber, MarcSettings, OnIllegal};
use super::tag::{Indicator, SubfieldCode, Tag};
use super::text::{self, Findings};
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
    let mut mapping = Mapping { record: Record::default(), losses: Losses::default(), policy: settings.on_illegal };
    mapping.reserve(var_fields);
    mapping.leader(var_fields);
    for field in var_fields {
        if let Some(tag) = field.marc_tag.as_deref() {
            mapping.field(tag, field)?;
        }
    }
    if mapping.record.is_empty() {
        mapping.losses.push(LossKind::NoMarcFields, "", || format!("none of {} fields is MARC", var_fields.len()));
    }
    if settings.control_number == ControlNumber::Sierra {
        mapping.number(id)?;
    }
    mapping.record.sort_by_tag();
    Ok((mapping.record, mapping.losses.into_vec()))
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

struct Mapping {
    record: Record,
    losses: Losses,
    policy: OnIllegal,
}

impl Mapping {
    fn reserve(&mut self, var_fields: &[VarField]) {
        let (mut text, mut subfields) = (0, 0);
        for field in var_fields {
            text += field.content.as_ref().map_or(0, String::len);
            text += field.subfields.iter().map(|subfield| subfield.content.len()).sum::<usize>();
            subfields += field.subfields.len().max(1);
        }
        self.record.reserve(text, var_fields.len(), subfields);
    }

    fn leader(&mut self, var_fields: &[VarField]) {
        let mut leaders = var_fields.iter().filter(|field| is_leader(field));
        let came = leaders.next().and_then(|field| field.content.as_deref());
        let mut leader = match came {
            None => {
                self.losses.push(LossKind::LeaderMissing, "leader", || "the default leader was put in".to_owned());
                Leader::default()
            }
            Some(came) => {
                let (leader, repaired) = Leader::read(came);
                if repaired {
                    self.losses.push(LossKind::LeaderRepaired, "leader", || format!("was {}", text::quote(came)));
                }
                leader
            }
        };
        if leader.status() == b'd' {
            self.losses.push(LossKind::LeaderStatus, "leader", || "status d on a live record; written as c".to_owned());
            leader = leader.corrected();
        }
        let extra = leaders.count();
        if extra > 0 {
            self.losses.push(LossKind::LeaderExtra, "leader", || format!("{extra} more ignored"));
        }
        self.record.set_leader(leader.without_lengths());
    }

    fn field(&mut self, came: &str, field: &VarField) -> Result<(), MarcError> {
        let Some(tag) = self.tag(came, field) else { return Ok(()) };
        if tag.is_control() { self.control(tag, field) } else { self.data(tag, field) }
    }

    /// A tag of Sierra's may be short or padded (sierra-api.md §3.1).
    fn tag(&mut self, came: &str, field: &VarField) -> Option<Tag> {
        if let Some(tag) = Tag::new(came) {
            return Some(tag);
        }
        let trimmed = came.trim();
        let is_number = !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit());
        let repaired = if is_number { Tag::new(&format!("{trimmed:0>3}")) } else { Tag::new(trimmed) };
        match repaired {
            Some(tag) => {
                self.losses.push(LossKind::TagRepaired, tag.as_str(), || format!("was {}", short(came)));
            }
            None => {
                self.losses.push(LossKind::TagInvalid, "", || {
                    format!("tag {} in group {}; field left out", short(came), short(&field.field_tag))
                });
            }
        }
        repaired
    }

    fn control(&mut self, tag: Tag, field: &VarField) -> Result<(), MarcError> {
        let content = field.content.as_deref().unwrap_or_default();
        let subfields = field.subfields.len();
        match (content.is_empty(), subfields) {
            (true, 0) => self.losses.push(LossKind::FieldEmpty, tag.as_str(), || "field left out".to_owned()),
            (true, _) => self.losses.push(LossKind::ControlSubfields, tag.as_str(), || {
                format!("{subfields} subfields and no content; field left out")
            }),
            (false, 0) => {}
            (false, _) => self.losses.push(LossKind::SubfieldsIgnored, tag.as_str(), || {
                format!("{subfields} subfields beside the content left out")
            }),
        }
        if content.is_empty() {
            return Ok(());
        }
        let findings = self.record.append_control(tag, content, self.policy)?;
        self.judge(&findings, tag, None)
    }

    fn data(&mut self, tag: Tag, field: &VarField) -> Result<(), MarcError> {
        let first = self.record.subfield_count();
        for subfield in &field.subfields {
            if let Some(code) = self.code(tag, &subfield.tag, &subfield.content) {
                let findings = self.record.append_subfield(code, &subfield.content, self.policy)?;
                self.judge(&findings, tag, Some(code))?;
            }
        }
        if let Some(content) = field.content.as_deref().filter(|content| !content.is_empty()) {
            if field.subfields.is_empty() {
                self.losses.push(LossKind::ContentAsSubfield, tag.as_str(), || "content became $a".to_owned());
                let findings = self.record.append_subfield(SubfieldCode::A, content, self.policy)?;
                self.judge(&findings, tag, Some(SubfieldCode::A))?;
            } else {
                self.losses.push(LossKind::ContentIgnored, tag.as_str(), || {
                    format!("{} bytes of content beside subfields left out", content.len())
                });
            }
        }
        if self.record.subfield_count() == first {
            self.losses.push(LossKind::FieldEmpty, tag.as_str(), || "field left out".to_owned());
            return Ok(());
        }
        let indicators = [self.indicator(tag, 1, &field.ind1), self.indicator(tag, 2, &field.ind2)];
        self.record.close_data(tag, indicators, first);
        Ok(())
    }

    fn code(&mut self, tag: Tag, came: &str, content: &str) -> Option<SubfieldCode> {
        if let [byte] = came.as_bytes()
            && let Some(code) = SubfieldCode::new(*byte)
        {
            return Some(code);
        }
        if let [byte] = came.trim().as_bytes()
            && let Some(code) = SubfieldCode::new(*byte)
        {
            self.losses
                .push(LossKind::SubfieldCodeRepaired, format!("{tag}${code}"), || format!("was {}", short(came)));
            return Some(code);
        }
        self.losses.push(LossKind::SubfieldCodeInvalid, tag.as_str(), || {
            format!("code {} with {} bytes of text; subfield left out", short(came), content.len())
        });
        None
    }

    /// Sierra omits indicators or sends them empty; both mean blank (sierra-api.md §4.4 item 5).
    fn indicator(&mut self, tag: Tag, position: u8, came: &Option<String>) -> Indicator {
        let came = came.as_deref().unwrap_or_default();
        match came.as_bytes() {
            [] => return Indicator::BLANK,
            [byte] => {
                if let Some(indicator) = Indicator::new(*byte) {
                    return indicator;
                }
            }
            _ => {}
        }
        self.losses.push(LossKind::IndicatorReplaced, tag.as_str(), || {
            format!("indicator {position} was {}; written as blank", short(came))
        });
        Indicator::BLANK
    }

    fn judge(&mut self, findings: &Findings, tag: Tag, code: Option<SubfieldCode>) -> Result<(), MarcError> {
        if findings.is_empty() {
            return Ok(());
        }
        let field = code.map_or_else(|| tag.to_string(), |code| format!("{tag}${code}"));
        report(findings, field, self.policy, &mut self.losses)
    }

    /// Puts Sierra's number into 001 and what was there into 035 (sierra-api.md §4.4 item 3).
    fn number(&mut self, id: RecordNumber) -> Result<(), MarcError> {
        let record = &mut self.record;
        let stored: Vec<String> = record
            .fields()
            .filter_map(|field| match field {
                super::Field::Control { tag: Tag::CONTROL_NUMBER, value } => Some(value.trim().to_owned()),
                _ => None,
            })
            .filter(|value| !value.is_empty())
            .collect();
        let agency = record.control(Tag::CONTROL_NUMBER_AGENCY).map(|agency| agency.trim().to_owned());
        let moved = |tag| tag == Tag::CONTROL_NUMBER || tag == Tag::CONTROL_NUMBER_AGENCY;
        record.retain_fields(|field| !moved(field.tag()));
        record.append_control(Tag::CONTROL_NUMBER, &id.to_string(), self.policy)?;
        for number in stored {
            let number = match agency.as_deref() {
                Some(agency) if !agency.is_empty() && !number.starts_with('(') => format!("({agency}){number}"),
                _ => number,
            };
            let known = record.fields().any(|field| match field {
                super::Field::Data { tag: Tag::SYSTEM_CONTROL_NUMBER, subfields, .. } => {
                    subfields.get(SubfieldCode::A) == Some(number.as_str())
                }
                _ => false,
            });
            if !known {
                let first = record.subfield_count();
                record.append_subfield(SubfieldCode::A, &number, self.policy)?;
                record.close_data(Tag::SYSTEM_CONTROL_NUMBER, [Indicator::BLANK; 2], first);
            }
        }
        Ok(())
    }
}

/// Turns findings about one text into losses, or into an error where the settings ask for quarantine.
pub(super) fn report(
    findings: &Findings,
    field: String,
    policy: OnIllegal,
    losses: &mut Losses,
) -> Result<(), MarcError> {
    if findings.damaged > 0 {
        losses.push(LossKind::TextDamaged, field.as_str(), || format!("holds U+FFFD {} times", findings.damaged));
    }
    let Some(&first) = findings.examples.first() else { return Ok(()) };
    let kind = match policy {
        OnIllegal::Quarantine => {
            return Err(MarcError::IllegalCharacter { field, code_point: text::code_point(first) });
        }
        OnIllegal::Drop => LossKind::CharactersDropped,
        OnIllegal::Replace => LossKind::CharactersReplaced,
    };
    losses.push(kind, field, || findings.describe_illegal());
    Ok(())
}

/// Quotes the first characters of what should have been a tag, an indicator or a code. Content itself is never
/// quoted: a field that the privacy settings drop must not live on in a loss.
fn short(text: &str) -> String {
    text::quote(&text.chars().take(6).collect::<String>())
}
