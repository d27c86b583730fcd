//! The content hash: whether two readings of a record say the same (design: order and sameness).
//!
//! It covers what a sink would be told and nothing that changes by itself: operation, suppression, links, the masked
//! record without `updatedDate` and the fixed fields of `hash_ignore`, and the MARC. It does not depend on the order
//! of JSON keys or on whitespace. A version byte stands first: another version makes every record look changed once.

use serde_json::value::RawValue;

use super::render::beside_marc;
use super::{ContentHash, DeleteReason};
use crate::marc;
use crate::privacy::{Keyring, Masked};
use crate::record::{Bib, Canonicalizer, Fields, Item, RecordNumber, Stream, VarField};

const VERSION: u8 = 1;

/// Members of a record that are hashed in another way, or not at all. `id` is what the hash is stored under,
/// `deleted` is the operation, and Sierra may send or omit `suppressed`, or send ids as numbers or strings.
const TAKEN_APART: [&str; 6] = ["id", "updatedDate", "deleted", "suppressed", "bibIds", "varFields"];

/// Computes content hashes for one stream; keeps its scratch space between records, so keep one per task.
#[derive(Debug)]
pub struct ContentHasher {
    ignored: Vec<Vec<u8>>,
    canonicalizer: Canonicalizer,
    form: Vec<u8>,
}

impl ContentHasher {
    /// A hasher that leaves out the fixed fields with these numbers, their label and display included.
    #[must_use]
    pub fn new<S: AsRef<str>>(hash_ignore: &[S]) -> Self {
        let ignored = hash_ignore.iter().map(|number| number.as_ref().trim().as_bytes().to_vec()).collect();
        Self { ignored, canonicalizer: Canonicalizer::default(), form: Vec::new() }
    }

    /// The hash of a masked live bib with the MARC record made of it. No MARCXML is needed: a record that did not
    /// change need not be written at all, and markup would be half of what is hashed.
    #[must_use]
    pub fn bib(&mut self, bib: &Bib, record: &marc::Record) -> ContentHash {
        self.begin(Stream::Bibs, bib.suppressed);
        self.record(&bib.fields);
        for field in beside_marc(bib) {
            self.var_field(field);
        }
        self.marc(record);
        self.finish()
    }

    /// The hash of a masked live item.
    #[must_use]
    pub fn item(&mut self, item: &Item) -> ContentHash {
        self.begin(Stream::Items, item.suppressed);
        let mut links: Vec<RecordNumber> = item.bib_ids.clone();
        links.sort_unstable();
        links.dedup();
        self.form.extend_from_slice(&(links.len() as u64).to_le_bytes());
        for link in links {
            self.form.extend_from_slice(&link.value().to_le_bytes());
        }
        self.record(&item.fields);
        if let Some(var_fields) = item.fields.get("varFields") {
            self.canonicalizer.append(var_fields, &mut self.form);
        }
        self.finish()
    }

    /// The hash of a masked live patron. It is keyed: nobody can try values against it without the key file.
    #[must_use]
    pub fn patron(&mut self, masked: &Masked<Box<RawValue>>, suppressed: bool, keyring: &Keyring) -> ContentHash {
        self.begin(Stream::Patrons, suppressed);
        // The operation and suppression are in already; the pseudonym is what the hash is stored under.
        let without = |key: &[u8]| matches!(key, b"id" | b"updatedDate" | b"deleted" | b"suppressed");
        self.canonicalizer.append_without(masked.get(), without, &mut self.form);
        ContentHash(keyring.keyed_hash(&[b"content", &self.form]))
    }

    /// The hash of a deletion.
    #[must_use]
    pub fn deletion(stream: Stream, reason: DeleteReason) -> ContentHash {
        let reason: &[u8] = match reason {
            DeleteReason::Deleted => b"deleted",
            DeleteReason::Vanished => b"vanished",
            DeleteReason::Suppressed => b"suppressed",
            DeleteReason::Filtered => b"filtered",
        };
        let mut form = vec![VERSION, b'd'];
        form.extend_from_slice(stream.name().as_bytes());
        form.push(0);
        form.extend_from_slice(reason);
        hash(&form)
    }

    fn begin(&mut self, stream: Stream, suppressed: bool) {
        self.form.clear();
        self.form.extend_from_slice(&[VERSION, b'u']);
        self.form.extend_from_slice(stream.name().as_bytes());
        self.form.extend_from_slice(&[0, u8::from(suppressed)]);
    }

    fn record(&mut self, fields: &Fields) {
        let mut members: Vec<(&str, &RawValue)> =
            fields.iter().filter(|(name, _)| !TAKEN_APART.contains(name)).collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        self.form.push(b'{');
        for (name, value) in members {
            Canonicalizer::append_str(name, &mut self.form);
            if name == "fixedFields" {
                let ignored = |number: &[u8]| self.ignored.iter().any(|ignored| ignored == number);
                self.canonicalizer.append_without(value, ignored, &mut self.form);
            } else {
                self.canonicalizer.append(value, &mut self.form);
            }
        }
        self.form.push(b'}');
    }

