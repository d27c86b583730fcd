//! A batch of changes as bytes, before anything touches the disk.

use std::collections::BTreeMap;

use crate::record::Stream;
use crate::sink::error::SinkFault;
use crate::sink::{FileFormat, event};
use crate::sync::{Change, Op, Payload, Seq};

/// How a record element begins in an event; in a collection the namespace is declared once, at the top.
const DECLARED: &str = "<record xmlns=\"http://www.loc.gov/MARC21/slim\">";

/// The changes of a batch by stream, encoded.
pub(super) type Batch = BTreeMap<Stream, StreamBatch>;

/// The changes of one stream, in order, encoded one after the other.
#[derive(Debug, Default)]
pub(super) struct StreamBatch {
    bytes: Vec<u8>,
    changes: Vec<Encoded>,
}

/// One change and where its bytes end.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) seq: Seq,
    pub(super) id: String,
    pub(super) is_delete: bool,
    end: usize,
}

impl StreamBatch {
    /// What comes after `held`: the bytes and the changes they stand for.
    pub(super) fn after(&self, held: Seq) -> (&[u8], &[Encoded]) {
        let skipped = self.changes.partition_point(|change| change.seq <= held);
        let start = skipped.checked_sub(1).and_then(|last| self.changes.get(last)).map_or(0, |change| change.end);
        (self.bytes.get(start..).unwrap_or_default(), self.changes.get(skipped..).unwrap_or_default())
    }

    /// The bytes of each change after `held`.
    pub(super) fn each_after(&self, held: Seq) -> impl Iterator<Item = (&Encoded, &[u8])> {
        let mut start = 0;
        self.changes.iter().filter_map(move |change| {
            let bytes = self.bytes.get(start..change.end).unwrap_or_default();
            start = change.end;
            (change.seq > held).then_some((change, bytes))
        })
    }
}

/// Encodes `changes` as `format` writes them. MARCXML takes bibs only: other changes are not for it.
///
/// # Errors
/// When one change takes more than `limit_bytes`.
pub(super) fn encode(changes: &[Change], format: FileFormat, limit_bytes: usize) -> Result<Batch, SinkFault> {
    let mut batch = Batch::new();
    for change in changes {
        if format == FileFormat::Marcxml && change.stream != Stream::Bibs {
            continue;
        }
        let stream = batch.entry(change.stream).or_default();
        // Within a batch as between batches: what is not newer is a copy.
        if stream.changes.last().is_some_and(|last| change.seq <= last.seq) {
            continue;
        }
        let before = stream.bytes.len();
        match format {
            FileFormat::Ndjson => {
                event::append_line(change, &mut stream.bytes);
            }
            FileFormat::Marcxml => append_marcxml(change, &mut stream.bytes),
        }
        let bytes = stream.bytes.len() - before;
        if bytes > limit_bytes {
            return Err(SinkFault::Oversize { key: change.key(), seq: change.seq, bytes, limit_bytes });
        }
        stream.changes.push(Encoded {
            seq: change.seq,
            id: change.id.clone(),
            is_delete: change.op != Op::Upsert,
            end: stream.bytes.len(),
        });
    }
    Ok(batch)
}

/// A record element on a line of its own, or of a deletion the record number.
fn append_marcxml(change: &Change, bytes: &mut Vec<u8>) {
    match &change.payload {
        Payload::Bib { marcxml, .. } => match marcxml.strip_prefix(DECLARED) {
            Some(rest) => {
                bytes.extend_from_slice(b"<record>");
                bytes.extend_from_slice(rest.as_bytes());
            }
            None => bytes.extend_from_slice(marcxml.as_bytes()),
        },
        _ => bytes.extend_from_slice(change.id.as_bytes()),
    }
    bytes.push(b'\n');
}
