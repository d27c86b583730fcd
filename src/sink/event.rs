//! The event: a change as one line of NDJSON, for files, standard output and message buses. `docs/events.md` tells
//! readers what to make of it; `schemas/change.json` is its schema.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::marc::Loss;
use crate::record::{OneLine, RecordNumber, Stream};
use crate::sync::window::whole_second;
use crate::sync::{Change, DeleteReason, Op, Origin, Payload, Seq};

/// The version of the event's shape. New members may come without a new version; a member never changes its meaning
/// within one.
pub const SCHEMA: u32 = 1;

/// One change of one record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change", extend("allOf" = conditions()))]
pub struct Event<'a> {
    /// The version of this shape: 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema: u32,
    /// The place in the one global order: of two events for a record, the one with the higher seq is the newer.
    /// Increasing, not dense.
    #[schemars(with = "u64", range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub seq: Seq,
    /// The idempotency key: `<stream>/<id>/<op>/<hash>/<seq>`. A redelivery repeats it exactly.
    #[schemars(regex(pattern = r"^(bibs|items|patrons)/[0-9a-f]+/(upsert|delete)/[0-9a-f]{32}/[0-9]+$"))]
    pub key: Cow<'a, str>,
    /// The kind of record.
    pub stream: Stream,
    /// The record number, as text; of a patron the pseudonym, 32 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9]{1,18}$|^[0-9a-f]{32}$"))]
    pub id: Cow<'a, str>,
    /// What happened.
    pub op: EventOp,
    /// Why the record is gone. Deletes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeleteReason")]
    pub reason: Option<DeleteReason>,
    /// `updatedDate` of the last emitted version, UTC; of a deletion the end of its local day. `null` when Sierra told
    /// none.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub updated: Option<Timestamp>,
    /// Whether the record is hidden from the public catalogue. Upserts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub suppressed: Option<bool>,
    /// The local day of the deletion. Only with reason `deleted`, where Sierra told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub deleted_on: Option<Date>,
    /// When it was read, UTC, by the clock of the machine that read it.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub captured: Timestamp,
    /// Which pass found it.
    pub source: Origin,
    /// The bibs that an item hangs from now: they replace the ones known before. Upserts of items only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub bib_ids: Option<Cow<'a, [RecordNumber]>>,
    /// The bibs that the previous captured version of an item hung from and this one does not. Items only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub unlinked_bib_ids: Option<Cow<'a, [RecordNumber]>>,
    /// Sierra's fields as they came; of a bib without its MARC varFields, of an item and a patron without what privacy
    /// left out. Upserts only.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "on_one_line")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub record: Option<Cow<'a, RawValue>>,
    /// The bib's MARC as one MARCXML `record` element with its namespace. Upserts of bibs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub marcxml: Option<Cow<'a, str>>,
    /// What the mapping to MARC repaired or left out. Upserts of bibs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Loss>")]
    pub losses: Option<Cow<'a, [Loss]>>,
}

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventOp {
    /// It exists with this content.
    Upsert,
    /// It is gone, for this sink at least.
    Delete,
}

