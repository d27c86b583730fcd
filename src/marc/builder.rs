//! Puts parts of uncertain quality into a record: repairs what can be repaired, leaves out what cannot, reports both.

use super::error::MarcError;
use super::leader::Leader;
use super::loss::{LossKind, Losses, report};
use super::model::Record;
use super::settings::OnIllegal;
use super::tag::{Indicator, SubfieldCode, Tag};
use super::text;

/// Builds one record. Whoever reads parts from text (Sierra's varFields, XML, JSON) builds with this, so that the same
/// flaw is dealt with in the same way wherever it comes from.
pub(super) struct Builder<'a> {
    pub(super) record: &'a mut Record,
    pub(super) losses: &'a mut Losses,
    pub(super) policy: OnIllegal,
}

impl Builder<'_> {
    /// Sets the leader from whatever came.
    pub(super) fn leader(&mut self, came: Option<&str>) {
        let leader = match came {
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
        self.record.set_leader(leader);
    }

    /// A tag; numbers may be short and anything may be padded (sierra-api.md §3.1). `None` when the field has to be
    /// left out; `place` then says where it was, for the report.
    pub(super) fn tag(&mut self, came: &str, place: impl FnOnce() -> String) -> Option<Tag> {
        if let Some(tag) = Tag::new(came) {
            return Some(tag);
        }
        let trimmed = came.trim();
        let is_number = !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit());
        let repaired = if is_number { Tag::new(&format!("{trimmed:0>3}")) } else { Tag::new(trimmed) };
        match repaired {
            Some(tag) => self.losses.push(LossKind::TagRepaired, tag.as_str(), || format!("was {}", short(came))),
            None => {
                self.losses.push(LossKind::TagInvalid, "", || format!("tag {}{}; field left out", short(came), place()))
            }
        }
        repaired
    }

    /// An indicator. Sierra omits blank ones or sends them empty (sierra-api.md §4.4 item 5).
    pub(super) fn indicator(&mut self, tag: Tag, position: u8, came: Option<&str>) -> Indicator {
        let came = came.unwrap_or_default();
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

    /// Adds a control field.
    pub(super) fn control(&mut self, tag: Tag, value: &str) -> Result<(), MarcError> {
        let findings = self.record.append_control(tag, value, self.policy)?;
        report(&findings, || tag.to_string(), self.policy, self.losses)
    }

    /// Adds a subfield to the data field that will be closed next, unless its code cannot be one.
    pub(super) fn subfield(&mut self, tag: Tag, code: &str, value: &str) -> Result<(), MarcError> {
        let Some(code) = self.code(tag, code, value) else { return Ok(()) };
        let findings = self.record.append_subfield(code, value, self.policy)?;
        report(&findings, || format!("{tag}${code}"), self.policy, self.losses)
    }

    /// Adds content that came without subfields as subfield `a`.
    pub(super) fn content_as_subfield(&mut self, tag: Tag, content: &str) -> Result<(), MarcError> {
        self.losses.push(LossKind::ContentAsSubfield, tag.as_str(), || "content became $a".to_owned());
        self.subfield(tag, "a", content)
    }

    /// Makes a data field of the subfields from `first` on; a field without any is left out.
    pub(super) fn close(&mut self, tag: Tag, indicators: [Indicator; 2], first: usize) {
        if !self.record.close_data(tag, indicators, first) {
            self.losses.push(LossKind::FieldEmpty, tag.as_str(), || "field left out".to_owned());
        }
    }

    /// To be called when all fields are there: a record without any is possible and worth a word.
    pub(super) fn finish(&mut self) {
        if self.record.is_empty() {
            self.losses.push(LossKind::NoMarcFields, "", || "the record has no field".to_owned());
        }
    }

    fn code(&mut self, tag: Tag, came: &str, value: &str) -> Option<SubfieldCode> {
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
            let bytes = text::count(value.len() as u64, "byte");
            format!("code {} with {bytes} of text; subfield left out", short(came))
        });
        None
    }
}

/// Quotes the first characters of what should have been a tag, an indicator or a code. Content itself is never
/// quoted: a field that the privacy settings drop must not live on in a loss.
pub(super) fn short(text: &str) -> String {
    text::quote(&text.chars().take(6).collect::<String>())
}
