//! Quarantined entries: kept in the order of their first sight, found by stream, record and cause.

use std::collections::BTreeMap;

use super::chunks;
use super::codec::{Damaged, Reader, Writer, stream_code};
use super::draft::Draft;
use super::error;
use super::trees::{Tree, Trees};
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::ports::{QuarantineEntry, QuarantineKey, QuarantineState, Slice};

/// Bytes of the key of an entry: stream and place.
const KEY_BYTES: usize = 9;

/// How many entries there are, counted when the store is opened and kept from then on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    per_stream: BTreeMap<Stream, u64>,
    per_sink: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts what is there, from the index alone.
    pub(super) fn count(trees: &Trees) -> Result<Self, StoreError> {
        let mut tally = Self::default();
        for row in trees.range(Tree::Places, ..) {
            let (key, place) = row?;
            let stream = Reader::new(&key).stream().map_err(error::damaged(Tree::Places))?;
            let place = Place::decode(&place).map_err(error::damaged(Tree::Places))?;
            tally.add(stream, place.sink.as_deref());
        }
        Ok(tally)
    }

    pub(super) fn of_stream(&self, stream: Stream) -> u64 {
        self.per_stream.get(&stream).copied().unwrap_or(0)
    }

    pub(super) fn of_sink(&self, sink: &str) -> u64 {
        self.per_sink.get(sink).copied().unwrap_or(0)
    }

    fn add(&mut self, stream: Stream, sink: Option<&str>) {
        *self.per_stream.entry(stream).or_default() += 1;
        if let Some(sink) = sink {
            *self.per_sink.entry(sink.to_owned()).or_default() += 1;
        }
    }

    fn subtract(&mut self, stream: Stream, sink: Option<&str>) {
        let counts = [self.per_stream.get_mut(&stream), sink.and_then(|sink| self.per_sink.get_mut(sink))];
        for count in counts.into_iter().flatten() {
            *count = count.saturating_sub(1);
        }
    }
}

/// Entries of `stream`, oldest first.
pub(super) fn list(trees: &Trees, stream: Stream, limit: usize) -> Result<Vec<QuarantineEntry>, StoreError> {
    each(trees, stream).take(limit).collect()
}

/// Entries of `stream`, oldest first, each with its own fate.
pub(super) fn each(trees: &Trees, stream: Stream) -> impl Iterator<Item = Result<QuarantineEntry, StoreError>> {
    let code = stream_code(stream);
    let rows = trees.range(Tree::Quarantine, vec![code]..vec![code + 1]);
    let heads = rows.filter(|row| row.as_ref().map_or(true, |(key, _)| !chunks::is_continuation(key, KEY_BYTES)));
    heads.map(move |row| {
        let (key, first) = row?;
        read(trees, stream, &key, &first)
    })
}

/// Closes, discards and puts what `slice` says, in this order.
pub(super) fn apply(trees: &Trees, draft: &mut Draft, slice: &Slice) -> Result<(), StoreError> {
    let mut changed = Changed::default();
    for (stream, record) in &slice.closes {
        let prefix = record_prefix(*stream, record);
        let end = [prefix.as_slice(), &[0xff; 16]].concat();
        let found = trees.keys(Tree::Places, prefix..=end).collect::<Result<Vec<_>, _>>()?;
        for index in found {
            changed.take(trees, draft, *stream, &index)?;
        }
    }
    for key in &slice.discards {
        changed.take(trees, draft, key.stream, &index_key(key))?;
    }
    for entry in &slice.quarantined {
        changed.put(trees, draft, entry.clone())?;
    }
    changed.write(trees, draft)
}

/// Where an entry lies, and whose it is: what the index holds.
#[derive(Debug, Clone)]
struct Place {
    number: u64,
    sink: Option<String>,
}

/// What a slice did so far, by index key; nothing of it is in the trees yet.
#[derive(Debug, Default)]
struct Changed(BTreeMap<Vec<u8>, (Stream, u64, Option<QuarantineEntry>)>);

impl Changed {
    fn put(&mut self, trees: &Trees, draft: &mut Draft, mut entry: QuarantineEntry) -> Result<(), StoreError> {
        if entry.stream == Stream::Patrons {
            // A patron's entry holds pseudonym and reason only, whatever the caller thought.
            entry.payload = None;
        }
        let index = index_key(&entry.key());
        let (number, entry) = match self.take(trees, draft, entry.stream, &index)? {
            Some((number, before)) => (number, before.join(entry)),
            None => {
                draft.head.places += 1;
                (draft.head.places, entry)
            }
        };
        draft.quarantined.add(entry.stream, entry.sink.as_deref());
        self.0.insert(index, (entry.stream, number, Some(entry)));
        Ok(())
    }

