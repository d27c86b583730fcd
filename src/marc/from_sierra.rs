//! Sierra's varFields as a MARC record.
//!
//! One surprising field never costs the record or its neighbours (BR-023): it is repaired or left out, and that is
//! reported. `docs/marc.md` tells the rules; their source is sierra-api.md §4.4.

use super::builder::{Builder, short};
use super::error::MarcError;
use super::field::Field;
use super::loss::{Loss, LossKind, Losses};
use super::model::Record;
use super::settings::{ControlNumber, MarcSettings, OnIllegal};
use super::tag::{Indicator, SubfieldCode, Tag};
use super::text;
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
        let Some(came) = field.marc_tag.as_deref() else {
            if *field == VarField::default() {
                builder.losses.push(LossKind::FieldEmpty, "", || "null or empty; left out".to_owned());
            }
            continue;
        };
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
                format!("{} and no content; field left out", count(subfields))
            }),
        }
        return Ok(());
    }
    if subfields > 0 {
        builder.losses.push(LossKind::SubfieldsIgnored, tag.as_str(), || {
            format!("{} beside the content left out", count(subfields))
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
            format!("{} of content beside subfields left out", text::count(content.len() as u64, "byte"))
        }),
    }
    let indicators =
        [builder.indicator(tag, 1, field.ind1.as_deref()), builder.indicator(tag, 2, field.ind2.as_deref())];
    builder.close(tag, indicators, first);
    Ok(())
}

