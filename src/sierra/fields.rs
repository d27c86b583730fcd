//! varFields and fixedFields of an entry, decoded; and where in them something is wrong.
//!
//! varFields are most of a page: [`var_fields`] reads those of the usual shape. All others are read here with care, and
//! only when that fails are they walked again to find the place.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::subfields::{WireSubfield, WireSubfields};
use super::var_fields;
use super::wire::RawObject;
use crate::record::{Scalar, VarField};

/// Nothing of Sierra's nests deeper than a handful of levels. Readers of our output commonly stop at 128, and ours
/// wraps a record in a few levels more.
const MAX_DEPTH: usize = 64;

/// What is wrong with an entry, and where; never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}")]
pub(super) struct FieldError {
    path: String,
    expected: Cow<'static, str>,
}

impl FieldError {
    /// At `path` there is no `expected`.
    pub(super) fn new(path: &str, expected: &'static str) -> Self {
        Self { path: path.to_owned(), expected: Cow::Borrowed(expected) }
    }

    /// At `path` the nesting goes too deep.
    pub(super) fn too_deep(path: &str) -> Self {
        Self { path: path.to_owned(), expected: Cow::Owned(format!("at most {MAX_DEPTH} levels of nesting")) }
    }
}

/// Whether a value nests deeper than is bearable.
pub(super) fn is_too_deep(raw: &RawValue) -> bool {
    if brackets(raw.get()) <= MAX_DEPTH {
        // Hardly any value has that many in all.
        return false;
    }
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in raw.get().bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// How many brackets are opened, those within texts included. In pieces whose count fits a byte and without branches,
/// so that it compiles to vector code.
fn brackets(json: &str) -> usize {
    let count = |piece: &[u8]| piece.iter().map(|byte| u8::from((*byte == b'{') | (*byte == b'['))).sum::<u8>();
    json.as_bytes().chunks(usize::from(u8::MAX)).map(|piece| usize::from(count(piece))).sum()
}

/// Whether the fixed fields of an entry are an object, whatever stands behind each number.
pub(super) fn check_fixed(raw: &RawValue) -> Result<(), FieldError> {
    if !raw.get().starts_with('{') {
        return Err(FieldError::new("fixedFields", "an object"));
    }
    if !is_too_deep(raw) {
        return Ok(());
    }
    let object: RawObject<'_> =
        serde_json::from_str(raw.get()).map_err(|_| FieldError::new("fixedFields", "an object"))?;
    match object.iter().find(|(_, value)| is_too_deep(value)) {
        Some((number, _)) => Err(FieldError::too_deep(&format!("fixedFields.{number}"))),
        None => Ok(()),
    }
}

/// The variable fields of an entry, in order.
pub(super) fn variable(raw: &RawValue) -> Result<Vec<VarField>, FieldError> {
    var_fields::read(raw).map_or_else(|| with_care(raw), Ok)
}

/// The same for every shape that can be understood at all.
fn with_care(raw: &RawValue) -> Result<Vec<VarField>, FieldError> {
    match serde_json::from_str::<ListOf<WireVarField, 40>>(raw.get()) {
        Ok(fields) => Ok(fields.0),
        Err(_) => Err(locate(raw)),
    }
}

/// A list that is read straight into records. It begins with the room that a usual one needs: growing step by step
/// costs a good part of the time that decoding takes.
pub(super) struct ListOf<W: Wire, const USUAL: usize>(pub(super) Vec<W::Record>);

/// A wire shape that is a record already. What stands for a null in a list is the empty one, which MARC reports.
pub(super) trait Wire {
    type Record: Default;

    fn into_record(self) -> Self::Record;
}

impl<'de, W: Wire + Deserialize<'de>, const USUAL: usize> Deserialize<'de> for ListOf<W, USUAL> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<W, const USUAL: usize>(PhantomData<W>);
        impl<'de, W: Wire + Deserialize<'de>, const USUAL: usize> Visitor<'de> for ListVisitor<W, USUAL> {
            type Value = ListOf<W, USUAL>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ListOf<W, USUAL>, A::Error> {
                let record = |element: Option<W>| element.map(W::into_record).unwrap_or_default();
                let Some(first) = list.next_element()? else { return Ok(ListOf(Vec::new())) };
                let mut records = Vec::with_capacity(USUAL);
                records.push(record(first));
                while let Some(next) = list.next_element()? {
                    records.push(record(next));
                }
                Ok(ListOf(records))
            }
        }
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

impl Wire for WireVarField {
    type Record = VarField;

    fn into_record(self) -> VarField {
        self.0
    }
}

