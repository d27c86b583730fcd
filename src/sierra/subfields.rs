//! The subfields of a varField, as they come.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::fields::{ListOf, Wire, skip, text};
use crate::record::Subfield;

/// The subfields of a field. A text in place of the list, or of one of them, is a subfield without a code: the mapping
/// to MARC leaves it out and says so, and the record is not lost over it (BR-023).
pub(super) struct WireSubfields(pub(super) Vec<Subfield>);

impl<'de> Deserialize<'de> for WireSubfields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SubfieldsVisitor;
        impl<'de> Visitor<'de> for SubfieldsVisitor {
            type Value = WireSubfields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WireSubfields, E> {
                Ok(WireSubfields(vec![without_code(text)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<WireSubfields, A::Error> {
                let list = ListOf::<WireSubfield, 4>::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(WireSubfields(list.0))
            }
        }
        deserializer.deserialize_any(SubfieldsVisitor)
    }
}

fn without_code(text: &str) -> Subfield {
    Subfield { content: text.into(), ..Subfield::default() }
}

pub(super) struct WireSubfield(Subfield);

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

            fn visit_str<E: Error>(self, text: &str) -> Result<WireSubfield, E> {
                Ok(WireSubfield(without_code(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireSubfield, A::Error> {
                let mut subfield = Subfield::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        SubfieldKey::Tag => subfield.tag = text(&mut map)?.unwrap_or_default().into(),
                        SubfieldKey::Content => subfield.content = text(&mut map)?.unwrap_or_default().into(),
                        SubfieldKey::Other => skip(&mut map)?,
                    }
                }
                Ok(WireSubfield(subfield))
            }
        }
        deserializer.deserialize_any(SubfieldVisitor)
    }
}

impl Wire for WireSubfield {
    type Record = Subfield;

    fn into_record(self) -> Subfield {
        self.0
    }
}
