//! The mask of items, and what items and bibs have in common.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::MarcDrop;
use super::bib::drop_raw_marc;
use super::links::{Pruned, prune};
use super::members::{array, elements, member, members, object, string};
use crate::record::{Fields, Item, Stream};

/// Members with rules of their own, which the search for links leaves alone.
const OWN_RULES: [&str; 3] = ["fixedFields", "varFields", "marc"];

/// What is kept of an item's fixed and variable fields.
#[derive(Debug)]
pub(in crate::privacy) struct ItemRules {
    /// Numbers of fixed fields that go.
    pub(in crate::privacy) fixed_drop: BTreeSet<String>,
    /// Tags of variable fields that stay.
    pub(in crate::privacy) var_keep: BTreeSet<String>,
}

impl ItemRules {
    /// Applies these rules to the decoded fields and to the raw ones.
    pub(in crate::privacy) fn mask(&self, item: &mut Item) {
        item.var_fields.retain(|field| self.keeps_var(&field.field_tag));
        self.mask_raw(&mut item.fields);
    }

    fn mask_raw(&self, fields: &mut Fields) {
        replace(fields, "fixedFields", |value| {
            let mut members = members(value)?;
            members.retain(|(number, _)| !self.drops_fixed(number));
            Some(object(&members))
        });
        replace(fields, "varFields", |value| {
            let mut elements = elements(value)?;
            elements.retain(|field| {
                let tag = member(field, "fieldTag").and_then(string);
                tag.is_some_and(|tag| self.keeps_var(&tag))
            });
            Some(array(&elements))
        });
    }

    fn drops_fixed(&self, number: &str) -> bool {
        // `066` is 66.
        let number = number.trim();
        let significant = number.trim_start_matches('0');
        self.fixed_drop.iter().any(|dropped| dropped == number || dropped.trim_start_matches('0') == significant)
    }

    fn keeps_var(&self, tag: &str) -> bool {
        self.var_keep.contains(tag.trim())
    }
}

/// Takes links to people out of every top-level member that has no rule of its own.
pub(in crate::privacy) fn prune_links(fields: &mut Fields) {
    let mut pruned: Vec<(String, Pruned)> = Vec::new();
    for (name, value) in fields.iter().filter(|(name, _)| !OWN_RULES.contains(name)) {
        match prune(name, value) {
            Pruned::Whole => {}
            less => pruned.push((name.to_owned(), less)),
        }
    }
    for (name, less) in pruned {
        match less {
            Pruned::Whole => {}
            Pruned::Part(part) => fields.set(&name, part),
            Pruned::Nothing => drop(fields.remove(&name)),
        }
    }
}

/// What is left of an entry that could not be decoded.
pub(in crate::privacy) fn mask_undecoded(
    stream: Stream,
    entry: &RawValue,
    item: &ItemRules,
    marc_drop: &MarcDrop,
) -> Option<Box<RawValue>> {
    let members = members(entry)?;
    let mut fields = Fields::new(members.into_iter().map(|(name, value)| (name, value.to_owned())).collect());
    match stream {
        Stream::Patrons => return None,
        Stream::Items => item.mask_raw(&mut fields),
        Stream::Bibs if marc_drop.is_empty() => {}
        Stream::Bibs => drop_raw_marc(&mut fields, marc_drop),
    }
    prune_links(&mut fields);
    serde_json::value::to_raw_value(&fields).ok()
}

/// Replaces the value of `name` by what `mask` leaves of it, and takes it out when `mask` cannot read it.
pub(in crate::privacy) fn replace(fields: &mut Fields, name: &str, mask: impl Fn(&RawValue) -> Option<Box<RawValue>>) {
    let Some(value) = fields.get(name) else { return };
    match mask(value) {
        Some(masked) => fields.set(name, masked),
        None => drop(fields.remove(name)),
    }
}
