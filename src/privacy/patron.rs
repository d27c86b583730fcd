//! The mask of patrons: an allow-list over top-level fields.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;

use super::{FieldRule, Keyring, Masked, Pseudonym};
use crate::record::{Canonicalizer, RawPatron, append_one_line};

/// Stands for a masked value: it only tells that there was one.
const MARK: &str = "\"***\"";

/// What `rules` leave of `patron`.
pub(in crate::privacy) fn mask(
    patron: &RawPatron,
    rules: &BTreeMap<String, FieldRule>,
    keyring: &Keyring,
) -> Masked<Box<RawValue>> {
    let mut record = String::from("{");
    for (name, value) in patron.fields().iter() {
        let rule = rules.get(name).copied().unwrap_or(FieldRule::Drop);
        if rule == FieldRule::Drop {
            continue;
        }
        if record.len() > 1 {
            record.push(',');
        }
        let name_json = serde_json::to_string(name).expect("a string is always JSON");
        record.push_str(&name_json);
        record.push(':');
        match rule {
            // Whatever the policy says: a record number never passes.
            FieldRule::Hmac | FieldRule::Pass if name == "id" => {
                append_hash(&mut record, keyring.pseudonym(patron.id()))
            }
            FieldRule::Pass => append_one_line(value, &mut record),
            FieldRule::Mask if is_nothing(value) => record.push_str("null"),
            FieldRule::Hmac if is_nothing(value) => record.push_str("null"),
            FieldRule::Mask => record.push_str(MARK),
            FieldRule::Hmac => append_hash(&mut record, hash(name, value, keyring)),
            FieldRule::Drop => {}
        }
    }
    record.push('}');
    Masked::new(RawValue::from_string(record).expect("members of valid JSON, joined as an object, are valid JSON"))
}

/// The keyed hash of a whole value, the same however it is written.
fn hash(name: &str, value: &RawValue, keyring: &Keyring) -> Pseudonym {
    let mut form = zeroize::Zeroizing::new(Vec::new());
    Canonicalizer::default().append(value, &mut form);
    Pseudonym::from_bytes(keyring.field_hash(name, &form))
}

fn append_hash(record: &mut String, hash: Pseudonym) {
    write!(record, "\"{hash}\"").expect("writing to a string cannot fail");
}

/// Whether there is no value to hide: `null`, and what is empty.
fn is_nothing(value: &RawValue) -> bool {
    let mut text = String::new();
    append_one_line(value, &mut text);
    text.retain(|character| !character.is_ascii_whitespace());
    matches!(text.as_str(), "null" | "\"\"" | "[]" | "{}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Fields, RecordNumber};

    fn patron(json: &str) -> RawPatron {
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).unwrap();
        RawPatron::new(RecordNumber::new(1_200_345), None, false, Fields::new(members.into_iter().collect()))
    }

    fn masked(json: &str, rules: &[(&str, FieldRule)]) -> String {
        let rules = rules.iter().map(|(name, rule)| ((*name).to_owned(), *rule)).collect();
        mask(&patron(json), &rules, &Keyring::for_tests(1)).get().get().to_owned()
    }

    #[test]
    fn only_named_fields_are_left_each_by_its_rule() {
        let pseudonym = Keyring::for_tests(1).pseudonym(RecordNumber::new(1_200_345));
        let json = r#"{"barcodes":["21000000000001"],"emails":["pat@example.org"],"id":1200345,"names":["EXAMPLE, PAT"],
            "patronType": 15.0,"uniqueIds":["u1"]}"#;
        let rules = [
            ("id", FieldRule::Hmac),
            ("patronType", FieldRule::Pass),
            ("emails", FieldRule::Mask),
            ("uniqueIds", FieldRule::Drop),
        ];
        assert_eq!(masked(json, &rules), format!(r#"{{"emails":"***","id":"{pseudonym}","patronType":15.0}}"#));
        assert_eq!(masked(json, &[]), "{}");
    }

    #[test]
    fn a_hashed_field_is_hashed_as_a_whole_and_with_its_name() {
        let hash = |json: &str, name: &str| masked(json, &[(name, FieldRule::Hmac)]);
        let one = hash(r#"{"a":[{"x":1,"y":"z"}]}"#, "a");
        assert_eq!(one.len(), r#"{"a":""}"#.len() + 32);
        assert_eq!(one, hash("{\"a\": [ {\"y\":\"\\u007a\", \"x\":1} ]}", "a"), "however it is written");
        assert_ne!(one[6..], hash(r#"{"b":[{"x":1,"y":"z"}]}"#, "b")[6..], "fields cannot be joined by their hashes");
    }

    #[test]
    fn absence_is_told_and_hides_nothing() {
        let json = r#"{"a":null,"b":[ ],"c":"","d":{},"e":0}"#;
        let rules: Vec<(&str, FieldRule)> = ["a", "b", "c", "d", "e"].map(|name| (name, FieldRule::Mask)).into();
        assert_eq!(masked(json, &rules), r#"{"a":null,"b":null,"c":null,"d":null,"e":"***"}"#);
    }

    #[test]
    fn a_record_number_never_passes_whatever_the_rules_say() {
        for rule in [FieldRule::Pass, FieldRule::Mask, FieldRule::Hmac, FieldRule::Drop] {
            assert!(!masked(r#"{"id":1200345}"#, &[("id", rule)]).contains("1200345"), "{rule:?}");
        }
    }
}
