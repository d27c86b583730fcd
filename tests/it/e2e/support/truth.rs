//! Single records compared with the library's: value by value, without the engine's idea of sameness.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sierra_sync::marc::{Field, OnIllegal, ReadRecord, Record, marcxml};
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::simulator::{MarcValue, TrueRecord};

use crate::marc::strict_xml;

/// Fixed fields that do not count: update stamps, circulation counters, and the patrons of an item.
const IGNORED: [&str; 15] =
    ["84", "85", "98", "64", "66", "67", "68", "70", "76", "77", "78", "93", "94", "109", "110"];

/// A MARC field: tag, indicators, subfields; the text of a control field stands under a blank code.
type PlainField = (String, [char; 2], Vec<(char, String)>);

/// Asserts that the newest event of a bib tells what the library holds.
#[track_caller]
pub(super) fn assert_bib(truth: &TrueRecord, event: &Value) {
    assert_record(truth, event);
    let marcxml = event["marcxml"].as_str().expect("a text");
    assert_eq!(strict_xml::count_records(marcxml.as_bytes()), Ok(1), "{marcxml}");
    assert_marc(truth, marcxml);
}

/// The same of an item.
#[track_caller]
pub(super) fn assert_item(truth: &TrueRecord, event: &Value) {
    assert_record(truth, event);
    let links = event["bib_ids"].as_array().expect("an array").iter();
    let links: BTreeSet<u64> = links.map(|id| id.as_str().expect("a text").parse().expect("a number")).collect();
    assert_eq!(links, truth.links.iter().copied().collect(), "the bibs of item {}", truth.id);
}

#[track_caller]
fn assert_record(truth: &TrueRecord, event: &Value) {
    let id = truth.id;
    assert_eq!(event["suppressed"], truth.suppressed, "suppression of {id}");
    let record = event["record"].as_object().expect("an object");
    let served: Value = serde_json::from_str(&truth.json).expect("the simulator serves JSON");
    for needed in ["id", "createdDate", "updatedDate", "fixedFields"] {
        assert!(record.contains_key(needed), "{id} lacks {needed}");
    }
    for (name, held) in record {
        let expected = &served[name];
        match name.as_str() {
            "fixedFields" => assert_eq!(counting(held), counting(expected), "fixed fields of {id}"),
            // Of the last version that was worth an event; and MARC is compared elsewhere.
            "updatedDate" | "varFields" => {}
            _ => assert_eq!(held, expected, "{name} of {id}"),
        }
    }
}

fn counting(fields: &Value) -> Map<String, Value> {
    let fields = fields.as_object().expect("an object").iter();
    let counts = fields.filter(|(number, _)| !IGNORED.contains(&number.as_str()));
    counts.map(|(number, field)| (number.clone(), field.clone())).collect()
}

/// Asserts that a MARCXML record holds the fields of a bib, in any order of tags.
#[track_caller]
pub(super) fn assert_marc(truth: &TrueRecord, marcxml: &str) {
    let mut held = fields(&read(marcxml).remove(0));
    let mut expected: Vec<PlainField> = truth
        .marc
        .iter()
        .filter(|field| field.tag != "LDR")
        .map(|field| {
            let subfields = match &field.value {
                MarcValue::Text(text) => vec![(' ', text.clone())],
                MarcValue::Subfields(subfields) => subfields.clone(),
            };
            (field.tag.clone(), field.indicators.unwrap_or([' ', ' ']), subfields)
        })
        .collect();
    held.sort();
    expected.sort();
    assert_eq!(held, expected, "MARC of {}", truth.id);
}

/// The records of a collection by their numbers, each as a document of its own; of equal numbers the last counts.
#[track_caller]
pub(super) fn marc_of(collection: &str) -> BTreeMap<u64, String> {
    let records = read(collection);
    assert_eq!(strict_xml::count_records(collection.as_bytes()), Ok(records.len()));
    let number = |record: &Record| {
        let own = fields(record).into_iter().find(|(tag, ..)| tag == "935").expect("935");
        let (_, number) = own.2.into_iter().find(|(code, _)| *code == 'a').expect("935 $a");
        RecordNumber::parse(&number, Stream::Bibs).expect("a record number").value()
    };
    records.iter().map(|record| (number(record), marcxml::to_string(record))).collect()
}

#[track_caller]
fn read(marcxml: &str) -> Vec<Record> {
    let records = marcxml::Reader::new(marcxml.as_bytes(), OnIllegal::Quarantine).records();
    records.map(|record| record.expect("it can be read")).collect()
}

fn fields(record: &Record) -> Vec<PlainField> {
    let plain = |field: Field<'_>| match field {
        Field::Control { tag, value } => (tag.to_string(), [' ', ' '], vec![(' ', value.to_owned())]),
        Field::Data { tag, indicators, subfields } => {
            let subfields = subfields.iter();
            let subfields = subfields.map(|subfield| (char::from(subfield.code.as_byte()), subfield.value.to_owned()));
            (tag.to_string(), indicators.map(|indicator| char::from(indicator.as_byte())), subfields.collect())
        }
    };
    record.fields().map(plain).collect()
}
