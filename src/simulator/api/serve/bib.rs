//! Bibs as served: `sierra-api.md` §3.2.

use super::super::super::json::{Object, push_array, push_string};
use super::super::super::kind::Kind;
use super::super::super::site::SEVERAL_LOCATIONS;
use super::super::super::world::{Bib, Content, Stamps, VarField, World};
use super::super::super::world::{RECORD_NUMBER_TAG, push_record_number_field, record_number_field};
use super::fixed::FixedFields;
use super::{FieldSpec, Form, Served, given, named, padded, push_code};

/// Defaults as recorded; `isbn` and `callNumber` come when present (v6.8).
pub(super) const FIELDS: [FieldSpec; 27] = [
    given("id"),
    given("updatedDate"),
    given("createdDate"),
    named("deletedDate"),
    given("deleted"),
    given("suppressed"),
    named("available"),
    given("isbn"),
    given("lang"),
    given("title"),
    given("author"),
    given("materialType"),
    given("bibLevel"),
    given("publishYear"),
    given("catalogDate"),
    given("country"),
    given("callNumber"),
    named("normTitle"),
    named("normAuthor"),
    named("locations"),
    named("orders"),
    named("copies"),
    named("holdCount"),
    named("isRequestable"),
    named("fixedFields"),
    named("varFields"),
    named("marc"),
];

impl Served for Bib {
    const KIND: Kind = Kind::Bibs;

    fn is_suppressed(&self, world: &World) -> bool {
        world.suppresses(self.code3)
    }

    fn push_field(&self, name: &'static str, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>) {
        let says = self.description();
        let derived = &says.derived;
        match name {
            "available" | "isRequestable" => entry.display(name, true),
            "isbn" => derived.isbn.iter().for_each(|isbn| entry.string(name, isbn)),
            "lang" => push_code(entry, name, says.language.code, "name", says.language.name),
            "title" => entry.string(name, &derived.title),
            "author" => entry.string(name, &derived.author),
            "materialType" => push_code(entry, name, says.material.code, "value", says.material.name),
            "bibLevel" => push_code(entry, name, says.level.code, "value", says.level.name),
            "publishYear" => says.year.into_iter().for_each(|year| entry.display(name, year)),
            "catalogDate" => self.catalogued.into_iter().for_each(|day| entry.date(name, day)),
            "country" => push_code(entry, name, &padded(says.country.code, 3, form), "name", says.country.name),
            "callNumber" => derived.call_number.iter().for_each(|mark| entry.string(name, mark)),
            "normTitle" => entry.string(name, &normalised(&derived.title)),
            "normAuthor" => entry.string(name, &normalised(&derived.author)),
            "locations" => push_array(entry.key(name), &self.locations, |out, location| {
                let mut object = Object::open(out);
                object.string("code", &padded(location.code, 5, form));
                object.string("name", location.name);
                object.close();
            }),
            "orders" => entry.key(name).push_str("[]"),
            "copies" => entry.display(name, 1),
            "holdCount" => entry.display(name, 0),
            "fixedFields" => self.push_fixed(id, stamps, form, entry),
            "varFields" => says.push_json(entry.key(name), RECORD_NUMBER_TAG, |out| push_record_number_field(out, id)),
            "marc" => push_marc(entry.key(name), &says.fields_with(record_number_field(id))),
            _ => {}
        }
    }

    fn push_tombstone_extras(_: &Form<'_>, _: &mut Object<'_>) {}
}

impl Bib {
    fn push_fixed(&self, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>) {
        let says = self.description();
        let mut object = entry.object("fixedFields");
        let mut fixed = FixedFields::new(&mut object, form);
        fixed.shown(24, "Language", says.language.code, says.language.name);
        fixed.quoted(25, "Skip", 0);
        match self.locations.as_slice() {
            [only] => fixed.shown(26, "Location", &padded(only.code, 5, form), only.name),
            _ => fixed.text(26, "Location", SEVERAL_LOCATIONS),
        }
        fixed.quoted(27, "COPIES", self.locations.len());
        if let Some(day) = self.catalogued {
            fixed.quoted(28, "Cat. Date", day);
        }
        fixed.shown(29, "Bib Level", says.level.code, says.level.name);
        fixed.shown(30, "Material Type", &padded(says.material.code, 3, form), says.material.name);
        fixed.text(31, "Bib Code 3", self.code3.encode_utf8(&mut [0; 4]));
        fixed.text(80, "Record Type", "b");
        fixed.quoted(81, "Record Number", id);
        fixed.stamp(83, "Created Date", stamps.created);
        fixed.stamp(84, "Updated Date", stamps.updated);
        fixed.quoted(85, "No. of Revisions", stamps.revisions);
        fixed.quoted(86, "Agency", 1);
        fixed.shown(89, "Country", &padded(says.country.code, 3, form), says.country.name);
        fixed.stamp(98, "PDATE", stamps.updated);
        fixed.text(107, "MARC Type", " ");
        object.close();
    }
}

/// The `marc` rendering of the same fields: MARC-in-JSON, in stored order, without fields that have no tag.
pub(crate) fn push_marc(out: &mut String, fields: &[VarField]) {
    let mut marc = Object::open(out);
    if let Some(leader) = fields.iter().find(|field| field.field_tag == '_').and_then(VarField::text) {
        marc.string("leader", leader);
    }
    let tagged = fields.iter().filter_map(|field| Some((field.marc_tag.as_deref()?, field)));
    push_array(marc.key("fields"), tagged, |out, (tag, field)| {
        let mut object = Object::open(out);
        match &field.content {
            Content::Text(text) => object.string(tag, text),
            Content::Subfields(subfields) => {
                let [first, second] = field.indicators.unwrap_or([' ', ' ']);
                let mut data = object.object(tag);
                push_array(data.key("subfields"), subfields, |out, (code, text)| {
                    out.push('{');
                    push_string(out, code.encode_utf8(&mut [0; 4]));
                    out.push(':');
                    push_string(out, text);
                    out.push('}');
                });
                data.string("ind1", first.encode_utf8(&mut [0; 4]));
                data.string("ind2", second.encode_utf8(&mut [0; 4]));
                data.close();
            }
        }
        object.close();
    });
    marc.close();
}

/// Small letters and digits with single spaces between words.
fn normalised(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
