//! What the demo's files hold, read back the way a consumer would: by `docs/events.md`, not by our own types.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::marc::{Field, OnIllegal, ReadRecord, Record, marcxml};
use crate::record::{RecordNumber, Stream};

/// The state of every record that a sink was ever told of, by number; `None` is deleted.
pub(super) type Copy<T> = BTreeMap<u64, Option<T>>;

/// A MARC field reduced to what can be compared: tag, indicators, and subfields or one text under a blank code.
pub(super) type PlainField = (String, [char; 2], Vec<(char, String)>);

#[derive(Deserialize)]
struct Manifest {
    files: Vec<ManifestFile>,
}

#[derive(Deserialize)]
struct ManifestFile {
    path: String,
    stream: Stream,
}

/// Reads every NDJSON event of `stream` below `root` and keeps the newest of each record: its event, if it is live.
pub(super) fn of_ndjson(root: &Path, stream: Stream) -> anyhow::Result<Copy<Value>> {
    let mut newest: BTreeMap<u64, (u64, Option<Value>)> = BTreeMap::new();
    for path in files(root, stream)? {
        let reader = BufReader::new(File::open(root.join(&path)).with_context(|| format!("failed to open {path}"))?);
        for (index, line) in reader.lines().enumerate() {
            let at = || format!("line {} of {path}", index + 1);
            let event: Value = serde_json::from_str(&line?).with_context(at)?;
            let id = event.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()).with_context(at)?;
            let seq = event.get("seq").and_then(Value::as_u64).with_context(at)?;
            let live = match event.get("op").and_then(Value::as_str) {
                Some("upsert") => Some(event),
                Some("delete") => None,
                other => bail!("{}: unknown op {other:?}", at()),
            };
            if newest.get(&id).is_none_or(|(known, _)| *known < seq) {
                newest.insert(id, (seq, live));
            }
        }
    }
    Ok(newest.into_iter().map(|(id, (_, live))| (id, live)).collect())
}

/// Reads every published MARCXML pair below `root` in the manifest's order: a collection replaces, its list deletes.
/// Bibs are told apart by the record number in 935 $a.
pub(super) fn of_marcxml(root: &Path) -> anyhow::Result<Copy<Vec<PlainField>>> {
    let mut copy = Copy::new();
    for path in files(root, Stream::Bibs)? {
        let whole = root.join(&path);
        if path.ends_with(".xml") {
            let input = BufReader::new(File::open(&whole).with_context(|| format!("failed to open {path}"))?);
            for record in marcxml::Reader::new(input, OnIllegal::Quarantine).records() {
                let record = record.with_context(|| format!("failed to read {path}"))?;
                let fields = plain(&record);
                let id = own_number(&fields).with_context(|| format!("a record without 935 $a in {path}"))?;
                copy.insert(id, Some(fields));
            }
        } else {
            let list = fs::read_to_string(&whole).with_context(|| format!("failed to read {path}"))?;
            for line in list.lines() {
                let id = line.parse().map_err(|_| anyhow!("{path}: {line:?} is not a record number"))?;
                copy.insert(id, None);
            }
        }
    }
    Ok(copy)
}

/// The fields of a record, comparable.
fn plain(record: &Record) -> Vec<PlainField> {
    let field = |field: Field<'_>| match field {
        Field::Control { tag, value } => (tag.to_string(), [' ', ' '], vec![(' ', value.to_owned())]),
        Field::Data { tag, indicators: [first, second], subfields } => {
            let subfields = subfields
                .iter()
                .map(|subfield| (char::from(subfield.code.as_byte()), subfield.value.to_owned()))
                .collect();
            (tag.to_string(), [first, second].map(|indicator| char::from(indicator.as_byte())), subfields)
        }
    };
    record.fields().map(field).collect()
}

fn own_number(fields: &[PlainField]) -> Option<u64> {
    let (_, _, subfields) = fields.iter().find(|(tag, ..)| tag == "935")?;
    let (_, number) = subfields.iter().find(|(code, _)| *code == 'a')?;
    RecordNumber::parse(number, Stream::Bibs).ok().map(RecordNumber::value)
}

fn files(root: &Path, stream: Stream) -> anyhow::Result<Vec<String>> {
    let path = root.join("manifest.json");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let manifest: Manifest = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(manifest.files.into_iter().filter(|file| file.stream == stream).map(|file| file.path).collect())
}
