//! The content hash: whether two readings of a record say the same (design: order and sameness).
//!
//! It covers what a sink would be told and nothing that changes by itself: operation, suppression, links, the masked
//! record without `updatedDate` and the fixed fields of `hash_ignore`, and the MARC. It does not depend on the order
//! of JSON keys or on whitespace. A version byte stands first: another version makes every record look changed once.

use serde_json::value::RawValue;

use super::render::beside_marc;
use super::{ContentHash, DeleteReason};
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

    /// The hash of a masked live bib with the MARCXML made of it.
    #[must_use]
    pub fn bib(&mut self, bib: &Bib, marcxml: &str) -> ContentHash {
        self.begin(Stream::Bibs, bib.suppressed);
        self.record(&bib.fields);
        for field in beside_marc(bib) {
            self.var_field(field);
        }
        Canonicalizer::append_str(marcxml, &mut self.form);
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
        for part in [&field.ind1, &field.ind2, &field.content] {
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

    fn finish(&self) -> ContentHash {
        hash(&self.form)
    }
}

fn hash(form: &[u8]) -> ContentHash {
    let mut half = [0; 16];
    half.iter_mut().zip(blake3::hash(form).as_bytes()).for_each(|(to, from)| *to = *from);
    ContentHash(half)
}