    fn var_field(&mut self, field: &VarField) {
        self.form.push(b'v');
        Canonicalizer::append_str(&field.field_tag, &mut self.form);
        for part in [field.ind1.as_deref(), field.ind2.as_deref(), field.content.as_deref()] {
            match part {
                Some(part) => Canonicalizer::append_str(part, &mut self.form),
                None => self.form.push(b'-'),
            }
        }
        for subfield in &field.subfields {
            Canonicalizer::append_str(&subfield.tag, &mut self.form);
            Canonicalizer::append_str(&subfield.content, &mut self.form);
        }
        self.form.push(b'.');
    }

    fn marc(&mut self, record: &marc::Record) {
        let form = &mut self.form;
        form.push(b'm');
        form.extend_from_slice(record.leader().as_bytes());
        for field in record.fields() {
            match field {
                marc::Field::Control { tag, value } => {
                    form.push(b'c');
                    form.extend_from_slice(tag.as_bytes());
                    Canonicalizer::append_str(value, form);
                }
                marc::Field::Data { tag, indicators: [first, second], subfields } => {
                    form.push(b'd');
                    form.extend_from_slice(tag.as_bytes());
                    form.extend_from_slice(&[first.as_byte(), second.as_byte()]);
                    for subfield in subfields.iter() {
                        form.extend_from_slice(&[b'$', subfield.code.as_byte()]);
                        Canonicalizer::append_str(subfield.value, form);
                    }
                    form.push(b'.');
                }
            }
        }
    }

    fn finish(&self) -> ContentHash {
        hash(&self.form)
    }
}

