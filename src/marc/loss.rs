//! What a record lost or had repaired on its way to MARC.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::MarcError;
use super::settings::OnIllegal;
use super::text::{self, Findings};

/// One repair or omission. Nothing about a record changes without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// What kind of repair or omission.
    pub kind: LossKind,
    /// Where: a tag (`245`), a tag and a subfield code (`245$a`), `leader`, or empty for the record as a whole.
    pub field: String,
    /// What exactly, for people: short, and without content. Only what should have been a leader, a tag, an indicator
    /// or a subfield code is quoted, so that a field dropped for privacy does not live on here.
    pub detail: String,
}

/// The kinds of repair and omission. The table in `docs/marc.md` says the same; a test keeps the two equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// No leader came; the default one was put in.
    LeaderMissing,
    /// The leader had a wrong length or impossible characters; the sound parts were kept, the rest defaulted.
    LeaderRepaired,
    /// The leader called a live record deleted; what the API says wins (BR-088).
    LeaderStatus,
    /// A second leader came and was ignored.
    LeaderExtra,
    /// A tag was trimmed or filled with zeros on the left to three characters.
    TagRepaired,
    /// A tag that cannot be made into one, 000 and 00A among them; the field is left out.
    TagInvalid,
    /// A field without content; it is left out.
    FieldEmpty,
    /// A control field came with subfields only; it is left out.
    ControlSubfields,
    /// A control field came with content and subfields; the subfields are left out.
    SubfieldsIgnored,
    /// A data field came with subfields and content beside them; the content is left out.
    ContentIgnored,
    /// A data field came with content only; it became subfield `a`.
    ContentAsSubfield,
    /// An indicator that cannot be one; it became blank.
    IndicatorReplaced,
    /// A subfield code was trimmed to one character.
    SubfieldCodeRepaired,
    /// A subfield code that cannot be one; the subfield is left out.
    SubfieldCodeInvalid,
    /// MARCXML: an element inside a record that is none of MARCXML's, or not of its namespace, is left out.
    ElementIgnored,
    /// ISO 2709: data that no entry of the directory points to is left out.
    DataUncovered,
    /// Characters that XML 1.0 forbids were left out.
    CharactersDropped,
    /// Characters that XML 1.0 forbids became U+FFFD.
    CharactersReplaced,
    /// The text already held U+FFFD when it came: it was damaged earlier, and is kept as it is.
    TextDamaged,
    /// No field of the record is MARC; the result is a leader alone.
    NoMarcFields,
    /// Sierra's own MARC rendering of the record says something else than ours.
    SierraMarcDiffers,
    /// There were more losses than are listed one by one.
    FurtherLosses,
}

impl LossKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; 22] = [
        Self::LeaderMissing,
        Self::LeaderRepaired,
        Self::LeaderStatus,
        Self::LeaderExtra,
        Self::TagRepaired,
        Self::TagInvalid,
        Self::FieldEmpty,
        Self::ControlSubfields,
        Self::SubfieldsIgnored,
        Self::ContentIgnored,
        Self::ContentAsSubfield,
        Self::IndicatorReplaced,
        Self::SubfieldCodeRepaired,
        Self::SubfieldCodeInvalid,
        Self::ElementIgnored,
        Self::DataUncovered,
        Self::CharactersDropped,
        Self::CharactersReplaced,
        Self::TextDamaged,
        Self::NoMarcFields,
        Self::SierraMarcDiffers,
        Self::FurtherLosses,
    ];

    /// The name in events and counts: the variant in kebab-case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeaderMissing => "leader-missing",
            Self::LeaderRepaired => "leader-repaired",
            Self::LeaderStatus => "leader-status",
            Self::LeaderExtra => "leader-extra",
            Self::TagRepaired => "tag-repaired",
            Self::TagInvalid => "tag-invalid",
            Self::FieldEmpty => "field-empty",
            Self::ControlSubfields => "control-subfields",
            Self::SubfieldsIgnored => "subfields-ignored",
            Self::ContentIgnored => "content-ignored",
            Self::ContentAsSubfield => "content-as-subfield",
            Self::IndicatorReplaced => "indicator-replaced",
            Self::SubfieldCodeRepaired => "subfield-code-repaired",
            Self::SubfieldCodeInvalid => "subfield-code-invalid",
            Self::ElementIgnored => "element-ignored",
            Self::DataUncovered => "data-uncovered",
            Self::CharactersDropped => "characters-dropped",
            Self::CharactersReplaced => "characters-replaced",
            Self::TextDamaged => "text-damaged",
            Self::NoMarcFields => "no-marc-fields",
            Self::SierraMarcDiffers => "sierra-marc-differs",
            Self::FurtherLosses => "further-losses",
        }
    }
}

impl std::fmt::Display for LossKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How many losses of one record are listed one by one. A record of 5,000 broken fields must not become an event of
/// a megabyte; the rest is summed up per kind in one [`LossKind::FurtherLosses`].
pub const MAX_LISTED: usize = 100;

