//! The two shapes of MARC-in-JSON, read straight into a record.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use crate::marc::builder::Builder;
use crate::marc::error::MarcError;
use crate::marc::json::text::Text;
use crate::marc::loss::LossKind;
use crate::marc::read::Damage;
use crate::marc::tag::Tag;
use crate::marc::text;
use crate::record::Scalar;

/// The keys that tell a record from a part of one.
#[derive(Deserialize)]
struct Keys {
    leader: Option<IgnoredAny>,
    fields: Option<IgnoredAny>,
    controlfield: Option<IgnoredAny>,
    datafield: Option<IgnoredAny>,
}

/// Whether a JSON object is a record, and not a part of one such as a field.
pub(super) fn is_record(json: &[u8]) -> bool {
    serde_json::from_slice::<Keys>(json)
        .is_ok_and(|keys| [keys.leader, keys.fields, keys.controlfield, keys.datafield].iter().any(Option::is_some))
}

/// Reads one object. What is wrong with the record beyond its JSON is left in `refusal`.
pub(super) fn read(json: &str, builder: Builder<'_>, refusal: &mut Option<Damage>) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    RecordShape(Target { builder, refusal }).deserialize(&mut deserializer)?;
    deserializer.end()
}

struct Target<'a, 'b> {
    builder: Builder<'a>,
    refusal: &'b mut Option<Damage>,
}

impl Target<'_, '_> {
    /// serde's errors are texts only, so the real cause is put aside.
    fn accept<E: Error>(&mut self, result: Result<(), MarcError>) -> Result<(), E> {
        result.map_err(|error| self.refuse(error.into()))
    }

    fn refuse<E: Error>(&mut self, damage: Damage) -> E {
        *self.refusal = Some(damage);
        E::custom("refused")
    }

    fn control<E: Error>(&mut self, tag: Tag, content: &str) -> Result<(), E> {
        let appended = if tag.is_control() {
            self.builder.control(tag, content)
        } else {
            let first = self.builder.record.subfield_count();
            let appended = self.builder.content_as_subfield(tag, content);
            let indicators = [self.builder.indicator(tag, 1, None), self.builder.indicator(tag, 2, None)];
            self.builder.close(tag, indicators, first);
            appended
        };
        self.accept(appended)
    }

    /// Reports a null where a field was expected.
    fn no_field(&mut self, tag: &str) {
        self.builder.losses.push(LossKind::FieldEmpty, tag, || "null; field left out".to_owned());
    }

    fn close(&mut self, tag: Tag, ind1: Option<&str>, ind2: Option<&str>, first: usize) {
        if tag.is_control() {
            let subfields = self.builder.record.subfield_count() - first;
            self.builder.record.forget_subfields(first);
            self.builder.losses.push(LossKind::ControlSubfields, tag.as_str(), || {
                format!("{} and no content; field left out", text::count(subfields as u64, "subfield"))
            });
            return;
        }
        let indicators = [self.builder.indicator(tag, 1, ind1), self.builder.indicator(tag, 2, ind2)];
        self.builder.close(tag, indicators, first);
    }
}

/// `{"leader":…,"fields":[…]}` or `{"leader":…,"controlfield":[…],"datafield":[…]}`.
struct RecordShape<'a, 'b>(Target<'a, 'b>);

impl<'de> DeserializeSeed<'de> for RecordShape<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordShape<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a MARC record as an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut leader: Option<Text<'de>> = None;
        let mut is_record = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "leader" => leader = map.next_value::<Option<Text<'de>>>()?,
                "fields" => map.next_value_seed(FieldsShape(&mut self.0))?,
                "controlfield" => {
                    for field in map.next_value::<Option<Vec<Option<IiiControl<'de>>>>>()?.unwrap_or_default() {
                        let Some(field) = field else {
                            self.0.no_field("");
                            continue;
                        };
                        let Some(tag) = self.0.builder.tag(&field.tag, String::new) else { continue };
                        match &field.data {
                            Some(data) => self.0.control(tag, data)?,
                            None => self.0.no_field(tag.as_str()),
                        }
                    }
                }
                "datafield" => {
                    for field in map.next_value::<Option<Vec<Option<IiiData<'de>>>>>()?.unwrap_or_default() {
                        match &field {
                            Some(field) => self.iii_data(field)?,
                            None => self.0.no_field(""),
                        }
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            }
            is_record = true;
        }
        if !is_record {
            return Err(self.0.refuse(Damage::Structure { what: "neither leader nor fields" }));
        }
        self.0.builder.leader(leader.as_deref());
        self.0.builder.finish();
        Ok(())
    }
}

