//! Comparing what the sinks hold with what the library really holds. Shares nothing with the engine's own idea of
//! sameness: values are compared, not hashes.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::copy::{self, Copy, PlainField};
use crate::record::Stream;
use crate::simulator::{Kind, MarcField, MarcValue, TrueRecord, Truth, World};

/// Fixed fields of items that do not count: counters of circulation (design of sameness), the update stamps, and the
/// patron numbers that privacy leaves out (66, 67).
const ITEM_FIXED_LEFT_OUT: [&str; 15] =
    ["64", "66", "67", "68", "70", "76", "77", "78", "84", "85", "93", "94", "98", "109", "110"];
/// The same for bibs.
const BIB_FIXED_LEFT_OUT: [&str; 3] = ["84", "85", "98"];
/// How many differences are told one by one.
const TOLD: usize = 10;

/// What came of the comparison.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Live records of the library.
    pub(super) live: usize,
    /// Deleted records of the library.
    pub(super) deleted: usize,
    /// Records that were compared, once for each sink.
    pub(super) compared: usize,
    /// The first differences, as sentences.
    pub(super) differences: Vec<String>,
    /// All differences.
    pub(super) count: usize,
}

impl Verdict {
    /// Whether every sink holds what the library holds.
    pub(super) fn agrees(&self) -> bool {
        self.count == 0 && self.compared > 0
    }

    fn differ(&mut self, sentence: impl FnOnce() -> String) {
        self.count += 1;
        if self.differences.len() < TOLD {
            self.differences.push(sentence());
        }
    }
}

/// Compares the NDJSON files below `ndjson` and the MARCXML files below `marcxml` with `world`.
///
/// # Errors
/// When the files cannot be read.
pub(super) fn compare(world: &World, ndjson: &Path, marcxml: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    let (bibs, items) = (world.truth(Kind::Bibs), world.truth(Kind::Items));
    verdict.live = bibs.live.len() + items.live.len();
    verdict.deleted = bibs.deleted.len() + items.deleted.len();
    against(&mut verdict, "ndjson", &bibs, &copy::of_ndjson(ndjson, Stream::Bibs)?, bib_difference);
    against(&mut verdict, "ndjson", &items, &copy::of_ndjson(ndjson, Stream::Items)?, item_difference);
    against(&mut verdict, "marcxml", &bibs, &copy::of_marcxml(marcxml)?, |bib, fields| marc_difference(bib, fields));
    Ok(verdict)
}

fn against<T>(
    verdict: &mut Verdict,
    sink: &str,
    truth: &Truth,
    copy: &Copy<T>,
    difference: impl Fn(&TrueRecord, &T) -> Option<String>,
) {
    for (id, record) in &truth.live {
        verdict.compared += 1;
        match copy.get(id) {
            None => verdict.differ(|| format!("{sink}: record {id} is missing")),
            Some(None) => verdict.differ(|| format!("{sink}: record {id} is deleted there and lives")),
            Some(Some(held)) => {
                if let Some(what) = difference(record, held) {
                    verdict.differ(|| format!("{sink}: record {id}: {what}"));
                }
            }
        }
    }
    for (id, held) in copy {
        if held.is_some() && !truth.live.contains_key(id) {
            verdict.differ(|| format!("{sink}: record {id} lives there and is deleted"));
        }
    }
}

fn bib_difference(truth: &TrueRecord, event: &Value) -> Option<String> {
    envelope_difference(truth, event).or_else(|| record_difference(truth, event, &BIB_FIXED_LEFT_OUT))
}

fn item_difference(truth: &TrueRecord, event: &Value) -> Option<String> {
    let links: Option<BTreeSet<u64>> = event
        .get("bib_ids")
        .and_then(Value::as_array)
        .map(|ids| ids.iter().filter_map(|id| id.as_str()?.parse().ok()).collect());
    if links != Some(truth.links.iter().copied().collect()) {
        return Some(format!("bib_ids {:?} instead of {:?}", event.get("bib_ids"), truth.links));
    }
    envelope_difference(truth, event).or_else(|| record_difference(truth, event, &ITEM_FIXED_LEFT_OUT))
}

fn envelope_difference(truth: &TrueRecord, event: &Value) -> Option<String> {
    let suppressed = event.get("suppressed").and_then(Value::as_bool);
    (suppressed != Some(truth.suppressed))
        .then(|| format!("suppressed is {suppressed:?} instead of {}", truth.suppressed))
}

/// Compares every field of the event's record with the library's. `varFields` are compared as MARC elsewhere, the
/// update stamp is that of the last emitted version.
fn record_difference(truth: &TrueRecord, event: &Value, fixed_left_out: &[&str]) -> Option<String> {
    let Some(record) = event.get("record").and_then(Value::as_object) else { return Some("has no record".to_owned()) };
    let Ok(truth) = serde_json::from_str::<Value>(&truth.json) else { return Some("is not served as JSON".to_owned()) };
    for key in ["id", "createdDate", "fixedFields"] {
        if !record.contains_key(key) {
            return Some(format!("lacks {key}"));
        }
    }
    for (key, held) in record {
        let Some(true_value) = truth.get(key) else { return Some(format!("{key} is not served by Sierra")) };
        let differs = match key.as_str() {
            "updatedDate" | "varFields" => false,
            "bibIds" => as_set(held) != as_set(true_value),
            "fixedFields" => fixed(held, fixed_left_out) != fixed(true_value, fixed_left_out),
            _ => held != true_value,
        };
        if differs {
            return Some(format!("{key} is {held} instead of {true_value}"));
        }
    }
    None
}

/// Links are a set: in another order they are no change.
fn as_set(links: &Value) -> Option<BTreeSet<&str>> {
    links.as_array()?.iter().map(Value::as_str).collect()
}

fn fixed(fields: &Value, left_out: &[&str]) -> Option<serde_json::Map<String, Value>> {
    let fields = fields.as_object()?;
    Some(fields.iter().filter(|(number, _)| !left_out.contains(&number.as_str())).map(clone).collect())
}

fn clone((number, field): (&String, &Value)) -> (String, Value) {
    (number.clone(), field.clone())
}

fn marc_difference(truth: &TrueRecord, held: &[PlainField]) -> Option<String> {
    let mut expected: Vec<PlainField> = truth.marc.iter().filter(|field| field.tag != "LDR").map(plain_truth).collect();
    let mut held = held.to_vec();
    expected.sort();
    held.sort();
    if expected == held {
        return None;
    }
    let missing = expected.iter().find(|field| !held.contains(field));
    let surplus = held.iter().find(|field| !expected.contains(field));
    Some(format!("MARC differs: missing {missing:?}, surplus {surplus:?}"))
}

fn plain_truth(field: &MarcField) -> PlainField {
    let subfields = match &field.value {
        MarcValue::Text(text) => vec![(' ', text.clone())],
        MarcValue::Subfields(subfields) => subfields.clone(),
    };
    (field.tag.clone(), field.indicators.unwrap_or([' ', ' ']), subfields)
}
