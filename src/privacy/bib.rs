//! The mask of bibs: the fields of `marc_drop` go, wherever the MARC stands.

use serde_json::value::RawValue;

use super::MarcDrop;
use super::fields::replace;
use super::members::{array, elements, member, members, object, string};
use crate::record::{Bib, Fields, VarField};

/// Takes the fields of `marc_drop` out of a bib, wherever its MARC stands.
pub(in crate::privacy) fn drop_marc(bib: &mut Bib, marc_drop: &MarcDrop) {
    if marc_drop.is_empty() {
        return;
    }
    if let Some(var_fields) = &mut bib.var_fields {
        var_fields.retain_mut(|field| marc_drop.mask(field));
    }
    if let Some(marc) = bib.marc.take() {
        bib.marc = mask_marc_json(&marc, marc_drop);
    }
    drop_raw_marc(&mut bib.fields, marc_drop);
}

/// The same for the raw members of a bib.
pub(in crate::privacy) fn drop_raw_marc(fields: &mut Fields, marc_drop: &MarcDrop) {
    replace(fields, "varFields", |value| {
        let fields = elements(value)?.into_iter().filter_map(|field| mask_raw_var_field(field, marc_drop));
        Some(array(&fields.collect::<Vec<_>>()))
    });
    replace(fields, "marc", |value| mask_marc_json(value, marc_drop));
}

/// One varField as it came, without what is left out; `None` when nothing of it remains or it cannot be read.
fn mask_raw_var_field(field: &RawValue, marc_drop: &MarcDrop) -> Option<Box<RawValue>> {
    let Some(raw_tag) = member(field, "marcTag").filter(|tag| tag.get() != "null") else {
        return Some(field.to_owned());
    };
    let tag = string(raw_tag)?;
    if !marc_drop.touches(&tag) {
        return Some(field.to_owned());
    }
    let subfields = match member(field, "subfields") {
        Some(subfields) => elements(subfields)?,
        None => Vec::new(),
    };
    let kept: Vec<&RawValue> = subfields
        .into_iter()
        .filter(|subfield| {
            let code = member(subfield, "tag").and_then(string);
            code.is_some_and(|code| !marc_drop.drops(&tag, &code))
        })
        .collect();
    let content = member(field, "content").and_then(string);
    let mut probe = VarField { marc_tag: Some(tag.into()), content, ..VarField::default() };
    let stays = marc_drop.mask(&mut probe) || !kept.is_empty();
    if marc_drop.drops_field(probe.marc_tag.as_deref()?) || !stays {
        return None;
    }
    let kept = array(&kept);
    let rest = members(field)?.into_iter().filter_map(|(name, value)| match name.as_str() {
        "subfields" => Some((name, kept.as_ref())),
        "content" => probe.content.is_some().then_some((name, value)),
        _ => Some((name, value)),
    });
    Some(object(&rest.collect::<Vec<_>>()))
}

/// Sierra's own rendering without what is left out, in either of its shapes (sierra-api.md §4.2); `None` when the
/// shape is neither, since nothing can then be told apart.
fn mask_marc_json(marc: &RawValue, marc_drop: &MarcDrop) -> Option<Box<RawValue>> {
    let mut kept: Vec<(String, Box<RawValue>)> = Vec::new();
    for (name, value) in members(marc)? {
        let value = match name.as_str() {
            "leader" => value.to_owned(),
            "fields" => mask_each(value, |field| mask_marc_in_json(field, marc_drop))?,
            "controlfield" | "datafield" => mask_each(value, |field| mask_marc_json_field(field, marc_drop))?,
            _ => continue,
        };
        kept.push((name, value));
    }
    Some(object(&kept))
}

fn mask_each(fields: &RawValue, mask: impl Fn(&RawValue) -> Option<Box<RawValue>>) -> Option<Box<RawValue>> {
    Some(array(&elements(fields)?.into_iter().filter_map(mask).collect::<Vec<_>>()))
}

/// A field of the code4lib shape: `{"590":{"ind1":" ","ind2":" ","subfields":[{"a":"…"}]}}` or `{"001":"…"}`.
fn mask_marc_in_json(field: &RawValue, marc_drop: &MarcDrop) -> Option<Box<RawValue>> {
    let mut kept: Vec<(String, Box<RawValue>)> = Vec::new();
    for (tag, value) in members(field)? {
        if marc_drop.drops_field(&tag) {
            continue;
        }
        if !marc_drop.touches(&tag) {
            kept.push((tag, value.to_owned()));
            continue;
        }
        let mut parts: Vec<(String, Box<RawValue>)> = Vec::new();
        for (name, part) in members(value)? {
            if name == "subfields" {
                let subfields = elements(part)?;
                let subfields = subfields.into_iter().filter(|subfield| {
                    members(subfield).is_some_and(|codes| codes.iter().all(|(code, _)| !marc_drop.drops(&tag, code)))
                });
                parts.push((name, array(&subfields.collect::<Vec<_>>())));
            } else {
                parts.push((name, part.to_owned()));
            }
        }
        kept.push((tag, object(&parts)));
    }
    if kept.is_empty() { None } else { Some(object(&kept)) }
}

/// A field of Sierra's own shape: `{"tag":"590","ind":"  ","subfield":[{"code":"a","data":"…"}]}`.
fn mask_marc_json_field(field: &RawValue, marc_drop: &MarcDrop) -> Option<Box<RawValue>> {
    let tag = member(field, "tag").and_then(string)?;
    if marc_drop.drops_field(&tag) {
        return None;
    }
    if !marc_drop.touches(&tag) {
        return Some(field.to_owned());
    }
    let mut parts: Vec<(String, Box<RawValue>)> = Vec::new();
    for (name, part) in members(field)? {
        if name == "subfield" {
            let subfields = elements(part)?;
            let subfields = subfields.into_iter().filter(|subfield| {
                member(subfield, "code").and_then(string).is_some_and(|code| !marc_drop.drops(&tag, &code))
            });
            parts.push((name, array(&subfields.collect::<Vec<_>>())));
        } else {
            parts.push((name, part.to_owned()));
        }
    }
    Some(object(&parts))
}
