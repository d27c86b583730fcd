//! Items as served: `sierra-api.md` §3.3.

use super::super::super::json::{Object, push_array};
use super::super::super::kind::Kind;
use super::super::super::switches::{IdForm, Padding};
use super::super::super::world::{Content, Item, Stamps, World};
use super::fixed::FixedFields;
use super::{FieldSpec, Form, Served, given, named, padded, push_code};

/// Defaults as recorded; `suppressed` is not among them.
pub(super) const FIELDS: [FieldSpec; 17] = [
    given("id"),
    given("updatedDate"),
    given("createdDate"),
    named("deletedDate"),
    given("deleted"),
    named("suppressed"),
    given("bibIds"),
    given("location"),
    given("status"),
    given("volumes"),
    given("barcode"),
    given("callNumber"),
    named("itemType"),
    named("copyNo"),
    named("holdCount"),
    named("fixedFields"),
    named("varFields"),
];

impl Served for Item {
    const KIND: Kind = Kind::Items;

    fn is_suppressed(&self, world: &World) -> bool {
        world.suppresses(self.code2)
    }

    fn push_field(&self, name: &'static str, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>) {
        match name {
            "bibIds" => push_array(entry.key(name), &self.bib_ids, |out, bib| {
                let quote = if form.switches.ids == IdForm::Integers { "" } else { "\"" };
                super::super::super::json::push_display(out, format_args!("{quote}{bib}{quote}"));
            }),
            "location" => push_code(entry, name, &padded(self.location.code, 5, form), "name", self.location.name),
            "status" => {
                let mut status = entry.object(name);
                status.string("code", &self.status_code(form));
                status.string("display", self.status.name);
                if let Some(loan) = self.circulation.loan {
                    status.stamp("duedate", loan.due);
                }
                status.close();
            }
            "volumes" => {
                let volumes = self.fields.iter().filter(|field| field.field_tag == 'v');
                entry.strings(
                    name,
                    volumes.filter_map(|field| match &field.content {
                        Content::Text(text) => Some(text.as_str()),
                        Content::Subfields(_) => field.subfield('a'),
                    }),
                );
            }
            "barcode" => entry.string(name, &self.barcode),
            "callNumber" => self.call_number.iter().for_each(|mark| entry.string(name, mark)),
            "itemType" => entry.string(name, self.item_type.name),
            "copyNo" => entry.display(name, self.copy),
            "holdCount" => entry.display(name, self.circulation.holds),
            "fixedFields" => self.push_fixed(id, stamps, form, entry),
            "varFields" => push_array(entry.key(name), &self.fields, |out, field| field.push_json(out)),
            _ => {}
        }
    }

    fn push_tombstone_extras(form: &Form<'_>, entry: &mut Object<'_>) {
        for (name, empty) in [("bibIds", "[]"), ("fixedFields", "{}"), ("varFields", "[]")] {
            if form.fields.has(name) {
                entry.key(name).push_str(empty);
            }
        }
    }
}

impl Item {
    fn status_code(&self, form: &Form<'_>) -> String {
        let length = if form.switches.padding == Padding::Everywhere { 3 } else { 1 };
        format!("{:<length$}", self.status.code)
    }

    /// The recorded numbers and value types; 66 and 67 carry patrons' record numbers (`sierra-api.md` §3.4).
    fn push_fixed(&self, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>) {
        let desk = &self.circulation;
        let mut object = entry.object("fixedFields");
        let mut fixed = FixedFields::new(&mut object, form);
        fixed.plain(57, "BIB HOLD", false);
        fixed.plain(58, "COPY #", self.copy);
        fixed.text(59, "ICODE1", "0");
        fixed.text(60, "ICODE2", self.code2.encode_utf8(&mut [0; 4]));
        fixed.shown(61, "I TYPE", self.item_type.code, self.item_type.name);
        fixed.plain(62, "PRICE", "0.0");
        fixed.plain(64, "OUT LOC", 0);
        if let Some(loan) = desk.loan {
            fixed.quoted(66, "PATRON", loan.patron);
        }
        if let Some(patron) = desk.last_patron {
            fixed.quoted(67, "LPATRON", patron);
        }
        if let Some(stamp) = desk.last_in {
            fixed.stamp(68, "LCHKIN", stamp);
        }
        fixed.plain(70, "IN LOC", 0);
        fixed.plain(74, "IUSE3", 0);
        fixed.plain(76, "TOT CHKOUT", desk.checkouts);
        fixed.plain(77, "TOT RENEW", desk.renewals);
        if let Some(stamp) = desk.last_out {
            fixed.stamp(78, "LOUTDATE", stamp);
        }
        fixed.shown(79, "LOCATION", &padded(self.location.code, 5, form), self.location.name);
        fixed.text(80, "REC TYPE", "i");
        fixed.quoted(81, "RECORD #", id);
        fixed.stamp(83, "CREATED", stamps.created);
        fixed.stamp(84, "UPDATED", stamps.updated);
        fixed.quoted(85, "REVISIONS", stamps.revisions);
        fixed.quoted(86, "AGENCY", 1);
        fixed.shown(88, "STATUS", &self.status_code(form), self.status.name);
        fixed.plain(93, "INTL USE ", desk.internal_uses);
        fixed.plain(94, "COPY USE", 0);
        fixed.text(97, "IMESSAGE", " ");
        fixed.stamp(98, "PDATE", stamps.updated);
        fixed.text(108, "OPACMSG", "f");
        fixed.plain(109, "YTDCIRC", desk.checkouts.min(9));
        fixed.plain(110, "LYCIRC", 0);
        fixed.quoted(127, "AGENCY", 0);
        fixed.plain(161, "VI CENTRAL", 0);
        fixed.quoted(162, "IR DIST LEARN SAME SITE", 0);
        fixed.quoted(264, "Holdings Item Tag", 6);
        fixed.plain(265, "Inherit Location", false);
        object.close();
    }
}
