//! Records and varFields of every kind, for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sierra_sync::marc::{Indicator, Leader, Record, SubfieldCode, Tag};
use sierra_sync::record::{Subfield, VarField};

/// Any valid record that ISO 2709 can hold: small enough, and not without fields.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    let control = ("00[1-9]", text()).prop_map(|(tag, value)| Part::Control(tag, value));
    let data = (data_tag(), [printable(), printable()], vec((printable(), text()), 1..6))
        .prop_map(|(tag, indicators, subfields)| Part::Data(tag, indicators, subfields));
    let leader = ".{0,30}|[0-9 ]{5}[a-z ][a-z][a-z ]{3}22[0-9 ]{5}[a-z0-9 ]{3}4500";
    (leader, vec(prop_oneof![1 => control, 4 => data], 1..20)).prop_map(|(leader, parts)| {
        let mut record = Record::new(Leader::read(&leader).0);
        parts.into_iter().for_each(|part| part.push_onto(&mut record));
        record
    })
}

#[derive(Debug, Clone)]
enum Part {
    Control(String, String),
    Data(String, [u8; 2], Vec<(u8, String)>),
}

impl Part {
    fn push_onto(self, record: &mut Record) {
        let tag = |text: String| Tag::new(&text).expect("the pattern makes tags");
        match self {
            Self::Control(text, value) => record.push_control(tag(text), &value),
            Self::Data(text, indicators, subfields) => {
                let indicators = indicators.map(|byte| Indicator::new(byte).expect("printable"));
                let subfields = subfields
                    .iter()
                    .map(|(code, value)| (SubfieldCode::new(*code).expect("printable"), value.as_str()));
                record.push_data(tag(text), indicators, subfields)
            }
        }
        .expect("the parts are valid");
    }
}

/// VarFields as no Sierra should send them: any keys missing, any texts anywhere.
pub(crate) fn soup() -> impl Strategy<Value = Vec<VarField>> {
    let subfield = (messy(3), messy(20)).prop_map(|(tag, content)| Subfield { tag: tag.into(), content });
    let tag = prop_oneof![3 => "[0-9]{3}", 1 => "[0-9A-Za-z ]{0,5}", 1 => messy(5)];
    let field = (
        messy(2),
        option::weighted(0.9, tag),
        option::of(messy(2)),
        option::of(messy(2)),
        option::of(messy(30)),
        vec(subfield, 0..5),
    )
        .prop_map(|(field_tag, marc_tag, ind1, ind2, content, subfields)| VarField {
            field_tag: field_tag.into(),
            marc_tag: marc_tag.map(Into::into),
            ind1: ind1.map(Into::into),
            ind2: ind2.map(Into::into),
            content,
            subfields,
        });
    let leader =
        messy(30).prop_map(|content| VarField { field_tag: "_".into(), content: Some(content), ..VarField::default() });
    vec(prop_oneof![9 => field, 1 => leader], 0..20)
}

fn data_tag() -> impl Strategy<Value = String> {
    "[0-9A-Za-z]{3}".prop_filter("a data field", |tag| !tag.starts_with("00"))
}

fn printable() -> impl Strategy<Value = u8> {
    prop_oneof![3 => b'a'..=b'z', 1 => b' '..=b'~']
}

/// Text that XML 1.0 can hold, with everything that some form must escape.
fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => any::<char>().prop_filter("legal", |c| sierra_sync::marc::text::is_legal(*c)),
        8 => proptest::char::range(' ', '~'),
        4 => prop::sample::select(vec!['<', '>', '&', '"', '\'', '\\', '\t', '\n', '\r', ' ', ']', '|', '$', 'é', '漢', '\u{fffd}', '\u{85}', '\u{2028}']),
    ];
    vec(character, 0..40).prop_map(|characters| characters.into_iter().collect())
}

/// Any text at all, with a bias to what hurts.
fn messy(longest: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        2 => any::<char>(),
        3 => proptest::char::range('0', 'z'),
        3 => prop::sample::select(vec!['\0', '\u{1b}', '\u{1d}', '\u{1e}', '\u{1f}', '\u{7f}', '\u{fffe}', '\u{ffff}', '\u{fffd}', '<', '>', '&', '"', '\'', ' ', '\r']),
    ];
    vec(character, 0..=longest).prop_map(|characters| characters.into_iter().collect())
}
