//! varFields and fixedFields of an entry, decoded; and where in them something is wrong.
//!
//! varFields are most of a page, so they are read straight into records with no step between. Only when that fails are
//! they walked again to find the place.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::wire::RawObject;
use crate::record::{FixedFields, Subfield, VarField};

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

/// The fixed fields of an entry by number, whatever stands behind each.
pub(super) fn fixed(raw: &RawValue) -> Result<FixedFields, FieldError> {
    let object: RawObject<'_> =
        serde_json::from_str(raw.get()).map_err(|_| FieldError::new("fixedFields", "an object"))?;
    let mut fields = FixedFields::new();
    for (number, value) in object.iter() {
        if is_too_deep(value) {
            return Err(FieldError::too_deep(&format!("fixedFields.{number}")));
        }
        fields.insert(number.to_owned(), value.to_owned());
    }
    Ok(fields)
}

/// The variable fields of an entry, in order.
pub(super) fn variable(raw: &RawValue) -> Result<Vec<VarField>, FieldError> {
    match serde_json::from_str::<ListOf<WireVarField, 40>>(raw.get()) {
        Ok(fields) => Ok(fields.0),
        Err(_) => Err(locate(raw)),
    }
}

/// A list that is read straight into records. It begins with the room that a usual one needs: growing step by step
/// costs a good part of the time that decoding takes.
struct ListOf<W: Wire, const USUAL: usize>(Vec<W::Record>);

/// A wire shape that is a record already.
trait Wire {
    type Record;

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
                let Some(first) = list.next_element::<W>()? else { return Ok(ListOf(Vec::new())) };
                let mut records = Vec::with_capacity(USUAL);
                records.push(first.into_record());
                while let Some(next) = list.next_element::<W>()? {
                    records.push(next.into_record());
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

impl Wire for WireSubfield {
    type Record = Subfield;

    fn into_record(self) -> Subfield {
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
                        VarFieldKey::FieldTag => field.field_tag = map.next_value::<Option<_>>()?.unwrap_or_default(),
                        VarFieldKey::MarcTag => field.marc_tag = map.next_value()?,
                        VarFieldKey::Ind1 => field.ind1 = map.next_value()?,
                        VarFieldKey::Ind2 => field.ind2 = map.next_value()?,
                        VarFieldKey::Content => field.content = map.next_value()?,
                        VarFieldKey::Subfields => {
                            let list = map.next_value::<Option<ListOf<WireSubfield, 4>>>()?;
                            field.subfields = list.map(|list| list.0).unwrap_or_default();
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

struct WireSubfield(Subfield);

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum SubfieldKey {
    Tag,
    Content,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for WireSubfield {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SubfieldVisitor;
        impl<'de> Visitor<'de> for SubfieldVisitor {
            type Value = WireSubfield;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireSubfield, A::Error> {
                let mut subfield = Subfield::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        SubfieldKey::Tag => subfield.tag = map.next_value::<Option<_>>()?.unwrap_or_default(),
                        SubfieldKey::Content => subfield.content = map.next_value::<Option<_>>()?.unwrap_or_default(),
                        SubfieldKey::Other => skip(&mut map)?,
                    }
                }
                Ok(WireSubfield(subfield))
            }
        }
        deserializer.deserialize_map(SubfieldVisitor)
    }
}

/// Passes over the value of a key we do not know; it stays in the raw fields, so its depth counts.
fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    if is_too_deep(map.next_value::<&'de RawValue>()?) { Err(A::Error::custom("nested too deeply")) } else { Ok(()) }
}

/// Finds what made [`variable`] fail.
fn locate(raw: &RawValue) -> FieldError {
    let Ok(fields) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        return FieldError::new("varFields", "a list");
    };
    for (index, field) in fields.into_iter().enumerate() {
        if serde_json::from_str::<WireVarField>(field.get()).is_err() {
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
            if serde_json::from_str::<Option<Cow<'_, str>>>(value.get()).is_err() {
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
    let Ok(subfields) = serde_json::from_str::<Option<Vec<&RawValue>>>(raw.get()) else {
        return Some(FieldError::new(path, "a list"));
    };
    for (index, subfield) in subfields.unwrap_or_default().into_iter().enumerate() {
        if serde_json::from_str::<WireSubfield>(subfield.get()).is_err() {
            return Some(locate_in_object(&format!("{path}[{index}]"), subfield, &["tag", "content"]));
        }
    }
    None
}
