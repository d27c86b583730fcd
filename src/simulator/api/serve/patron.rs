//! Patrons as served: `sierra-api.md` §3.4. Everything personal comes only when named.

use super::super::super::json::{Object, push_array};
use super::super::super::kind::Kind;
use super::super::super::world::{Patron, Stamps, VarField, World};
use super::fixed::FixedFields;
use super::{FieldSpec, Form, Served, given, named, padded, push_code};

/// Names, barcodes, `suppressed` and the dates are documented as returned only on request; the rest follows a v6
/// sample.
pub(super) const FIELDS: [FieldSpec; 25] = [
    given("id"),
    named("updatedDate"),
    named("createdDate"),
    named("deletedDate"),
    named("deleted"),
    named("suppressed"),
    named("names"),
    named("barcodes"),
    given("expirationDate"),
    given("birthDate"),
    named("emails"),
    given("patronType"),
    given("patronCodes"),
    given("homeLibraryCode"),
    given("homeLibrary"),
    given("message"),
    given("blockInfo"),
    named("autoBlockInfo"),
    named("addresses"),
    named("phones"),
    named("uniqueIds"),
    given("moneyOwed"),
    named("langPref"),
    named("fixedFields"),
    named("varFields"),
];

impl Served for Patron {
    const KIND: Kind = Kind::Patrons;

    fn is_suppressed(&self, _: &World) -> bool {
        self.is_suppressed
    }

    fn push_field(&self, name: &'static str, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>) {
        let member = &self.member;
        let home = padded(self.home.code, 5, form);
        match name {
            "names" => entry.strings(name, [member.name.as_str()]),
            "barcodes" => entry.strings(name, [member.barcode.as_str()]),
            "expirationDate" => entry.date(name, self.expires),
            "birthDate" => entry.date(name, member.born),
            "emails" => entry.strings(name, [member.email.as_str()]),
            "patronType" => entry.display(name, self.patron_type),
            "patronCodes" => entry.key(name).push_str(r#"{"pcode1":"-","pcode2":"-","pcode3":0,"pcode4":0}"#),
            "homeLibraryCode" => entry.string(name, &home),
            "homeLibrary" => push_code(entry, name, &home, "name", self.home.name),
            "message" => {
                let mut message = entry.object(name);
                message.string("code", "-");
                message.strings("accountMessages", [member.message.as_str()]);
                message.close();
            }
            "blockInfo" | "autoBlockInfo" => {
                let mut block = entry.object(name);
                block.string("code", self.block.encode_utf8(&mut [0; 4]));
                block.close();
            }
            "addresses" => push_array(entry.key(name), [&member.address], |out, lines| {
                let mut address = Object::open(out);
                address.strings("lines", lines.iter().map(String::as_str));
                address.string("type", "a");
                address.close();
            }),
            "phones" => push_array(entry.key(name), [&member.phone], |out, number| {
                let mut phone = Object::open(out);
                phone.string("number", number);
                phone.string("type", "t");
                phone.close();
            }),
            "uniqueIds" => entry.strings(name, [member.unique_id.as_str()]),
            "moneyOwed" => entry.display(name, format_args!("{}.{:02}", self.owed / 100, self.owed % 100)),
            "langPref" => entry.string(name, "eng"),
            "fixedFields" => self.push_fixed(id, stamps, form, entry),
            "varFields" => push_array(entry.key(name), self.fields(), |out, field| field.push_json(out)),
            _ => {}
        }
    }

    fn push_tombstone_extras(_: &Form<'_>, _: &mut Object<'_>) {}
}

impl Patron {
    /// The fields of which the named values are renderings; none has a MARC tag.
    fn fields(&self) -> [VarField; 7] {
        let member = &self.member;
        [
            VarField::plain('a', member.address.join("$")),
            VarField::plain('b', member.barcode.as_str()),
            VarField::plain('m', member.message.as_str()),
            VarField::plain('n', member.name.as_str()),
            VarField::plain('t', member.phone.as_str()),
            VarField::plain('u', member.unique_id.as_str()),
            VarField::plain('z', member.email.as_str()),
        ]
    }

    fn push_fixed(&self, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>) {
        let mut object = entry.object("fixedFields");
        let mut fixed = FixedFields::new(&mut object, form);
        fixed.quoted(43, "Expiration Date", self.expires);
        fixed.text(44, "PCODE1", "-");
        fixed.text(45, "PCODE2", "-");
        fixed.quoted(46, "PCODE3", 0);
        fixed.quoted(47, "Patron Type", self.patron_type);
        fixed.quoted(51, "Birth Date", self.member.born);
        fixed.shown(53, "Home Library", &padded(self.home.code, 5, form), self.home.name);
        fixed.text(56, "Manual Block", self.block.encode_utf8(&mut [0; 4]));
        fixed.text(80, "Record Type", "p");
        fixed.quoted(81, "Record Number", id);
        fixed.stamp(83, "Created Date", stamps.created);
        fixed.stamp(84, "Updated Date", stamps.updated);
        fixed.quoted(85, "No. of Revisions", stamps.revisions);
        fixed.quoted(86, "Agency", 1);
        fixed.stamp(98, "PDATE", stamps.updated);
        fixed.stamp(163, "Circ Activity", stamps.updated);
        fixed.text(268, "Notice Preference", "z");
        object.close();
    }
}
