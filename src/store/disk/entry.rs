//! Outbox entries: a small row for counting and listing, and a body that holds the rest of the change.
//!
//! The body is compressed; a patron's is sealed instead, whole, though its payload is masked already: when a person
//! was last changed, or whether, is theirs too.

use super::codec::{Damaged, Reader, Writer};
use super::error;
use super::squeeze::Squeeze;
use super::trees::Tree;
use crate::marc::Loss;
use crate::privacy::{Keyring, Masked};
use crate::record::Stream;
use crate::store::backlog::Waiting;
use crate::sync::ports::OutboxEntry;
use crate::sync::{Change, DeleteReason, Op, Origin, Payload, Seq, StoreError};

/// What patron bodies are sealed for.
const PURPOSE: &str = "outbox body";

/// A change made ready to be written, but for its seq.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) row: Row,
    pub(super) body: Vec<u8>,
}

/// The row of an entry.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) entry: OutboxEntry,
    op: Op,
    form: Form,
    /// Length of the body before compression: what reading it will take.
    pub(super) plain_bytes: u64,
    /// How many chunks the body takes.
    pub(super) chunks: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Squeezed,
    Sealed,
}

/// The key of an entry: its seq, big-endian.
pub(super) fn key(seq: Seq) -> Vec<u8> {
    seq.value().to_be_bytes().to_vec()
}

/// Reads the key of an entry.
pub(super) fn decode_key(key: &[u8]) -> Result<Seq, Damaged> {
    let mut reader = Reader::new(key);
    let seq = Seq::new(u64::from_be_bytes(reader.array()?)).ok_or(Damaged)?;
    reader.end()?;
    Ok(seq)
}

impl Prepared {
    /// Encodes, squeezes and seals `change`: the costly part of a commit, done before the writer's turn.
    pub(super) fn of(keyring: &Keyring, squeeze: &Squeeze, change: &Change) -> Result<Self, StoreError> {
        let plain = encode_body(keyring, change);
        let plain_bytes = u64::try_from(plain.len()).unwrap_or(u64::MAX);
        let (form, body) = if change.stream == Stream::Patrons {
            (Form::Sealed, keyring.seal(PURPOSE, &plain))
        } else {
            match squeeze.squeeze(&plain)? {
                Some(squeezed) => (Form::Squeezed, squeezed),
                None => (Form::Plain, plain),
            }
        };
        let entry = OutboxEntry {
            seq: Seq::ZERO,
            stream: change.stream,
            id: change.id.clone(),
            op: change.op.name(),
            hash: change.hash,
            captured: change.captured,
            source: change.source,
            bytes: u64::try_from(body.len()).unwrap_or(u64::MAX),
            only_for: change.only_for.clone(),
        };
        Ok(Self { row: Row { entry, op: change.op, form, plain_bytes, chunks: 0 }, body })
    }
}

impl Row {
    pub(super) fn waiting(&self) -> Waiting<'_> {
        let OutboxEntry { seq, stream, captured, only_for, .. } = &self.entry;
        Waiting { seq: *seq, stream: *stream, captured: *captured, only_for: only_for.as_deref() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let OutboxEntry { seq: _, stream, id, op: _, hash, captured, source, bytes, only_for } = &self.entry;
        let mut writer = Writer::new();
        writer.stream(*stream).byte(op_code(self.op)).byte(origin_code(*source)).byte(form_code(self.form));
        writer.timestamp(*captured).hash(*hash).varint(*bytes).varint(self.plain_bytes).varint(self.chunks.into());
        writer.text(id).optional_text(only_for.as_deref());
        writer.finish()
    }

    pub(super) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, Damaged> {
        let seq = decode_key(key)?;
        let mut reader = Reader::new(bytes);
        let stream = reader.stream()?;
        let op = read_op(&mut reader)?;
        let (origin, form) = (reader.byte()?, reader.byte()?);
        let (captured, hash, bytes) = (reader.timestamp()?, reader.hash()?, reader.varint()?);
        let (plain_bytes, chunks) = (reader.varint()?, reader.narrow()?);
        let (id, only_for) = (reader.owned_text()?, reader.option(Reader::owned_text)?);
        reader.end()?;
        let source = ORIGINS.into_iter().find(|known| origin_code(*known) == origin).ok_or(Damaged)?;
        let form = FORMS.into_iter().find(|known| form_code(*known) == form).ok_or(Damaged)?;
        let entry = OutboxEntry { seq, stream, id, op: op.name(), hash, captured, source, bytes, only_for };
        Ok(Self { entry, op, form, plain_bytes, chunks })
    }

    /// The change that this row and `body` make.
    pub(super) fn change(self, keyring: &Keyring, squeeze: &Squeeze, body: &[u8]) -> Result<Change, StoreError> {
        let opened;
        let plain = match self.form {
            Form::Plain => body,
            Form::Squeezed => {
                opened = squeeze.expand(body, self.plain_bytes).map_err(error::damaged(Tree::Payloads))?;
                &opened
            }
            Form::Sealed => {
                opened = keyring.open(PURPOSE, body).map_err(|error| error::sealed(Tree::Payloads, error))?;
                &opened
            }
        };
        decode_body(keyring, self, plain)
    }
}

