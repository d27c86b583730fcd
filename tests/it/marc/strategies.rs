//! Records and varFields of every kind, for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sierra_sync::marc::{Indicator, Leader, Record, SubfieldCode, Tag};
use sierra_sync::record::{Subfield, VarField};

/// Any valid record, small enough for ISO 2709.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    let control = ("00[0-9A-Za-z]", text()).prop_map(|(tag, value)| (tag, None, vec![(b'a', value)]));
    let data = (data_tag(), printable(), printable(), vec((printable(), text()), 1..6))
        .prop_map(|(tag, ind1, ind2, subfields)| (tag, Some((ind1, ind2)), subfields));
    (
        ".{0,30}|[0-9 ]{5}[a-z ][a-z][a-z ]{3}22[0-9 ]{5}[a-z0-9 ]{3}4500",
        vec(prop_oneof![1 => control, 4 => data], 0..20),
    )
        .prop_map(|(leader, fields)| {
            let mut record = Record::new(Leader::read(&leader).0);
            for (tag, indicators, subfields) in fields {
                let tag = Tag::new(&tag).expect("the pattern makes tags");
                match indicators {
                    None => record.push_control(tag, &subfields[0].1),
                    Some((ind1, ind2)) => {
                        let indicators = [ind1, ind2].map(|byte| Indicator::new(byte).expect("printable"));
                        let subfields = subfields
                            .iter()
                            .map(|(code, value)| (SubfieldCode::new(*code).expect("printable"), value.as_str()));
                        record.push_data(tag, indicators, subfields)
                    }
                }
                .expect("the parts are valid");
            }
            record
        })
}

/// VarFields as no Sierra should send them: any keys missing, any texts anywhere.
pub(crate) fn soup() -> impl Strategy<Value = Vec<VarField>> {
    let subfield = (messy(3), messy(20)).prop_map(|(tag, content)| Subfield { tag, content });
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
            field_tag,
            marc_tag,
            ind1,
            ind2,
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
