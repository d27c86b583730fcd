//! Writes records as the API serves them: which fields there are, which come by default, in which order.

mod bib;
mod fixed;
mod item;
mod patron;

use std::borrow::Cow;

pub(crate) use bib::push_marc;

use jiff::civil::Date;

use super::super::json::Object;
use super::super::kind::Kind;
use super::super::switches::{IdForm, Padding, Switches};
use super::super::world::{Bib, Item, Patron, Slot, Stamps, World};

/// What decides the form of an entry.
pub(crate) struct Form<'a> {
    /// The library, for its rules.
    pub(crate) world: &'a World,
    /// The server's quirks.
    pub(crate) switches: &'a Switches,
    /// The fields to write.
    pub(crate) fields: &'a FieldList,
}

/// The fields that a request asked for, in the order in which they are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldList {
    names: Vec<&'static str>,
    /// Bare `fields=,`: every field of a live record, but no `deletedDate` (`sierra-api.md` §2.3).
    is_every: bool,
}

/// A field that an endpoint knows.
pub(crate) struct FieldSpec {
    name: &'static str,
    is_default: bool,
}

const fn given(name: &'static str) -> FieldSpec {
    FieldSpec { name, is_default: true }
}

const fn named(name: &'static str) -> FieldSpec {
    FieldSpec { name, is_default: false }
}

impl FieldList {
    /// The fields that come when none is named.
    pub(crate) fn default_of(kind: Kind) -> Self {
        Self::chosen(kind, |spec| spec.is_default)
    }

    /// Every field.
    pub(crate) fn every(kind: Kind) -> Self {
        Self { is_every: true, ..Self::chosen(kind, |_| true) }
    }

    /// What a `fields` parameter asks for.
    ///
    /// # Errors
    /// The first name that the endpoint does not know.
    pub(crate) fn parse(kind: Kind, parameter: &str) -> Result<Self, String> {
        let names: Vec<&str> = parameter.split(',').collect();
        if names.iter().all(|name| name.is_empty()) {
            return Ok(Self::every(kind));
        }
        let known = |name: &str| name == "default" || specs(kind).iter().any(|spec| spec.name == name);
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            return Err((*unknown).to_owned());
        }
        let wants_default = names.contains(&"default");
        Ok(Self::chosen(kind, |spec| {
            spec.name == "id" || names.contains(&spec.name) || (wants_default && spec.is_default)
        }))
    }

    fn chosen(kind: Kind, choice: impl Fn(&FieldSpec) -> bool) -> Self {
        let names = specs(kind).iter().filter(|spec| choice(spec)).map(|spec| spec.name).collect();
        Self { names, is_every: false }
    }

    /// Whether a field was asked for.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether nothing but record numbers was asked for.
    pub(crate) fn is_numbers_only(&self) -> bool {
        self.names == ["id"]
    }

    /// Whether this came from a bare comma.
    pub(crate) fn is_every(&self) -> bool {
        self.is_every
    }
}

fn specs(kind: Kind) -> &'static [FieldSpec] {
    match kind {
        Kind::Bibs => &bib::FIELDS,
        Kind::Items => &item::FIELDS,
        Kind::Patrons => &patron::FIELDS,
    }
}

/// A record that an endpoint serves.
pub(crate) trait Served {
    /// Which endpoint.
    const KIND: Kind;

    /// Whether it is hidden from readers.
    fn is_suppressed(&self, world: &World) -> bool;