impl<'a> Event<'a> {
    /// The event of `change`, borrowed from it.
    #[must_use]
    pub fn of(change: &'a Change) -> Self {
        let (op, reason, deleted_on) = match change.op {
            Op::Upsert => (EventOp::Upsert, None, None),
            Op::Delete { reason, deleted_on } => {
                (EventOp::Delete, Some(reason), deleted_on.filter(|_| reason == DeleteReason::Deleted))
            }
        };
        let mut event = Self {
            schema: SCHEMA,
            seq: change.seq,
            key: Cow::Owned(change.key()),
            stream: change.stream,
            id: Cow::Borrowed(&change.id),
            op,
            reason,
            updated: change.updated.map(whole_second),
            suppressed: (op == EventOp::Upsert).then_some(change.suppressed),
            deleted_on,
            captured: whole_second(change.captured),
            source: change.source,
            bib_ids: None,
            unlinked_bib_ids: (change.stream == Stream::Items)
                .then_some(Cow::Borrowed(change.unlinked_bib_ids.as_slice())),
            record: None,
            marcxml: None,
            losses: None,
        };
        match &change.payload {
            Payload::Bib { record, marcxml, losses, .. } => {
                event.record = Some(Cow::Borrowed(record));
                event.marcxml = Some(Cow::Borrowed(marcxml));
                event.losses = Some(Cow::Borrowed(losses));
            }
            Payload::Item { record, bib_ids, .. } => {
                event.record = Some(Cow::Borrowed(record));
                event.bib_ids = Some(Cow::Borrowed(bib_ids));
            }
            Payload::Patron(masked) => event.record = Some(Cow::Borrowed(masked.get())),
            Payload::Nothing => {}
        }
        event
    }

    /// Reads one line.
    ///
    /// # Errors
    /// When it is not an event.
    pub fn parse(line: &[u8]) -> Result<Event<'static>, EventError> {
        serde_json::from_slice(line).map_err(|error| EventError {
            what: match error.classify() {
                Category::Eof => "it is cut short",
                Category::Data => "a member is missing or is of another kind",
                Category::Syntax | Category::Io => "it is not JSON",
            },
            column: error.column(),
        })
    }
}

/// Why a line is not an event. It names a place and quotes nothing: the line may hold what must not be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read an event: {what}, near byte {column}")]
pub struct EventError {
    what: &'static str,
    column: usize,
}

/// Appends the event of `change` and a line feed to `lines`; returns the length of the line in bytes.
pub fn append_line(change: &Change, lines: &mut Vec<u8>) -> usize {
    let before = lines.len();
    serde_json::to_writer(&mut *lines, &Event::of(change)).expect("an event is always JSON and memory does not fail");
    lines.push(b'\n');
    lines.len() - before
}

/// The JSON Schema of events.
#[must_use]
pub fn schema() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Event<'static>>();
    schema.insert("$id".to_owned(), "https://sierra-sync.example/schemas/change.json".into());
    schema
}

/// Which members come with what: the rules that types alone do not tell.
fn conditions() -> serde_json::Value {
    serde_json::json!([
        {
            "if": { "properties": { "op": { "const": "upsert" } } },
            "then": { "required": ["suppressed", "record"], "properties": { "reason": false, "deleted_on": false } },
            "else": {
                "required": ["reason"],
                "properties": {
                    "suppressed": false, "record": false, "marcxml": false, "losses": false, "bib_ids": false
                }
            }
        },
        {
            "if": { "properties": { "op": { "const": "upsert" }, "stream": { "const": "bibs" } } },
            "then": { "required": ["marcxml", "losses"] },
            "else": { "properties": { "marcxml": false, "losses": false } }
        },
        {
            "if": { "properties": { "stream": { "const": "items" } } },
            "then": { "required": ["unlinked_bib_ids"] },
            "else": { "properties": { "bib_ids": false, "unlinked_bib_ids": false } }
        },
        {
            "if": { "properties": { "op": { "const": "upsert" }, "stream": { "const": "items" } } },
            "then": { "required": ["bib_ids"] }
        },
        {
            "if": { "properties": { "reason": { "const": "deleted" } }, "required": ["reason"] },
            "else": { "properties": { "deleted_on": false } }
        },
        {
            "if": { "properties": { "stream": { "const": "patrons" } } },
            "then": { "properties": { "id": { "pattern": "^[0-9a-f]{32}$" } } },
            "else": { "properties": { "id": { "pattern": "^[0-9]{1,18}$" } } }
        }
    ])
}

fn on_one_line<S: Serializer>(record: &Option<Cow<'_, RawValue>>, serializer: S) -> Result<S::Ok, S::Error> {
    match record {
        Some(record) => OneLine(record).serialize(serializer),
        None => serializer.serialize_none(),
    }
}
