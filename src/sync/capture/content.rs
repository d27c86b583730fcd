//! What a record's content is: what of it is emitted, and the hash that decides whether it is the same.
//!
//! The hash is over a canonical form, so that neither the order of keys nor whitespace makes a change, and it leaves
//! out what moves without meaning: `updatedDate` and the fixed fields of `hash_ignore`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::privacy::Keyring;
use crate::record::{Canonicalizer, Fields, RecordNumber};
use crate::sync::{ContentHash, DeleteReason};

/// The content of a live bib.
pub(super) fn hash_bib(suppressed: bool, fields: &Fields, hash_ignore: &[String], marcxml: &str) -> ContentHash {
    let mut form = opening(b"bib", suppressed);
    append_fields(fields, hash_ignore, &mut form);
    Canonicalizer::append_str(marcxml, &mut form);
    hash(&form)
}

/// The content of a live item. Links are a set: their order does not count.
pub(super) fn hash_item(
    suppressed: bool,
    bib_ids: &[RecordNumber],
    fields: &Fields,
    hash_ignore: &[String],
) -> ContentHash {
    let mut form = opening(b"item", suppressed);
    let mut links: Vec<u64> = bib_ids.iter().map(|number| number.value()).collect();
    links.sort_unstable();
    links.dedup();
    form.extend_from_slice(&u64::try_from(links.len()).unwrap_or(u64::MAX).to_le_bytes());
    links.iter().for_each(|link| form.extend_from_slice(&link.to_le_bytes()));
    append_fields(fields, hash_ignore, &mut form);
    hash(&form)
}

/// The content of a live patron, keyed: without the key nobody can try out what it was (BR-123).
pub(super) fn hash_patron(suppressed: bool, masked: &RawValue, keyring: &Keyring) -> ContentHash {
    let mut form = opening(b"patron", suppressed);
    Canonicalizer::default().append_without(masked, |key| key == UPDATED.as_bytes(), &mut form);
    ContentHash(keyring.keyed_hash(&[&form]))
}

/// The content of a record that is gone.
pub(super) fn hash_delete(reason: DeleteReason) -> ContentHash {
    hash(format!("delete {reason:?}").as_bytes())
}

/// Fields as one JSON object, in the order in which they came.
pub(super) fn object(fields: &Fields) -> Box<RawValue> {
    let size: usize = fields.iter().map(|(key, value)| key.len() + value.get().len() + 4).sum();
    let mut text = String::with_capacity(size + 2);
    text.push('{');
    for (key, value) in fields.iter() {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&serde_json::to_string(key).expect("a string is always JSON"));
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    RawValue::from_string(text).expect("members of valid JSON, joined as an object, are valid JSON")
}

/// Leaves of `varFields` only those `without_marc` that are in no MARC record, so that each field stands in one place.
pub(super) fn keep_unmarked_var_fields(fields: &mut Fields, without_marc: usize) {
    if without_marc == 0 {
        fields.remove(VAR_FIELDS);
        return;
    }
    let kept = fields.get(VAR_FIELDS).and_then(|all| serde_json::from_str::<Vec<&RawValue>>(all.get()).ok()).map(|all| {
        let kept = all.into_iter().filter(|field| !is_carried(field)).map(RawValue::get).collect::<Vec<_>>();
        RawValue::from_string(format!("[{}]", kept.join(","))).expect("valid JSON values in brackets are valid JSON")
    });
    match kept {
        Some(kept) => fields.set(VAR_FIELDS, kept),
        None => drop(fields.remove(VAR_FIELDS)),
    }
}

const UPDATED: &str = "updatedDate";
const VAR_FIELDS: &str = "varFields";
const FIXED_FIELDS: &str = "fixedFields";

/// The same question as [`crate::marc::is_carried`], of a field as it came.
fn is_carried(field: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tags {
        field_tag: Option<String>,
        marc_tag: Option<String>,
    }
    serde_json::from_str::<Tags>(field.get())
        .is_ok_and(|tags| tags.marc_tag.is_some() || tags.field_tag.as_deref() == Some("_"))
}

fn opening(kind: &[u8], suppressed: bool) -> Vec<u8> {
    let mut form = Vec::with_capacity(4096);
    form.extend_from_slice(kind);
    form.push(u8::from(suppressed));
    form
}