    /// Writes the field `name`, when the record has it.
    fn push_field(&self, name: &'static str, id: u64, stamps: &Stamps, form: &Form<'_>, entry: &mut Object<'_>);

    /// Writes what an endpoint adds to tombstones (`sierra-api.md` §3.5).
    fn push_tombstone_extras(form: &Form<'_>, entry: &mut Object<'_>);
}

/// Appends one entry.
pub(crate) fn push_entry<R: Served>(id: u64, slot: &Slot<R>, form: &Form<'_>, out: &mut String) {
    match slot {
        Slot::Live(stamps, record) => {
            let mut entry = Object::open(out);
            for name in &form.fields.names {
                match *name {
                    "id" => push_id(R::KIND, id, form, &mut entry),
                    "updatedDate" => entry.stamp("updatedDate", stamps.updated),
                    "createdDate" => entry.stamp("createdDate", stamps.created),
                    "deleted" => entry.display("deleted", false),
                    "suppressed" => entry.display("suppressed", record.is_suppressed(form.world)),
                    name => record.push_field(name, id, stamps, form, &mut entry),
                }
            }
            entry.close();
        }
        Slot::Deleted(stamps, day) => push_tombstone::<R>(id, stamps, *day, form, out),
    }
}

fn push_tombstone<R: Served>(id: u64, stamps: &Stamps, day: Date, form: &Form<'_>, out: &mut String) {
    let mut entry = Object::open(out);
    push_id(R::KIND, id, form, &mut entry);
    if form.switches.stale_tombstone_stamps && form.fields.has("updatedDate") {
        entry.stamp("updatedDate", stamps.updated);
    }
    if !form.fields.is_every {
        entry.date("deletedDate", day);
    }
    entry.display("deleted", true);
    R::push_tombstone_extras(form, &mut entry);
    entry.close();
}

fn push_id(kind: Kind, id: u64, form: &Form<'_>, entry: &mut Object<'_>) {
    let as_text = match form.switches.ids {
        IdForm::AsRecorded => kind != Kind::Patrons,
        IdForm::Strings => true,
        IdForm::Integers => false,
    };
    if as_text {
        entry.display("id", format_args!("\"{id}\""));
    } else {
        entry.display("id", id);
    }
}

/// A code padded to `length`, unless this server does not pad.
fn padded<'a>(code: &'a str, length: usize, form: &Form<'_>) -> Cow<'a, str> {
    if form.switches.padding == Padding::Nowhere || code.len() >= length {
        return Cow::Borrowed(code);
    }
    Cow::Owned(format!("{code:<length$}"))
}

/// `{code, name}` or however the second key is called.
fn push_code(entry: &mut Object<'_>, key: &str, code: &str, label: &str, name: &str) {
    let mut object = entry.object(key);
    object.string("code", code);
    object.string(label, name);
    object.close();
}

/// One live record with all its fields but `marc`, as it will be served once its last commit is visible.
pub(crate) fn whole_entry(world: &World, kind: Kind, id: u64) -> Option<String> {
    fn write<R: Served>(id: u64, slot: Option<&Slot<R>>, form: &Form<'_>) -> Option<String> {
        let slot = slot.filter(|slot| slot.live().is_some())?;
        let mut out = String::new();
        push_entry(id, slot, form, &mut out);
        Some(out)
    }
    let fields = FieldList::chosen(kind, |spec| spec.name != "marc");
    let form = Form { world, switches: &Switches::default(), fields: &fields };
    match kind {
        Kind::Bibs => write::<Bib>(id, world.bibs.committed(id), &form),
        Kind::Items => write::<Item>(id, world.items.committed(id), &form),
        Kind::Patrons => write::<Patron>(id, world.patrons.committed(id), &form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_can_be_named_and_added_to() {
        let plain = FieldList::default_of(Kind::Bibs);
        let more = FieldList::parse(Kind::Bibs, "default,varFields").unwrap();
        assert!(!plain.has("varFields") && more.has("varFields"));
        assert!(plain.names.iter().all(|name| more.has(name)));
        assert!(!FieldList::parse(Kind::Bibs, "varFields").unwrap().has("title"));
    }

    #[test]
    fn unknown_names_and_spaces_are_refused() {
        assert_eq!(FieldList::parse(Kind::Items, "id,itype").unwrap_err(), "itype");
        assert_eq!(FieldList::parse(Kind::Items, "id, deleted").unwrap_err(), " deleted");
        assert_eq!(FieldList::parse(Kind::Bibs, "holdings").unwrap_err(), "holdings");
    }

    #[test]
    fn a_bare_comma_means_every_field() {
        assert!(FieldList::parse(Kind::Bibs, ",").unwrap().is_every());
    }
}