struct WireVarField(VarField);

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum VarFieldKey {
    FieldTag,
    MarcTag,
    Ind1,
    Ind2,
    Content,
    Subfields,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for WireVarField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;
        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = WireVarField;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireVarField, A::Error> {
                let mut field = VarField::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        VarFieldKey::FieldTag => field.field_tag = text(&mut map)?.unwrap_or_default().into(),
                        VarFieldKey::MarcTag => field.marc_tag = text(&mut map)?.map(Into::into),
                        VarFieldKey::Ind1 => field.ind1 = text(&mut map)?.map(Into::into),
                        VarFieldKey::Ind2 => field.ind2 = text(&mut map)?.map(Into::into),
                        VarFieldKey::Content => field.content = text(&mut map)?.map(Into::into),
                        VarFieldKey::Subfields => {
                            field.subfields =
                                map.next_value::<Option<WireSubfields>>()?.map_or_else(Vec::new, |it| it.0);
                        }
                        VarFieldKey::Other => skip(&mut map)?,
                    }
                }
                Ok(WireVarField(field))
            }
        }
        deserializer.deserialize_map(FieldVisitor)
    }
}

/// A text, or a number where one was expected (BR-023); `None` for null.
pub(super) fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    Ok(map.next_value::<Option<Scalar<'de>>>()?.map(|scalar| scalar.0))
}

/// Passes over the value of a key we do not know; it stays in the raw fields, so its depth counts.
pub(super) fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    if is_too_deep(map.next_value::<&'de RawValue>()?) { Err(A::Error::custom("nested too deeply")) } else { Ok(()) }
}

/// Finds what made [`with_care`] fail.
fn locate(raw: &RawValue) -> FieldError {
    let Ok(fields) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        return FieldError::new("varFields", "a list");
    };
    for (index, field) in fields.into_iter().enumerate() {
        if serde_json::from_str::<Option<WireVarField>>(field.get()).is_err() {
            return locate_in_object(
                &format!("varFields[{index}]"),
                field,
                &["fieldTag", "marcTag", "ind1", "ind2", "content"],
            );
        }
    }
    FieldError::new("varFields", "a list of fields")
}

fn locate_in_object(path: &str, raw: &RawValue, texts: &[&str]) -> FieldError {
    let Ok(object) = serde_json::from_str::<RawObject<'_>>(raw.get()) else {
        return FieldError::new(path, "an object");
    };
    for (key, value) in object.iter() {
        let path = format!("{path}.{key}");
        if texts.contains(&key) {
            if serde_json::from_str::<Option<Scalar<'_>>>(value.get()).is_err() {
                return FieldError::new(&path, "text");
            }
        } else if key == "subfields" {
            if let Some(error) = locate_in_subfields(&path, value) {
                return error;
            }
        } else if is_too_deep(value) {
            return FieldError::too_deep(&path);
        }
    }
    FieldError::new(path, "a field")
}

