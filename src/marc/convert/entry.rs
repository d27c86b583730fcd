//! The shape of one entry of Sierra's JSON, as far as conversion needs it.
//!
//! Saved answers have been through many hands: ids are numbers or texts (sierra-api.md §2.4), and stores such as NYPL's
//! add nulls where Sierra omits keys (§3.1).

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Visitor};
use serde_json::value::RawValue;

use crate::marc::read::Damage;
use crate::record::{RecordNumber, Stream, Subfield, VarField};

/// One entry of a page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    id: Option<Scalar>,
    deleted: Option<bool>,
    var_fields: Option<Vec<WireField>>,
    #[serde(borrow)]
    pub(super) marc: Option<&'a RawValue>,
    // What follows only tells kinds of records apart.
    code: Option<IgnoredAny>,
    http_status: Option<IgnoredAny>,
    bib_ids: Option<IgnoredAny>,
    item_ids: Option<IgnoredAny>,
    piece_count: Option<IgnoredAny>,
    names: Option<IgnoredAny>,
    patron_type: Option<IgnoredAny>,
    barcodes: Option<IgnoredAny>,
    order_date: Option<IgnoredAny>,
    vendor_record_code: Option<IgnoredAny>,
}

impl Entry<'_> {
    /// The record number of a live bib, or why this is none.
    pub(super) fn number(&self) -> Result<RecordNumber, Damage> {
        let Some(id) = &self.id else {
            let is_error = self.code.is_some() || self.http_status.is_some();
            return Err(if is_error { Damage::ErrorAnswer } else { Damage::NoNumber });
        };
        if let Some(kind) = self.other_kind() {
            return Err(Damage::NotABib { kind });
        }
        if self.deleted == Some(true) {
            return Err(Damage::Tombstone);
        }
        RecordNumber::parse(&id.0, Stream::Bibs).map_err(|_| Damage::NoNumber)
    }

    /// A deleted item is an item first.
    fn other_kind(&self) -> Option<&'static str> {
        match self {
            Self { bib_ids: Some(_), item_ids: Some(_), .. } | Self { piece_count: Some(_), .. } => Some("a holdings"),
            Self { bib_ids: Some(_), .. } => Some("an item"),
            Self { names: Some(_), .. } | Self { patron_type: Some(_), .. } | Self { barcodes: Some(_), .. } => {
                Some("a patron")
            }
            Self { order_date: Some(_), .. } | Self { vendor_record_code: Some(_), .. } => Some("an order"),
            _ => None,
        }
    }

    /// The variable fields, if the key was there at all.
    pub(super) fn take_var_fields(&mut self) -> Option<Vec<VarField>> {
        self.var_fields.take().map(|fields| fields.into_iter().map(VarField::from).collect())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireField {
    field_tag: Option<Scalar>,
    marc_tag: Option<Scalar>,
    ind1: Option<Scalar>,
    ind2: Option<Scalar>,
    content: Option<Scalar>,
    subfields: Option<Vec<WireSubfield>>,
}

#[derive(Deserialize)]
struct WireSubfield {
    tag: Option<Scalar>,
    content: Option<Scalar>,
}

impl From<WireField> for VarField {
    fn from(field: WireField) -> Self {
        let text = |scalar: Option<Scalar>| scalar.map(|Scalar(text)| text);
        let subfields = field.subfields.unwrap_or_default().into_iter().map(|subfield| Subfield {
            tag: text(subfield.tag).unwrap_or_default(),
            content: text(subfield.content).unwrap_or_default(),
        });
        Self {
            field_tag: text(field.field_tag).unwrap_or_default(),
            marc_tag: text(field.marc_tag),
            ind1: text(field.ind1),
            ind2: text(field.ind2),
            content: text(field.content),
            subfields: subfields.collect(),
        }
    }
}

/// A text, or a number where somebody's tools took a text for one.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;
        impl Visitor<'_> for ScalarVisitor {
            type Value = Scalar;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or a number")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}
