//! The outputs read the way `docs/events.md` tells consumers to, and compared with what the library holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sierra_sync::cli::schema::SchemaName;
use sierra_sync::simulator::{Kind, Truth, World};

use super::run::assert_valid;
use super::truth::{assert_bib, assert_item, assert_marc, marc_of};

/// What a consumer finds in both outputs.
pub(crate) struct Outputs {
    /// Every event of `lines`, streams apart, each in reading order. Each has passed its schema.
    pub(crate) events: Vec<Value>,
    /// The bibs that a reader of `xml` ends with, by record number: each one's MARCXML.
    pub(crate) collection: BTreeMap<u64, String>,
    /// The bibs that `xml` deletes in the end.
    pub(crate) deleted: BTreeSet<u64>,
}

impl Outputs {
    /// Reads an NDJSON output and a MARCXML output; one that is not there is empty.
    pub(crate) fn read(lines: &Path, xml: &Path) -> Self {
        let mut events = Vec::new();
        for stream in ["bibs", "items", "patrons"] {
            for path in numbered(&lines.join(stream), &["ndjson"]) {
                let text = fs::read_to_string(path).expect("UTF-8");
                events.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole lines")));
            }
        }
        assert_valid(SchemaName::Change, &events);
        let mut outputs = Self { events, collection: BTreeMap::new(), deleted: BTreeSet::new() };
        for path in numbered(&xml.join("bibs"), &["xml", "txt"]) {
            let text = fs::read_to_string(&path).expect("UTF-8");
            if path.extension().is_some_and(|extension| extension == "xml") {
                for (id, record) in marc_of(&text) {
                    outputs.deleted.remove(&id);
                    outputs.collection.insert(id, record);
                }
            } else {
                for id in text.lines().map(|line| line.parse().expect("a record number")) {
                    outputs.collection.remove(&id);
                    outputs.deleted.insert(id);
                }
            }
        }
        outputs
    }

    /// The events of a stream that came after the first `known` of all events of that stream.
    pub(crate) fn of(&self, stream: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["stream"] == stream).collect()
    }

    /// The newest event of each record of a stream.
    pub(crate) fn newest(&self, stream: &str) -> BTreeMap<&str, &Value> {
        let mut newest: BTreeMap<&str, &Value> = BTreeMap::new();
        for event in self.of(stream) {
            let held = newest.entry(text(&event["id"])).or_insert(event);
            if held["seq"].as_u64() < event["seq"].as_u64() {
                *held = event;
            }
        }
        newest
    }

    /// The highest seq of all events.
    pub(crate) fn highest_seq(&self) -> u64 {
        self.events.iter().filter_map(|event| event["seq"].as_u64()).max().unwrap_or(0)
    }

    /// The events above a seq, in the order of their seqs.
    pub(crate) fn since(&self, seq: u64) -> Vec<&Value> {
        let mut events: Vec<&Value> = self.events.iter().filter(|event| event["seq"].as_u64() > Some(seq)).collect();
        events.sort_by_key(|event| event["seq"].as_u64());
        events
    }

    /// Asserts that no seq was used twice, in NDJSON, where an event is seen on its own.
    #[track_caller]
    pub(crate) fn assert_each_seq_once(&self) {
        let mut seen = BTreeSet::new();
        for event in &self.events {
            assert!(seen.insert(event["seq"].as_u64()), "twice: {}", event["key"]);
        }
    }

    /// Asserts that both outputs end with what the library holds: the same live bibs and items, each with the same
    /// content, links and suppression, and nothing else.
    #[track_caller]
    pub(crate) fn assert_hold(&self, world: &World) {
        let (bibs, items) = (world.truth(Kind::Bibs), world.truth(Kind::Items));
        let held = self.live("bibs", &bibs);
        for (id, event) in held {
            assert_bib(&bibs.live[&id], event);
        }
        let held = self.live("items", &items);
        for (id, event) in held {
            assert_item(&items.live[&id], event);
        }
        let live: Vec<&u64> = bibs.live.keys().collect();
        assert_eq!(self.collection.keys().collect::<Vec<_>>(), live, "the bibs of the collection");
        for (id, record) in &self.collection {
            assert_marc(&bibs.live[id], record);
        }
    }

    /// The live records of a stream, which must be those of the library.
    #[track_caller]
    fn live(&self, stream: &str, truth: &Truth) -> BTreeMap<u64, &Value> {
        let newest = self.newest(stream).into_iter().filter(|(_, event)| event["op"] == "upsert");
        let held: BTreeMap<u64, &Value> =
            newest.map(|(id, event)| (id.parse().expect("a record number"), event)).collect();
        let missing: Vec<&u64> = truth.live.keys().filter(|id| !held.contains_key(id)).collect();
        let surplus: Vec<&u64> = held.keys().filter(|id| !truth.live.contains_key(id)).collect();
        assert!(missing.is_empty() && surplus.is_empty(), "{stream}: missing {missing:?}, surplus {surplus:?}");
        held
    }
}

/// The text that `value` must be.
#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The files of a directory whose names are numbers with one of these extensions, in the order of the numbers, of
/// equal ones the first extension first.
fn numbered(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<(u64, usize, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name()?.to_str()?;
            let number = name.split('.').next()?.parse().ok()?;
            let extension = name.rsplit('.').next()?;
            Some((number, extensions.iter().position(|wanted| *wanted == extension)?, path))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, _, path)| path).collect()
}