fn encode_body(keyring: &Keyring, change: &Change) -> Vec<u8> {
    let Change {
        seq: _,
        stream: _,
        id: _,
        op,
        updated,
        suppressed,
        captured: _,
        source: _,
        payload,
        unlinked_bib_ids,
        hash: _,
        only_for: _,
    } = change;
    let mut writer = Writer::new();
    writer.optional_timestamp(*updated).flag(*suppressed).numbers(unlinked_bib_ids);
    if let Op::Delete { deleted_on, .. } = *op {
        writer.option(deleted_on, |writer, day| {
            writer.date(day);
        });
    }
    match payload {
        Payload::Nothing => writer.byte(0),
        Payload::Bib { record, marcxml, losses, locations } => {
            writer.byte(1).text(record.get()).text(marcxml).length(losses.len());
            for loss in losses {
                // Losses are for people and few; their kinds may grow without a new format.
                writer.bytes(&serde_json::to_vec(loss).expect("a loss has text keys and no maps"));
            }
            writer.length(locations.len());
            for location in locations {
                writer.text(location);
            }
            &mut writer
        }
        Payload::Item { record, bib_ids, location } => {
            writer.byte(2).text(record.get()).numbers(bib_ids).optional_text(location.as_deref())
        }
        Payload::Patron(masked) => writer.byte(3).bytes(&masked.seal(keyring)),
    };
    writer.finish()
}

fn decode_body(keyring: &Keyring, row: Row, plain: &[u8]) -> Result<Change, StoreError> {
    let damaged = error::damaged(Tree::Payloads);
    let mut reader = Reader::new(plain);
    let (updated, suppressed, unlinked_bib_ids) = read_common(&mut reader).map_err(&damaged)?;
    let op = match row.op {
        Op::Upsert => Op::Upsert,
        Op::Delete { reason, .. } => Op::Delete { reason, deleted_on: reader.option(Reader::date).map_err(&damaged)? },
    };
    let payload = match reader.byte().map_err(&damaged)? {
        3 => {
            let sealed = reader.bytes().map_err(&damaged)?;
            Masked::open(keyring, sealed).map(Payload::Patron).map_err(|error| error::sealed(Tree::Payloads, error))?
        }
        kind => read_open_payload(kind, &mut reader).map_err(&damaged)?,
    };
    reader.end().map_err(&damaged)?;
    let OutboxEntry { seq, stream, id, op: _, hash, captured, source, bytes: _, only_for } = row.entry;
    Ok(Change { seq, stream, id, op, updated, suppressed, captured, source, payload, unlinked_bib_ids, hash, only_for })
}

type Common = (Option<jiff::Timestamp>, bool, Vec<crate::record::RecordNumber>);

fn read_common(reader: &mut Reader<'_>) -> Result<Common, Damaged> {
    Ok((reader.option(Reader::timestamp)?, reader.flag()?, reader.numbers()?))
}

fn read_open_payload(kind: u8, reader: &mut Reader<'_>) -> Result<Payload, Damaged> {
    match kind {
        0 => Ok(Payload::Nothing),
        1 => Ok(Payload::Bib {
            record: read_json(reader)?,
            marcxml: reader.owned_text()?,
            losses: read_list(reader, |reader| serde_json::from_slice::<Loss>(reader.bytes()?).map_err(|_| Damaged))?,
            locations: read_list(reader, Reader::owned_text)?,
        }),
        2 => Ok(Payload::Item {
            record: read_json(reader)?,
            bib_ids: reader.numbers()?,
            location: reader.option(Reader::owned_text)?,
        }),
        _ => Err(Damaged),
    }
}

fn read_json(reader: &mut Reader<'_>) -> Result<Box<serde_json::value::RawValue>, Damaged> {
    serde_json::value::RawValue::from_string(reader.owned_text()?).map_err(|_| Damaged)
}

fn read_list<'a, T>(
    reader: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Damaged>,
) -> Result<Vec<T>, Damaged> {
    let count = reader.length()?;
    (0..count).map(|_| read(reader)).collect()
}

const ORIGINS: [Origin; 8] = [
    Origin::Load,
    Origin::Incremental,
    Origin::Deletes,
    Origin::Backfill,
    Origin::LateSweep,
    Origin::Reconcile,
    Origin::Replay,
    Origin::Rebuild,
];
const FORMS: [Form; 3] = [Form::Plain, Form::Squeezed, Form::Sealed];

fn origin_code(origin: Origin) -> u8 {
    match origin {
        Origin::Load => 1,
        Origin::Incremental => 2,
        Origin::Deletes => 3,
        Origin::Backfill => 4,
        Origin::LateSweep => 5,
        Origin::Reconcile => 6,
        Origin::Replay => 7,
        Origin::Rebuild => 8,
    }
}

fn form_code(form: Form) -> u8 {
    match form {
        Form::Plain => 0,
        Form::Squeezed => 1,
        Form::Sealed => 2,
    }
}

fn op_code(op: Op) -> u8 {
    match op {
        Op::Upsert => 0,
        Op::Delete { reason: DeleteReason::Deleted, .. } => 1,
        Op::Delete { reason: DeleteReason::Vanished, .. } => 2,
        Op::Delete { reason: DeleteReason::Suppressed, .. } => 3,
        Op::Delete { reason: DeleteReason::Filtered, .. } => 4,
    }
}

/// The day of a deletion is in the body.
fn read_op(reader: &mut Reader<'_>) -> Result<Op, Damaged> {
    let reason = match reader.byte()? {
        0 => return Ok(Op::Upsert),
        1 => DeleteReason::Deleted,
        2 => DeleteReason::Vanished,
        3 => DeleteReason::Suppressed,
        4 => DeleteReason::Filtered,
        _ => return Err(Damaged),
    };
    Ok(Op::Delete { reason, deleted_on: None })
}