fn count(subfields: usize) -> String {
    text::count(subfields as u64, "subfield")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marc::loss::MAX_LISTED;
    use crate::marc::marcxml;
    use crate::record::Subfield;

    const NUMBER: RecordNumber = RecordNumber::new(2_100_417);

    fn leader(content: &str) -> VarField {
        VarField { field_tag: "_".into(), content: Some(content.into()), ..VarField::default() }
    }

    fn control(tag: &str, content: &str) -> VarField {
        VarField { marc_tag: Some(tag.into()), content: Some(content.into()), ..VarField::default() }
    }

    fn data(tag: &str, subfields: &[(&str, &str)]) -> VarField {
        let subfields =
            subfields.iter().map(|(tag, content)| Subfield { tag: (*tag).into(), content: (*content).into() });
        VarField {
            field_tag: "n".into(),
            marc_tag: Some(tag.into()),
            subfields: subfields.collect(),
            ..VarField::default()
        }
    }

    /// The fields as lines, and the losses as `kind field: detail`; a sound leader is added.
    fn map(mut fields: Vec<VarField>) -> (Vec<String>, Vec<String>) {
        fields.push(leader("00000nam  2200000 a 4500"));
        let (record, losses) = from_sierra(NUMBER, &fields, &MarcSettings::default()).expect("nothing to set aside");
        (lines(&record), losses.iter().map(|loss| format!("{} {}: {}", loss.kind, loss.field, loss.detail)).collect())
    }

    fn lines(record: &Record) -> Vec<String> {
        record.fields().map(|field| format!("{field:?}")).collect()
    }

    fn assert_map(fields: Vec<VarField>, expected: &[&str], losses: &[&str]) {
        let shown = format!("{fields:?}");
        let (lines, found) = map(fields);
        assert_eq!(lines, expected, "{shown}");
        assert_eq!(found, losses, "{shown}");
    }

    /// sierra-api.md §3.2: the example of a bib in Sierra's own order.
    #[test]
    fn a_sound_bib_becomes_marc_sorted_by_tag_without_a_loss() {
        let mut title = data("245", &[("a", "Field guide"), ("b", "to invented birds")]);
        (title.ind1, title.ind2) = (Some("1".into()), Some("0".into()));
        let note = VarField { field_tag: "n".into(), content: Some("not MARC".into()), ..VarField::default() };
        let second = data("650", &[("a", "Ornithology")]);
        let fields = vec![data("650", &[("a", "Birds")]), note, second, control("001", "ex0001"), title];
        let expected =
            ["001 ex0001", "245 10 $aField guide$bto invented birds", "650    $aBirds", "650    $aOrnithology"];
        assert_map(fields, &expected, &[]);
    }

    /// BR-022: an untagged leader, no leader, and what is not MARC.
    #[test]
    fn the_leader_is_found_or_made_and_other_untagged_fields_are_left_aside() {
        let convert = |fields: &[VarField]| from_sierra(NUMBER, fields, &MarcSettings::default()).expect("converts");
        let untagged = VarField { field_tag: "n".into(), content: Some("00000xxx".into()), ..VarField::default() };
        let (record, losses) = convert(&[control("001", "x"), untagged.clone()]);
        assert_eq!(record.leader().as_str(), "00000nam a2200000   4500");
        assert_eq!(losses.iter().map(|loss| loss.kind).collect::<Vec<_>>(), [LossKind::LeaderMissing]);
        let (record, losses) =
            convert(&[control("001", "x"), leader("00123cas  22000613i 4500"), leader("x"), leader("y")]);
        assert_eq!(record.leader().as_str(), "00000cas a22000003i 4500", "lengths of another file mean nothing here");
        assert_eq!(
            (losses[0].kind, losses[0].detail.as_str(), losses.len()),
            (LossKind::LeaderExtra, "2 more ignored", 1)
        );
        assert!(is_carried(&leader("")) && is_carried(&control("001", "")) && !is_carried(&untagged));
    }

    /// BR-088: the API said that this bib is live.
    #[test]
    fn a_live_bib_is_never_written_as_deleted() {
        let fields = [control("001", "x"), leader("00000dam  2200000 a 4500")];
        let (record, losses) = from_sierra(NUMBER, &fields, &MarcSettings::default()).expect("converts");
        assert_eq!(record.leader().as_str(), "00000cam a2200000 a 4500");
        assert_eq!(losses.iter().map(|loss| loss.kind).collect::<Vec<_>>(), [LossKind::LeaderStatus]);
        assert_eq!(Record::tombstone(NUMBER).leader().as_str(), "00000dam a2200000   4500");
        assert_eq!(lines(&Record::tombstone(NUMBER)), ["001 2100417"]);
    }

    #[test]
    fn odd_tags_are_repaired_or_cost_only_their_field() {
        for (tag, expected) in [("5", "005"), ("20", "020"), (" 245", "245"), ("245 ", "245"), (" ab1", "ab1")] {
            let field = if expected == "005" { control(tag, "x") } else { data(tag, &[("a", "x")]) };
            let shown = if expected == "005" { "005 x".to_owned() } else { format!("{expected}    $ax") };
            let (lines, losses) = map(vec![data("100", &[("a", "before")]), field, data("900", &[("a", "after")])]);
            assert!(lines.contains(&shown) && lines.len() == 3, "{tag:?}: {lines:?}");
            assert_eq!(losses, [format!("tag-repaired {expected}: was {tag:?}")]);
        }
        for tag in ["", "  ", "2450", "24500", "ab", "24-", "24é", "2 5", "24\u{1f}", "٢٤٥", "000", "0", "00A"] {
            let fields =
                vec![data("100", &[("a", "before")]), data(tag, &[("a", "x")]), data("900", &[("a", "after")])];
            let (lines, losses) = map(fields);
            assert_eq!(lines, ["100    $abefore", "900    $aafter"], "{tag:?}");
            assert_eq!(losses.len(), 1);
            assert!(
                losses[0].starts_with("tag-invalid : tag \"") && losses[0].ends_with("in group \"n\"; field left out")
            );
        }
        let letters = vec![data("9xx", &[("a", "lower")]), data("ABC", &[("a", "upper")]), data("001", &[])];
        assert_map(letters, &["9xx    $alower", "ABC    $aupper"], &["field-empty 001: field left out"]);
    }

    #[test]
    fn content_and_subfields_in_the_wrong_place_are_put_right_or_reported() {
        assert_map(
            vec![data("008", &[("a", "x"), ("b", "y")])],
            &[],
            &[
                "control-subfields 008: 2 subfields and no content; field left out",
                "no-marc-fields : none of 2 fields is MARC",
            ],
        );
        let both = VarField { content: Some("kept".into()), ..data("008", &[("a", "x")]) };
        assert_map(vec![both], &["008 kept"], &["subfields-ignored 008: 1 subfield beside the content left out"]);
        assert_map(
            vec![control("245", "A title")],
            &["245    $aA title"],
            &["content-as-subfield 245: content became $a"],
        );
        let both = VarField { content: Some("beside".into()), ..data("245", &[("a", "kept")]) };
        assert_map(
            vec![both],
            &["245    $akept"],
            &["content-ignored 245: 6 bytes of content beside subfields left out"],
        );
        assert_map(
            vec![control("001", "x"), data("500", &[]), control("245", ""), control("005", "")],
            &["001 x"],
            &["field-empty 500: field left out", "field-empty 245: field left out", "field-empty 005: field left out"],
        );
    }

    /// The format does not forbid a short or long 008, and what Sierra holds is what is carried.
    #[test]
    fn an_008_of_any_length_and_empty_subfields_are_carried_as_they_are() {
        for content in ["1", &"x".repeat(39), &"x".repeat(41)] {
            assert_map(vec![control("008", content)], &[&format!("008 {content}")], &[]);
        }
        assert_map(vec![data("245", &[("a", ""), ("b", " ")])], &["245    $a$b "], &[]);
    }

    #[test]
    fn indicators_are_blank_when_missing_and_carried_when_unusual() {
        for (ind1, ind2, expected, losses) in [
            (None, None, "  ", vec![]),
            (Some(""), Some(" "), "  ", vec![]),
            (Some("A"), Some("|"), "A|", vec![]),
            (Some("<"), Some("\""), "<\"", vec![]),
            (Some("10"), Some("0"), " 0", vec!["indicator-replaced 245: indicator 1 was \"10\"; written as blank"]),
            (
                Some("é"),
                Some("\u{1f}"),
                "  ",
                vec![
                    "indicator-replaced 245: indicator 1 was \"é\"; written as blank",
                    "indicator-replaced 245: indicator 2 was \"\\u{1f}\"; written as blank",
                ],
            ),
        ] {
            let own = |text: Option<&str>| text.map(Into::into);
            let field = VarField { ind1: own(ind1), ind2: own(ind2), ..data("245", &[("a", "x")]) };
            assert_map(vec![field], &[&format!("245 {expected} $ax")], &losses);
        }
    }

    #[test]
    fn subfield_codes_that_cannot_be_one_cost_only_their_subfield() {
        for code in ["\"", "'", "<", "&", "|", "@", " ", "9", "Z"] {
            assert_map(vec![data("500", &[("a", "x"), (code, "y")])], &[&format!("500    $ax${code}y")], &[]);
        }
        for code in ["", "ab", "\u{1f}", "\u{0}", "漢", "é"] {
            let shown = format!("{code:?}");
            assert_map(
                vec![data("500", &[("a", "x"), (code, "four"), ("c", "z")])],
                &["500    $ax$cz"],
                &[&format!("subfield-code-invalid 500: code {shown} with 4 bytes of text; subfield left out")],
            );
        }
        assert_map(vec![data("500", &[(" b", "x")])], &["500    $bx"], &["subfield-code-repaired 500$b: was \" b\""]);
        assert_map(
            vec![control("001", "x"), data("500", &[("", "y")])],
            &["001 x"],
            &[
                "subfield-code-invalid 500: code \"\" with 1 byte of text; subfield left out",
                "field-empty 500: field left out",
            ],
        );
    }

    /// BR-083, and nobody breaks out of a field: the ISO 2709 delimiters are among what goes.
    #[test]
    fn characters_that_xml_forbids_are_dropped_replaced_or_set_aside() {
        let fields = [
            leader("00000nam  2200000 a 4500"),
            control("001", "a\u{1e}b"),
            data("500", &[("a", "x\u{1f}by\u{fffe}")]),
        ];
        let convert =
            |on_illegal| from_sierra(NUMBER, &fields, &MarcSettings { on_illegal, ..MarcSettings::default() });
        let (record, losses) = convert(OnIllegal::Drop).expect("nothing to set aside");
        assert_eq!(lines(&record), ["001 ab", "500    $axby"]);
        let told: Vec<String> =
            losses.iter().map(|loss| format!("{} {}: {}", loss.kind, loss.field, loss.detail)).collect();
        assert_eq!(
            told,
            ["characters-dropped 001: 1 character: U+001E", "characters-dropped 500$a: 2 characters: U+001F, U+FFFE"]
        );
        let (record, losses) = convert(OnIllegal::Replace).expect("nothing to set aside");
        assert_eq!(lines(&record), ["001 a\u{fffd}b", "500    $ax\u{fffd}by\u{fffd}"]);
        assert!(losses.iter().all(|loss| loss.kind == LossKind::CharactersReplaced));
        let refused = convert(OnIllegal::Quarantine).expect_err("001 holds U+001E");
        assert_eq!(refused, MarcError::IllegalCharacter { field: "001".into(), code_point: "U+001E".into() });
    }

    #[test]
    fn text_that_came_damaged_is_kept_and_mentioned() {
        let damaged = vec![data("500", &[("a", "caf\u{fffd}")])];
        assert_map(damaged, &["500    $acaf\u{fffd}"], &["text-damaged 500$a: holds U+FFFD 1 time"]);
    }

    /// BR-023 at its largest: nothing is lost from a giant, and its losses do not become a giant themselves.
    #[test]
    fn five_thousand_fields_and_enormous_subfields_are_carried() {
        let long = "漢".repeat(70_000);
        let mut fields: Vec<VarField> = (0..5_000).map(|_| data("650", &[("a", "x")])).collect();
        fields.push(data("520", &[("a", &long)]));
        fields.extend((0..5_000).map(|_| data("??", &[("a", "x")])));
        let (record, losses) = from_sierra(NUMBER, &fields, &MarcSettings::default()).expect("converts");
        assert_eq!(record.len(), 5_001);
        assert!(marcxml::to_string(&record).contains(&long));
        assert_eq!(losses.len(), MAX_LISTED + 1);
        assert_eq!(
            losses[MAX_LISTED].detail,
            format!("{} more: {} tag-invalid", 5_001 - MAX_LISTED, 5_001 - MAX_LISTED)
        );
    }

    #[test]
    fn sierras_number_replaces_001_and_what_was_there_moves_to_035() {
        let settings = MarcSettings { control_number: ControlNumber::Sierra, ..MarcSettings::default() };
        let convert = |fields: &[VarField]| lines(&from_sierra(NUMBER, fields, &settings).expect("converts").0);
        let stored = [control("001", "36165241 "), control("003", "OCoLC"), data("245", &[("a", "x")])];
        assert_eq!(convert(&stored), ["001 2100417", "035    $a(OCoLC)36165241", "245    $ax"]);
        let known = [control("001", "36165241"), control("003", "OCoLC"), data("035", &[("a", "(OCoLC)36165241")])];
        assert_eq!(convert(&known), ["001 2100417", "035    $a(OCoLC)36165241"]);
        let bracketed = [control("003", "OCoLC"), control("001", "(DE-1)7"), control("001", "8")];
        assert_eq!(convert(&bracketed), ["001 2100417", "035    $a(DE-1)7", "035    $a(OCoLC)8"]);
        assert_eq!(convert(&[data("245", &[("a", "x")])]), ["001 2100417", "245    $ax"]);
    }

    /// No content of a field may survive in a loss: the field itself may be dropped for privacy afterwards.
    #[test]
    fn losses_never_quote_content() {
        let secret = "Patron Pat Example";
        let fields = vec![
            VarField { content: Some(secret.into()), ..data("909", &[("a", secret)]) },
            data("909", &[("\u{1}", secret), ("a", &format!("{secret}\u{1}"))]),
            control("909", secret),
            VarField { content: Some(secret.into()), ..data("008", &[("a", secret)]) },
            data("??", &[("a", secret)]),
            control("009", &format!("{secret}\u{fffd}")),
        ];
        let (_, losses) = map(fields);
        assert!(losses.len() >= 6);
        assert!(!losses.concat().contains("Pat"), "{losses:?}");
    }
}