    /// Takes the entry out, if there is one.
    fn take(
        &mut self,
        trees: &Trees,
        draft: &mut Draft,
        stream: Stream,
        index: &[u8],
    ) -> Result<Option<(u64, QuarantineEntry)>, StoreError> {
        let found = match self.0.get_mut(index) {
            Some((_, number, entry)) => entry.take().map(|entry| (*number, entry)),
            None => stored(trees, stream, index)?,
        };
        if let Some((number, entry)) = &found {
            draft.quarantined.subtract(entry.stream, entry.sink.as_deref());
            self.0.insert(index.to_vec(), (stream, *number, None));
        }
        Ok(found)
    }

    fn write(self, trees: &Trees, draft: &mut Draft) -> Result<(), StoreError> {
        for (index, (stream, number, entry)) in self.0 {
            let key = key(stream, number);
            match entry {
                None => {
                    draft.batch.remove(Tree::Places, index);
                    chunks::remove(trees, &mut draft.batch, Tree::Quarantine, &key)?;
                }
                Some(entry) => {
                    let place = Place { number, sink: entry.sink.clone() };
                    // Closed and seen again in one slice: it came back in another place.
                    if let Some(before) = trees.get(Tree::Places, &index)? {
                        let before = Place::decode(&before).map_err(error::damaged(Tree::Places))?;
                        if before.number != number {
                            let old = self::key(stream, before.number);
                            chunks::remove(trees, &mut draft.batch, Tree::Quarantine, &old)?;
                        }
                    }
                    draft.batch.put(Tree::Places, index, &place.encode());
                    chunks::replace(trees, &mut draft.batch, Tree::Quarantine, &key, &encode(&entry))?;
                }
            }
        }
        Ok(())
    }
}

impl Place {
    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.varint(self.number).optional_text(self.sink.as_deref());
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let place = Self { number: reader.varint()?, sink: reader.option(Reader::owned_text)? };
        reader.end()?;
        Ok(place)
    }
}

fn stored(trees: &Trees, stream: Stream, index: &[u8]) -> Result<Option<(u64, QuarantineEntry)>, StoreError> {
    let Some(place) = trees.get(Tree::Places, index)? else { return Ok(None) };
    let place = Place::decode(&place).map_err(error::damaged(Tree::Places))?;
    let key = key(stream, place.number);
    let first = trees.get(Tree::Quarantine, &key)?.ok_or_else(|| error::missing(Tree::Quarantine))?;
    Ok(Some((place.number, read(trees, stream, &key, &first)?)))
}

fn read(trees: &Trees, stream: Stream, key: &[u8], first: &[u8]) -> Result<QuarantineEntry, StoreError> {
    let bytes = chunks::join(trees, Tree::Quarantine, key, first)?;
    decode(stream, &bytes).map_err(error::damaged(Tree::Quarantine))
}

fn key(stream: Stream, place: u64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.stream(stream).raw(&place.to_be_bytes());
    writer.finish()
}

/// Stream, half a hash of the record, half a hash of the cause: both may be of any length.
fn index_key(key: &QuarantineKey) -> Vec<u8> {
    let mut index = record_prefix(key.stream, &key.record);
    index.extend(blake3::hash(key.fingerprint.as_bytes()).as_bytes().iter().take(16));
    index
}

fn record_prefix(stream: Stream, record: &str) -> Vec<u8> {
    let mut prefix = vec![stream_code(stream)];
    prefix.extend(blake3::hash(record.as_bytes()).as_bytes().iter().take(16));
    prefix
}

fn encode(entry: &QuarantineEntry) -> Vec<u8> {
    let QuarantineEntry {
        stream: _,
        record,
        reason,
        fingerprint,
        attempts,
        last_status,
        first_seen,
        last_seen,
        state,
        sink,
        payload,
    } = entry;
    let mut writer = Writer::new();
    writer.text(record).text(reason).text(fingerprint).varint(u64::from(*attempts));
    writer.option(*last_status, |writer, status| {
        writer.varint(u64::from(status));
    });
    writer.timestamp(*first_seen).timestamp(*last_seen).flag(*state == QuarantineState::Parked);
    writer.optional_text(sink.as_deref()).optional_text(payload.as_deref());
    writer.finish()
}

fn decode(stream: Stream, bytes: &[u8]) -> Result<QuarantineEntry, Damaged> {
    let mut reader = Reader::new(bytes);
    let entry = QuarantineEntry {
        stream,
        record: reader.owned_text()?,
        reason: reader.owned_text()?,
        fingerprint: reader.owned_text()?,
        attempts: reader.narrow()?,
        last_status: reader.option(Reader::narrow)?,
        first_seen: reader.timestamp()?,
        last_seen: reader.timestamp()?,
        state: if reader.flag()? { QuarantineState::Parked } else { QuarantineState::Open },
        sink: reader.option(Reader::owned_text)?,
        payload: reader.option(Reader::owned_text)?,
    };
    reader.end()?;
    Ok(entry)
}