fn locate_in_subfields(path: &str, raw: &RawValue) -> Option<FieldError> {
    if raw.get().starts_with('"') {
        return None;
    }
    let Ok(subfields) = serde_json::from_str::<Option<Vec<&RawValue>>>(raw.get()) else {
        return Some(FieldError::new(path, "a list"));
    };
    for (index, subfield) in subfields.unwrap_or_default().into_iter().enumerate() {
        if serde_json::from_str::<Option<WireSubfield>>(subfield.get()).is_err() {
            return Some(locate_in_object(&format!("{path}[{index}]"), subfield, &["tag", "content"]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        let plain = "[a-z$|\\[\\]{}:, é漢]{0,40}".prop_map(|text| format!("\"{text}\""));
        let any = any::<String>().prop_map(|text| serde_json::to_string(&text).expect("JSON"));
        let literal = select(vec![
            "null",
            "\"\"",
            r#""\"""#,
            r#""\\""#,
            r#""\u0061""#,
            r#""\ud83d\ude00""#,
            r#""\/\b\f\n\r\t""#,
            "7",
            "true",
            "[]",
            "{}",
        ]);
        prop_oneof![6 => plain, 2 => any, 3 => literal.prop_map(str::to_owned)]
    }

    fn object(
        keys: &'static [&'static str],
        value: impl Strategy<Value = String> + 'static,
    ) -> impl Strategy<Value = String> {
        let space = || select(vec!["", "", "", " ", "\n\t"]);
        let member = (select(keys), value, space(), space())
            .prop_map(|(key, value, before, after)| format!("{before}\"{key}\"{after}:{before}{value}{after}"));
        prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    fn list(element: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
        prop::collection::vec(element, 0..5).prop_map(|elements| format!("[{}]", elements.join(" , ")))
    }

    /// Fields as Sierra writes them, with a surprise now and then.
    fn usual_field() -> impl Strategy<Value = String> {
        let short = || prop_oneof![8 => "\"[ -~]\"", 1 => text()];
        let tag = prop_oneof![8 => "\"[0-9a-z]{3}\"", 1 => "\"[ -~é]{2,4}\"", 1 => text()];
        let comma = || prop_oneof![8 => Just(",".to_owned()), 1 => Just(" , ".to_owned())];
        let subfields = (short(), text(), comma())
            .prop_map(|(tag, content, comma)| format!(r#"{{"tag":{tag}{comma}"content":{content}}}"#));
        let rest = prop_oneof![
            prop::collection::vec(subfields, 0..4).prop_map(|fields| format!(r#""subfields":[{}]"#, fields.join(","))),
            text().prop_map(|content| format!(r#""content":{content}"#)),
        ];
        (short(), tag, short(), short(), rest, comma()).prop_map(|(group, tag, ind1, ind2, rest, comma)| {
            format!(r#"{{"fieldTag":{group},"marcTag":{tag}{comma}"ind1":{ind1},"ind2":{ind2},{rest}}}"#)
        })
    }

    fn is_json(json: &str) -> bool {
        serde_json::from_str::<&RawValue>(json).is_ok()
    }

    proptest! {
        #[test]
        fn usual_fields_are_read_as_with_care(json in list(usual_field()).prop_filter("JSON", |json| is_json(json))) {
            let raw: &RawValue = serde_json::from_str(&json).expect("JSON");
            if let Some(quick) = var_fields::read(raw) {
                prop_assert_eq!(with_care(raw), Ok(quick));
            }
        }

        /// The quick reader may give up, but never come to something else.
        #[test]
        fn what_is_read_quickly_is_what_is_read_with_care(
            json in list(object(
                &["fieldTag", "marcTag", "ind1", "ind2", "content", "subfields", "subfields", "m\\u0061rcTag", "other"],
                prop_oneof![
                    2 => text(),
                    1 => list(object(&["tag", "content", "content", "other"], text())),
                ],
            ))
        ) {
            let raw: &RawValue = serde_json::from_str(&json).expect("JSON");
            if let Some(quick) = var_fields::read(raw) {
                prop_assert_eq!(with_care(raw), Ok(quick));
            }
        }
    }

    /// BR-023: a null or a number where something else was expected costs no record.
    #[test]
    fn nulls_among_fields_and_numbers_for_texts_are_understood() {
        let json = r#"[null,{"fieldTag":"n","marcTag":500,"ind1":1,"ind2":true,"subfields":[null,
            {"tag":6,"content":1984},{"tag":"a","content":null}]},{"marcTag":"008","content":20240309}]"#;
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let fields = variable(raw).expect("understood");
        let [none, note, fixed] = fields.as_slice() else { panic!("{fields:?}") };
        assert_eq!(*none, VarField::default());
        assert_eq!((note.marc_tag.as_deref(), note.ind1.as_deref()), (Some("500"), Some("1")));
        let texts: Vec<(&str, &str)> =
            note.subfields.iter().map(|subfield| (subfield.tag.as_ref(), subfield.content.as_ref())).collect();
        assert_eq!(texts, [("", ""), ("6", "1984"), ("a", "")]);
        assert_eq!(fixed.content.as_deref(), Some("20240309"));
    }

    /// BR-023: it stands where its field is, without a code, so that the mapping to MARC leaves it out and says so.
    #[test]
    fn a_text_for_subfields_is_one_without_a_code() {
        let json = r#"[{"marcTag":"245","subfields":"T\u0069tle"},{"marcTag":"500","subfields":["note",{"tag":"a"}]}]"#;
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let fields = variable(raw).expect("understood");
        let texts = |index: usize| -> Vec<(&str, &str)> {
            fields[index].subfields.iter().map(|one| (one.tag.as_ref(), one.content.as_ref())).collect()
        };
        assert_eq!((texts(0), texts(1)), (vec![("", "Title")], vec![("", "note"), ("a", "")]));
        // Another surprise beside it is the one that is named.
        let worse = r#"[{"subfields":"x","content":[]}]"#;
        let raw: &RawValue = serde_json::from_str(worse).expect("JSON");
        assert_eq!(variable(raw).expect_err("a list").to_string(), "varFields[0].content: expected text");
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_its_place() {
        for (json, place) in [
            (r#"[null,7]"#, "varFields[1]: expected an object"),
            (r#"[{"marcTag":[]}]"#, "varFields[0].marcTag: expected text"),
            (r#"[{"subfields":[null,{"content":{}}]}]"#, "varFields[0].subfields[1].content: expected text"),
            (r#"[{"subfields":{}}]"#, "varFields[0].subfields: expected a list"),
        ] {
            let raw: &RawValue = serde_json::from_str(json).expect("JSON");
            assert_eq!(variable(raw).expect_err("not understood").to_string(), place, "{json}");
        }
    }

    #[test]
    fn the_usual_shape_is_read_quickly() {
        let json = r#"[ {"fieldTag":"t","marcTag":"245","ind1":"1","ind2":" ","subfields":[{"tag":"a","content":"A \"guide\""},
            {"content":null,"tag":"b"}]},{"fieldTag":"n","marcTag":null,"content":"x\\y"},{},{"subfields":[]}]"#;
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let fields = var_fields::read(raw).expect("usual");
        assert_eq!(fields, with_care(raw).expect("readable"));
        assert_eq!((fields[0].ind1.as_deref(), fields[0].ind2.as_deref()), (Some("1"), Some(" ")));
        assert_eq!(fields[0].subfields[0].content, "A \"guide\"");
    }
}