/// Collects the losses of one record, bounded by [`MAX_LISTED`].
#[derive(Debug, Default)]
pub(super) struct Losses {
    listed: Vec<Loss>,
    further: BTreeMap<LossKind, u64>,
}

impl Losses {
    /// Adds a loss. The texts are only made when the loss is listed.
    pub(super) fn push(&mut self, kind: LossKind, field: impl Into<String>, detail: impl FnOnce() -> String) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Loss { kind, field: field.into(), detail: detail() });
        } else {
            *self.further.entry(kind).or_default() += 1;
        }
    }

    /// The losses in the order in which they happened, and the sum of the rest ([`counts`] reads it).
    pub(super) fn into_vec(mut self) -> Vec<Loss> {
        if !self.further.is_empty() {
            let total: u64 = self.further.values().sum();
            let kinds: Vec<String> = self.further.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let detail = format!("{total} more: {}", kinds.join(", "));
            self.listed.push(Loss { kind: LossKind::FurtherLosses, field: String::new(), detail });
        }
        self.listed
    }
}

/// How many losses of each kind a record has, those included that are only summed up.
pub fn counts(losses: &[Loss]) -> impl Iterator<Item = (LossKind, u64)> {
    losses.iter().flat_map(|loss| match loss.kind {
        LossKind::FurtherLosses => summed_up(&loss.detail),
        kind => vec![(kind, 1)],
    })
}

/// Reads what [`Losses::into_vec`] wrote: `8 more: 7 tag-invalid, 1 field-empty`.
fn summed_up(detail: &str) -> Vec<(LossKind, u64)> {
    let (_, kinds) = detail.split_once(": ").unwrap_or_default();
    let each = kinds.split(", ").filter_map(|part| {
        let (count, name) = part.split_once(' ')?;
        Some((LossKind::ALL.into_iter().find(|kind| kind.name() == name)?, count.parse().ok()?))
    });
    each.collect()
}

/// Turns what was found in one text into losses, or into an error where the settings ask for quarantine.
pub(super) fn report(
    findings: &Findings,
    field: impl Fn() -> String,
    policy: OnIllegal,
    losses: &mut Losses,
) -> Result<(), MarcError> {
    if findings.damaged > 0 {
        losses
            .push(LossKind::TextDamaged, field(), || format!("holds U+FFFD {}", text::count(findings.damaged, "time")));
    }
    let Some(&first) = findings.examples.first() else { return Ok(()) };
    let kind = match policy {
        OnIllegal::Quarantine => {
            return Err(MarcError::IllegalCharacter { field: field(), code_point: text::code_point(first) });
        }
        OnIllegal::Drop => LossKind::CharactersDropped,
        OnIllegal::Replace => LossKind::CharactersReplaced,
    };
    losses.push(kind, field(), || findings.describe_illegal());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_serde_writes_and_all_lists_every_kind_once() {
        for kind in LossKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), serde_json::json!(kind.name()));
        }
        let distinct: std::collections::BTreeSet<LossKind> = LossKind::ALL.into_iter().collect();
        assert_eq!(distinct.len(), LossKind::ALL.len());
        let schema = serde_json::to_string(&schemars::schema_for!(LossKind)).unwrap();
        assert_eq!(schema.matches("\"const\"").count(), LossKind::ALL.len(), "{schema}");
    }

    #[test]
    fn a_loss_in_an_event_has_three_keys_and_reads_back() {
        let loss = Loss { kind: LossKind::TagInvalid, field: String::new(), detail: "tag \"?\"".into() };
        let json = serde_json::json!({"kind": "tag-invalid", "field": "", "detail": "tag \"?\""});
        assert_eq!(serde_json::to_value(&loss).unwrap(), json);
        assert_eq!(serde_json::from_value::<Loss>(json).unwrap(), loss);
    }

    #[test]
    fn a_flood_of_losses_is_summed_up_instead_of_listed() {
        let mut losses = Losses::default();
        for _ in 0..MAX_LISTED + 7 {
            losses.push(LossKind::TagInvalid, "?", String::new);
        }
        losses.push(LossKind::FieldEmpty, "500", String::new);
        let listed = losses.into_vec();
        assert_eq!(listed.len(), MAX_LISTED + 1);
        let last = listed.last().unwrap();
        assert_eq!(
            (last.kind, last.detail.as_str()),
            (LossKind::FurtherLosses, "8 more: 7 tag-invalid, 1 field-empty")
        );
        let mut sums = BTreeMap::<LossKind, u64>::new();
        counts(&listed).for_each(|(kind, count)| *sums.entry(kind).or_default() += count);
        assert_eq!(
            sums.into_iter().collect::<Vec<_>>(),
            [(LossKind::TagInvalid, MAX_LISTED as u64 + 7), (LossKind::FieldEmpty, 1)],
            "none is missing from the counts"
        );
    }
}
