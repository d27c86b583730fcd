//! The subfields of a saved varField, as they come.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::record::{Scalar, Subfield};

/// The subfields of a field. A text in place of the list, or of one of them, is a subfield without a code, which is
/// left out and reported (BR-023); so is a null.
#[derive(Default)]
pub(super) struct WireSubfields(pub(super) Vec<Subfield>);

impl<'de> Deserialize<'de> for WireSubfields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = WireSubfields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WireSubfields, E> {
                Ok(WireSubfields(vec![without_code(text)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WireSubfields, A::Error> {
                let mut subfields = Vec::new();
                while let Some(subfield) = list.next_element::<Option<WireSubfield>>()? {
                    subfields.push(subfield.map(|subfield| subfield.0).unwrap_or_default());
                }
                Ok(WireSubfields(subfields))
            }
        }
        deserializer.deserialize_any(ListVisitor)
    }
}

struct WireSubfield(Subfield);

#[derive(serde::Deserialize)]
struct Keys<'a> {
    #[serde(borrow)]
    tag: Option<Scalar<'a>>,
    #[serde(borrow)]
    content: Option<Scalar<'a>>,
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

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WireSubfield, A::Error> {
                let Keys { tag, content } = Keys::deserialize(MapAccessDeserializer::new(map))?;
                let text = |scalar: Option<Scalar<'_>>| scalar.map(Scalar::into_string).unwrap_or_default();
                Ok(WireSubfield(Subfield { tag: text(tag).into(), content: text(content) }))
            }
        }
        deserializer.deserialize_any(SubfieldVisitor)
    }
}

fn without_code(text: &str) -> Subfield {
    Subfield { content: text.into(), ..Subfield::default() }
}
