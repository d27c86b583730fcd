//! A record's JSON as events carry it: Sierra's top-level fields as they came, on one line.
//!
//! Render after `privacy` has masked the record: what is in it then goes out.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::marc;
use crate::record::{Bib, Item, OneLine, Subfield, VarField};

/// The `record` of a bib: everything but the varFields that are in its MARC. Those that are not MARC (notes and the
/// like) stay under `varFields`; the key is absent when there are none.
#[must_use]
pub fn bib_record(bib: &Bib) -> Box<RawValue> {
    raw(&BibRecord(bib))
}

/// The `record` of an item: everything.
#[must_use]
pub fn item_record(item: &Item) -> Box<RawValue> {
    raw(&ItemRecord(item))
}

/// The varFields of a bib that its MARC does not carry, in Sierra's order.
pub(super) fn beside_marc(bib: &Bib) -> impl Iterator<Item = &VarField> {
    bib.var_fields.iter().flatten().filter(|field| !marc::is_carried(field))
}

fn raw(record: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(record).expect("texts and raw values are always JSON")
}

struct BibRecord<'a>(&'a Bib);

impl Serialize for BibRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.fields.iter() {
            if name != "varFields" {
                map.serialize_entry(name, &OneLine(value))?;
            } else if beside_marc(self.0).next().is_some() {
                let fields: Vec<VarFieldJson<'_>> = beside_marc(self.0).map(VarFieldJson::of).collect();
                map.serialize_entry(name, &fields)?;
            }
        }
        map.end()
    }
}

struct ItemRecord<'a>(&'a Item);

impl Serialize for ItemRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fields.iter().map(|(name, value)| (name, OneLine(value))))
    }
}

/// A varField in the shape in which Sierra sends it (sierra-api.md §3.1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VarFieldJson<'a> {
    field_tag: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ind1: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ind2: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subfields: Vec<SubfieldJson<'a>>,
}

#[derive(Serialize)]
struct SubfieldJson<'a> {
    tag: &'a str,
    content: &'a str,
}

impl<'a> VarFieldJson<'a> {
    fn of(field: &'a VarField) -> Self {
        let subfield = |Subfield { tag, content }: &'a Subfield| SubfieldJson { tag, content };
        Self {
            field_tag: &field.field_tag,
            ind1: field.ind1.as_deref(),
            ind2: field.ind2.as_deref(),
            content: field.content.as_deref(),
            subfields: field.subfields.iter().map(subfield).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Fields, RecordNumber};

    fn fields(members: &[(&str, &str)]) -> Fields {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("valid JSON");
        Fields::new(members.iter().map(|(name, value)| ((*name).to_owned(), raw(value))).collect())
    }

    fn bib(var_fields: Option<Vec<VarField>>, members: &[(&str, &str)]) -> Bib {
        Bib {
            id: RecordNumber::new(2_100_417),
            updated: None,
            suppressed: false,
            locations: Vec::new(),
            var_fields,
            marc: None,
            fields: fields(members),
        }
    }

    fn var_field(field_tag: &str, marc_tag: Option<&str>, content: &str) -> VarField {
        VarField {
            field_tag: field_tag.into(),
            marc_tag: marc_tag.map(Into::into),
            content: Some(content.to_owned()),
            ..VarField::default()
        }
    }

    #[test]
    fn a_bib_keeps_everything_but_its_marc_letter_for_letter() {
        let var_fields = vec![
            var_field("o", Some("001"), "ex1"),
            var_field("n", None, "a \"note\""),
            var_field("_", None, "00000nam"),
        ];
        let members = [
            ("id", "\"2100417\""),
            ("publishYear", "1.50"),
            ("varFields", "[1,2,3]"),
            ("lang", "{ \"code\": \"eng\" }"),
        ];
        assert_eq!(
            bib_record(&bib(Some(var_fields), &members)).get(),
            r#"{"id":"2100417","publishYear":1.50,"varFields":[{"fieldTag":"n","content":"a \"note\""}],"lang":{ "code": "eng" }}"#
        );
    }

    #[test]
    fn no_var_fields_are_written_when_all_of_them_are_marc() {
        let all_marc = bib(Some(vec![var_field("o", Some("001"), "ex1")]), &[("id", "1"), ("varFields", "[1]")]);
        assert_eq!(bib_record(&all_marc).get(), r#"{"id":1}"#);
        assert_eq!(bib_record(&bib(None, &[("id", "1")])).get(), r#"{"id":1}"#);
    }

    #[test]
    fn records_are_on_one_line_however_they_came() {
        let item = Item {
            id: RecordNumber::new(7),
            updated: None,
            suppressed: false,
            location: None,
            bib_ids: Vec::new(),
            var_fields: Vec::new(),
            fields: fields(&[("id", "7"), ("status", "{\n  \"display\": \"ON  SHELF\"\r\n}")]),
        };
        assert_eq!(item_record(&item).get(), r#"{"id":7,"status":{"display":"ON  SHELF"}}"#);
    }
}
