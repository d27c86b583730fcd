//! Fields of a record: Sierra's top-level keys as they came, and its varFields and fixedFields.

use compact_str::CompactString;
use serde_json::value::RawValue;

/// The top-level keys of an entry with their JSON values, in the order in which Sierra sent them.
///
/// Kept raw so that what reaches a sink is what Sierra said, digit for digit.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Wraps keys and values; when a key stands twice the last one counts, as JSON readers do.
    #[must_use]
    pub fn new(entries: Vec<(String, Box<RawValue>)>) -> Self {
        let mut unique: Vec<(String, Box<RawValue>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match unique.iter_mut().find(|(present, _)| *present == key) {
                Some(slot) => slot.1 = value,
                None => unique.push((key, value)),
            }
        }
        Self(unique)
    }

    /// The raw value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(present, _)| present == key).map(|(_, value)| value.as_ref())
    }

    /// Puts `value` under `key`: in place if the key is there, else at the end.
    pub fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(present, _)| present == key) {
            Some(slot) => slot.1 = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Box<RawValue>> {
        let index = self.0.iter().position(|(present, _)| present == key)?;
        Some(self.0.remove(index).1)
    }

    /// The keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_ref()))
    }
}

impl serde::Serialize for Fields {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// A variable-length field of a Sierra record (sierra-api.md §3.1). `marc_tag` is absent on non-MARC fields, among
/// them the leader (`field_tag` `_`). Nothing here is checked: `marc::from_sierra` does that and reports losses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VarField {
    /// Sierra's group tag: one character as a rule, `_` for the leader.
    pub field_tag: CompactString,
    /// The MARC tag as Sierra stores it; may be short, padded or not a tag at all.
    pub marc_tag: Option<CompactString>,
    /// First indicator, when sent.
    pub ind1: Option<CompactString>,
    /// Second indicator, when sent.
    pub ind2: Option<CompactString>,
    /// Whole content, of control fields and non-MARC fields.
    pub content: Option<String>,
    /// Subfields, of MARC data fields.
    pub subfields: Vec<Subfield>,
}

/// A subfield of a [`VarField`], unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subfield {
    /// The code: one character as a rule.
    pub tag: CompactString,
    /// The text.
    pub content: String,
}
