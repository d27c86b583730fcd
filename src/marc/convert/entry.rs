//! The shape of one entry of Sierra's JSON, as far as conversion needs it.
//!
//! Saved answers have been through many hands: ids are numbers or texts (sierra-api.md §2.4), and stores such as NYPL's
//! add nulls where Sierra omits keys (§3.1).

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::subfields::WireSubfields;
use crate::marc::read::Damage;
use crate::record::{RecordNumber, Scalar, Stream, VarField};

/// One entry of a page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    id: Option<Scalar<'a>>,
    deleted: Option<bool>,
    #[serde(borrow)]
    var_fields: Option<Vec<Option<WireField<'a>>>>,
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
        let fields = self.var_fields.take()?;
        // A null among them becomes an empty one, which is reported.
        Some(fields.into_iter().map(|field| field.map(VarField::from).unwrap_or_default()).collect())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireField<'a> {
    #[serde(borrow)]
    field_tag: Option<Scalar<'a>>,
    #[serde(borrow)]
    marc_tag: Option<Scalar<'a>>,
    #[serde(borrow)]
    ind1: Option<Scalar<'a>>,
    #[serde(borrow)]
    ind2: Option<Scalar<'a>>,
    #[serde(borrow)]
    content: Option<Scalar<'a>>,
    subfields: Option<WireSubfields>,
}

/// The keys that tell a record from a part of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Keys {
    id: Option<IgnoredAny>,
    var_fields: Option<IgnoredAny>,
    marc: Option<IgnoredAny>,
    deleted: Option<IgnoredAny>,
    created_date: Option<IgnoredAny>,
    updated_date: Option<IgnoredAny>,
}

/// Whether a JSON object is an entry, and not a part of one such as a location or a varField.
pub(super) fn is_entry(json: &[u8]) -> bool {
    serde_json::from_slice::<Keys>(json).is_ok_and(|keys| {
        let Keys { id, var_fields, marc, deleted, created_date, updated_date } = keys;
        id.is_some() && [var_fields, marc, deleted, created_date, updated_date].iter().any(Option::is_some)
    })
}

impl From<WireField<'_>> for VarField {
    fn from(field: WireField<'_>) -> Self {
        let text = |scalar: Option<Scalar<'_>>| scalar.map(Scalar::into_string);
        Self {
            field_tag: text(field.field_tag).unwrap_or_default().into(),
            marc_tag: text(field.marc_tag).map(Into::into),
            ind1: text(field.ind1).map(Into::into),
            ind2: text(field.ind2).map(Into::into),
            content: text(field.content),
            subfields: field.subfields.unwrap_or_default().0,
        }
    }
}