impl RecordShape<'_, '_> {
    fn iii_data<E: Error>(&mut self, field: &IiiData<'_>) -> Result<(), E> {
        let Some(tag) = self.0.builder.tag(&field.tag, String::new) else { return Ok(()) };
        let first = self.0.builder.record.subfield_count();
        for subfield in field.subfield.iter().flatten() {
            let (code, data) = match subfield {
                Some(IiiSubfield { code, data }) => (code.as_deref(), data.as_deref()),
                None => (None, None),
            };
            let appended = self.0.builder.subfield(tag, code.unwrap_or_default(), data.unwrap_or_default());
            self.0.accept(appended)?;
        }
        let both = field.ind.as_deref().unwrap_or_default();
        let split = both.char_indices().nth(1).map_or(both.len(), |(position, _)| position);
        let (ind1, ind2) = both.split_at_checked(split).unwrap_or_default();
        self.0.close(tag, Some(ind1), Some(ind2), first);
        Ok(())
    }
}

#[derive(Deserialize)]
struct IiiControl<'a> {
    #[serde(borrow)]
    tag: Scalar<'a>,
    #[serde(borrow)]
    data: Option<Scalar<'a>>,
}

#[derive(Deserialize)]
struct IiiData<'a> {
    #[serde(borrow)]
    tag: Scalar<'a>,
    /// Both indicators in one text: `"1 "`.
    #[serde(borrow)]
    ind: Option<Scalar<'a>>,
    #[serde(borrow)]
    subfield: Option<Vec<Option<IiiSubfield<'a>>>>,
}

#[derive(Deserialize)]
struct IiiSubfield<'a> {
    #[serde(borrow)]
    code: Option<Scalar<'a>>,
    #[serde(borrow)]
    data: Option<Scalar<'a>>,
}

/// `[{"001":…},{"245":{…}}]`.
struct FieldsShape<'s, 'a, 'b>(&'s mut Target<'a, 'b>);

impl<'de> DeserializeSeed<'de> for FieldsShape<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldsShape<'_, '_, '_> {
    type Value = ();

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of fields")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_element_seed(FieldShape(self.0))?.is_some() {}
        Ok(())
    }
}

/// `{"001":"…"}` or `{"245":{"ind1":…,"ind2":…,"subfields":[…]}}`.
struct FieldShape<'s, 'a, 'b>(&'s mut Target<'a, 'b>);

impl<'de> DeserializeSeed<'de> for FieldShape<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldShape<'_, '_, '_> {
    type Value = ();

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.no_field("");
        Ok(())
    }

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field as an object with its tag as the key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(came) = map.next_key::<Text<'de>>()? {
            match self.0.builder.tag(&came, String::new) {
                Some(tag) => map.next_value_seed(ContentShape { target: self.0, tag })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// What stands under a tag: a text or an object.
struct ContentShape<'s, 'a, 'b> {
    target: &'s mut Target<'a, 'b>,
    tag: Tag,
}

impl<'de> DeserializeSeed<'de> for ContentShape<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ContentShape<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the text of a control field or the object of a data field")
    }

    fn visit_str<E: Error>(self, content: &str) -> Result<(), E> {
        self.target.control(self.tag, content)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.target.control(self.tag, &number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.target.control(self.tag, &number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        let text = Scalar::deserialize(number.into_deserializer())?;
        self.target.control(self.tag, &text)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.target.control(self.tag, if value { "true" } else { "false" })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.target.no_field(self.tag.as_str());
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let first = self.target.builder.record.subfield_count();
        let (mut ind1, mut ind2) = (None, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "ind1" => ind1 = map.next_value::<Option<Scalar<'de>>>()?,
                "ind2" => ind2 = map.next_value::<Option<Scalar<'de>>>()?,
                "subfields" => map.next_value_seed(SubfieldsShape { target: &mut *self.target, tag: self.tag })?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.target.close(self.tag, ind1.as_deref(), ind2.as_deref(), first);
        Ok(())
    }
}

/// `[{"a":"…"},{"b":"…"}]`.
struct SubfieldsShape<'s, 'a, 'b> {
    target: &'s mut Target<'a, 'b>,
    tag: Tag,
}

impl<'de> DeserializeSeed<'de> for SubfieldsShape<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SubfieldsShape<'_, '_, '_> {
    type Value = ();

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of subfields")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut subfields: A) -> Result<(), A::Error> {
        while subfields.next_element_seed(SubfieldShape { target: &mut *self.target, tag: self.tag })?.is_some() {}
        Ok(())
    }
}

/// `{"a":"…"}`.
struct SubfieldShape<'s, 'a, 'b> {
    target: &'s mut Target<'a, 'b>,
    tag: Tag,
}

impl<'de> DeserializeSeed<'de> for SubfieldShape<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SubfieldShape<'_, '_, '_> {
    type Value = ();

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        let refused = self.target.builder.subfield(self.tag, "", "");
        self.target.accept(refused)
    }

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a subfield as an object with its code as the key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(code) = map.next_key::<Text<'de>>()? {
            let value = map.next_value::<Option<Scalar<'de>>>()?.unwrap_or_default();
            let appended = self.target.builder.subfield(self.tag, &code, &value);
            self.target.accept(appended)?;
        }
        Ok(())
    }
}