fn append_fields(fields: &Fields, hash_ignore: &[String], form: &mut Vec<u8>) {
    let mut members: Vec<(&str, &RawValue)> = fields.iter().filter(|(key, _)| *key != UPDATED).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    let mut canonicalizer = Canonicalizer::default();
    for (key, value) in members {
        Canonicalizer::append_str(key, form);
        if key == FIXED_FIELDS {
            let is_ignored = |number: &[u8]| hash_ignore.iter().any(|ignored| ignored.as_bytes() == number);
            canonicalizer.append_without(value, is_ignored, form);
        } else {
            canonicalizer.append(value, form);
        }
    }
}

fn hash(form: &[u8]) -> ContentHash {
    let digest = blake3::hash(form);
    let mut first = [0; 16];
    first.copy_from_slice(digest.as_bytes().split_at(16).0);
    ContentHash(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        let raw: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).expect("an object");
        Fields::new(raw.into_iter().collect())
    }

    const IGNORED: [&str; 2] = ["84", "85"];

    fn bib(suppressed: bool, text: &str, marcxml: &str) -> ContentHash {
        hash_bib(suppressed, &fields(text), &IGNORED.map(str::to_owned), marcxml)
    }

    #[test]
    fn stamps_and_ignored_fixed_fields_make_no_change() {
        let first = bib(
            false,
            r#"{"id":"7","updatedDate":"2024-03-09T02:14:07Z","fixedFields":{"31":{"value":"-"},"85":{"value":"3"}}}"#,
            "<record/>",
        );
        let bumped = bib(
            false,
            r#"{"fixedFields":{"85":{"value":"4"},"31":{"value":"-"}},"updatedDate":"2024-03-10T00:00:00Z","id":"7"}"#,
            "<record/>",
        );
        assert_eq!(first, bumped);
    }

    #[test]
    fn suppression_fields_and_marc_all_make_a_change() {
        let text = r#"{"id":"7","fixedFields":{"31":{"value":"-"}}}"#;
        let first = bib(false, text, "<record/>");
        assert_ne!(first, bib(true, text, "<record/>"));
        assert_ne!(first, bib(false, text, "<record></record>"));
        assert_ne!(first, bib(false, r#"{"id":"7","fixedFields":{"31":{"value":"s"}}}"#, "<record/>"));
        assert_ne!(first, bib(false, r#"{"id":"7","title":"x","fixedFields":{"31":{"value":"-"}}}"#, "<record/>"));
    }

    /// BR-014: a moved item is changed even when nothing else of it is; the order of its links is nothing.
    #[test]
    fn links_count_as_a_set() {
        let hash = |links: &[u64]| {
            let links: Vec<RecordNumber> = links.iter().copied().map(RecordNumber::new).collect();
            hash_item(false, &links, &fields(r#"{"id":"7"}"#), &[])
        };
        assert_eq!(hash(&[1, 2]), hash(&[2, 1, 1]));
        assert_ne!(hash(&[1, 2]), hash(&[1, 3]));
        assert_ne!(hash(&[1]), hash(&[]));
    }

    /// BR-123: without the key the hash of a patron cannot be tried out.
    #[test]
    fn a_patrons_hash_depends_on_the_key() {
        let masked: Box<RawValue> = serde_json::from_str(r#"{"patronType":15}"#).expect("JSON");
        let hash = |seed| hash_patron(false, &masked, &Keyring::for_tests(seed));
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }

    #[test]
    fn each_var_field_stands_in_one_place() {
        let all = r#"{"varFields":[{"fieldTag":"t","marcTag":"245","content":"x"},{"fieldTag":"y","content":"kept"},
            {"fieldTag":"_","content":"00000nam  2200000 a 4500"}]}"#;
        let mut some = fields(all);
        keep_unmarked_var_fields(&mut some, 1);
        assert_eq!(object(&some).get(), r#"{"varFields":[{"fieldTag":"y","content":"kept"}]}"#);
        let mut none = fields(all);
        keep_unmarked_var_fields(&mut none, 0);
        assert_eq!(object(&none).get(), "{}");
    }
}