fn hash(form: &[u8]) -> ContentHash {
    let mut half = [0; 16];
    half.iter_mut().zip(blake3::hash(form).as_bytes()).for_each(|(to, from)| *to = *from);
    ContentHash(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Subfield;

    fn fields(json: &str) -> Fields {
        let members: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_str(json).expect("an object");
        Fields::new(members.into_iter().collect())
    }

    fn bib(json: &str, var_fields: &[VarField]) -> Bib {
        Bib {
            id: RecordNumber::new(7),
            updated: None,
            suppressed: false,
            locations: Vec::new(),
            var_fields: Some(var_fields.to_vec()),
            marc: None,
            fields: fields(json),
        }
    }

    fn item(json: &str, bib_ids: &[u64]) -> Item {
        Item {
            id: RecordNumber::new(7),
            updated: None,
            suppressed: false,
            location: None,
            bib_ids: bib_ids.iter().copied().map(RecordNumber::new).collect(),
            var_fields: Vec::new(),
            fields: fields(json),
        }
    }

    fn note(tag: &str, content: &str) -> VarField {
        VarField { field_tag: tag.into(), content: Some(content.to_owned()), ..VarField::default() }
    }

    fn of_bib(json: &str) -> ContentHash {
        ContentHasher::new(&["84", "85", "98"]).bib(&bib(json, &[]), &marc(&[]))
    }

    /// A record with these fields `(tag, indicators, code, value)`; control fields have no indicators and code.
    fn marc(fields: &[(&str, &str, &str, &str)]) -> marc::Record {
        let var_fields: Vec<VarField> = fields
            .iter()
            .map(|(tag, indicators, code, value)| {
                let mut field = VarField { marc_tag: Some((*tag).into()), ..VarField::default() };
                if code.is_empty() {
                    field.content = Some((*value).to_owned());
                } else {
                    field.ind1 = indicators.get(..1).map(Into::into);
                    field.ind2 = indicators.get(1..).map(Into::into);
                    field.subfields = vec![Subfield { tag: (*code).into(), content: (*value).to_owned() }];
                }
                field
            })
            .collect();
        marc::from_sierra(RecordNumber::new(7), &var_fields, &marc::MarcSettings::default()).expect("maps").0
    }

    fn of_item(json: &str, bib_ids: &[u64]) -> ContentHash {
        ContentHasher::new(&["84"]).item(&item(json, bib_ids))
    }

    /// One hasher serves many records: nothing of one may be left for the next.
    #[test]
    fn a_hasher_gives_the_same_hash_whatever_it_hashed_before() {
        let mut hasher = ContentHasher::new(&["84"]);
        let first = hasher.bib(&bib(r#"{"title":"a"}"#, &[note("n", "x")]), &marc(&[]));
        assert_ne!(hasher.item(&item(r#"{"copyNo":1}"#, &[1, 2])), first);
        assert_eq!(hasher.bib(&bib(r#"{"title":"a"}"#, &[note("n", "x")]), &marc(&[])), first);
    }

    #[test]
    fn a_bump_of_dates_and_ignored_fixed_fields_changes_nothing() {
        let before = r#"{"id":"7","updatedDate":"2024-03-09T02:14:07Z","deleted":false,"title":"a",
            "fixedFields":{"31":{"label":"BCODE3","value":"-"},"84":{"label":"UPDATED","value":"2024-03-09T02:14:07Z"},
            "85":{"value":"3"},"98":{"value":"2024"}}}"#;
        let after = r#"{"fixedFields":{"98":{"value":"2025"},"85":{"value":"4"},"31":{"value":"-","label":"BCODE3"},
            "84":{"label":"GEÄNDERT","value":"2025-01-01T00:00:00Z","display":"x"}},"title":"a","id":7,
            "updatedDate":"2025-01-01T00:00:00Z"}"#;
        assert_eq!(of_bib(before), of_bib(after));
        assert_ne!(of_bib(before), of_bib(&before.replace("\"-\"", "\"n\"")));
        assert_ne!(of_bib(before), of_bib(&before.replace("\"title\":\"a\"", "\"title\":\"b\"")));
        assert_ne!(of_bib(before), of_bib(&before.replace("\"31\"", "\"32\"")));
    }

    #[test]
    fn suppression_marc_and_notes_of_a_bib_count() {
        let mut hasher = ContentHasher::new(&["84"]);
        let plain = bib(r#"{"title":"a"}"#, &[note("n", "x")]);
        let base = hasher.bib(&plain, &marc(&[]));
        let mut suppressed = plain.clone();
        suppressed.suppressed = true;
        assert_ne!(hasher.bib(&suppressed, &marc(&[])), base);
        assert_ne!(hasher.bib(&plain, &marc(&[("001", "", "", "ex1")])), base);
        assert_ne!(hasher.bib(&bib(r#"{"title":"a"}"#, &[note("n", "y")]), &marc(&[])), base);
        assert_ne!(hasher.bib(&bib(r#"{"title":"a"}"#, &[note("m", "x")]), &marc(&[])), base);
        // varFields that are MARC count by the MARC alone.
        let title = VarField { marc_tag: Some("245".into()), ..note("t", "title") };
        assert_eq!(hasher.bib(&bib(r#"{"title":"a"}"#, &[note("n", "x"), title]), &marc(&[])), base);
    }

    #[test]
    fn every_part_of_a_marc_record_counts() {
        let bib = bib("{}", &[]);
        let mut hasher = ContentHasher::new::<&str>(&[]);
        let mut hashes: Vec<ContentHash> = [
            &[][..],
            &[("001", "", "", "ex1")],
            &[("003", "", "", "ex1")],
            &[("001", "", "", "ex")],
            &[("245", "10", "a", "title")],
            &[("245", "1 ", "a", "title")],
            &[("245", "00", "a", "title")],
            &[("245", "10", "b", "title")],
            &[("246", "10", "a", "title")],
            &[("245", "10", "a", "titl")],
            &[("245", "10", "a", "title"), ("245", "10", "a", "title")],
            &[("500", "  ", "a", "one"), ("500", "  ", "a", "two")],
            &[("500", "  ", "a", "two"), ("500", "  ", "a", "one")],
        ]
        .iter()
        .map(|fields| hasher.bib(&bib, &marc(fields)))
        .collect();
        let mut shorter = marc(&[]);
        shorter.set_leader(marc::Leader::default().deleted());
        hashes.push(hasher.bib(&bib, &shorter));
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[index + 1..].contains(hash), "{index}");
        }
    }

    #[test]
    fn links_count_and_their_order_does_not() {
        let json = r#"{"id":7,"bibIds":["1","2"],"copyNo":1}"#;
        assert_eq!(of_item(json, &[1, 2]), of_item(&json.replace(r#"["1","2"]"#, "[2,1]"), &[2, 1]));
        assert_ne!(of_item(json, &[1, 2]), of_item(json, &[1]));
        assert_ne!(of_item(json, &[1, 2]), of_item(json, &[12]));
        assert_ne!(of_item(json, &[1, 2]), of_item(&json.replace("copyNo\":1", "copyNo\":2"), &[1, 2]));
        assert_ne!(
            of_item(r#"{"varFields":[{"fieldTag":"v","content":"v.1"}]}"#, &[]),
            of_item(r#"{"varFields":[]}"#, &[])
        );
    }

    #[test]
    fn streams_operations_and_reasons_are_told_apart() {
        let mut hasher = ContentHasher::new::<&str>(&[]);
        let hashes = [
            hasher.bib(&bib("{}", &[]), &marc(&[])),
            hasher.item(&item("{}", &[])),
            ContentHasher::deletion(Stream::Bibs, DeleteReason::Deleted),
            ContentHasher::deletion(Stream::Items, DeleteReason::Deleted),
            ContentHasher::deletion(Stream::Bibs, DeleteReason::Vanished),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[index + 1..].contains(hash), "{index}");
        }
    }

    /// What sinks and stores hold was hashed like this; a change of these hashes makes every record look changed once.
    #[test]
    fn hashes_stay_what_they_are_between_versions() {
        assert_eq!(of_bib(r#"{"title":"Field guide"}"#).to_string(), "439fd0c7c0b17c55da7fbb4593548368");
        assert_eq!(of_item(r#"{"copyNo":1}"#, &[1]).to_string(), "c890a4d2a08b18163a182c2ec175a328");
    }
}
