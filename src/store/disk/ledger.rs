//! Ledger rows. A patron row is sealed whole: positions and id ranges are record numbers of people.

use super::chunks;
use super::codec::{Damaged, Reader, Writer};
use super::error;
use super::trees::{Batch, Tree, Trees};
use crate::privacy::Keyring;
use crate::record::Stream;
use crate::sync::{LedgerRow, Pass, RowState, Span, StoreError, Window};

/// What patron rows are sealed for.
const PURPOSE: &str = "ledger row";

/// Bytes of the key of a row: stream and number.
const KEY_BYTES: usize = 9;

/// Rows of `stream`, by number.
pub(super) fn list(trees: &Trees, keyring: &Keyring, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
    let rows = trees.range(Tree::Ledger, key(stream, 0)..=key(stream, u64::MAX));
    let heads = rows.filter(|row| row.as_ref().map_or(true, |(key, _)| !chunks::is_continuation(key, KEY_BYTES)));
    let rows = heads.map(|row| {
        let (key, first) = row?;
        decode(keyring, stream, &key, &chunks::join(trees, Tree::Ledger, &key, &first)?)
    });
    rows.collect()
}

/// Puts a row in the place of an earlier one with its number.
pub(super) fn put(trees: &Trees, keyring: &Keyring, batch: &mut Batch, row: &LedgerRow) -> Result<(), StoreError> {
    // Chunked because nothing bounds the text of an error.
    chunks::replace(trees, batch, Tree::Ledger, &key(row.stream, row.id), &encode(keyring, row))
}

/// Removes a row, whether or not it is there.
pub(super) fn remove(trees: &Trees, batch: &mut Batch, stream: Stream, id: u64) -> Result<(), StoreError> {
    chunks::remove(trees, batch, Tree::Ledger, &key(stream, id))
}

/// The payload of a row.
fn encode(keyring: &Keyring, row: &LedgerRow) -> Vec<u8> {
    let plain = encode_plain(row);
    if row.stream == Stream::Patrons { keyring.seal(PURPOSE, &plain) } else { plain }
}

/// Stream, then row number big-endian.
fn key(stream: Stream, id: u64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.stream(stream).raw(&id.to_be_bytes());
    writer.finish()
}

/// The row of `stream` under `key`.
fn decode(keyring: &Keyring, stream: Stream, key: &[u8], bytes: &[u8]) -> Result<LedgerRow, StoreError> {
    let row = if stream == Stream::Patrons {
        let plain = keyring.open(PURPOSE, bytes).map_err(|error| error::sealed(Tree::Ledger, error))?;
        decode_plain(stream, key, &plain)
    } else {
        decode_plain(stream, key, bytes)
    };
    row.map_err(error::damaged(Tree::Ledger))
}

fn encode_plain(row: &LedgerRow) -> Vec<u8> {
    let LedgerRow {
        id: _,
        stream: _,
        pass,
        span,
        state,
        position,
        attempts,
        last_error,
        opened,
        touched,
        resume_at,
        found_nothing,
    } = row;
    let mut writer = Writer::new();
    writer.byte(pass_code(*pass)).byte(if *found_nothing { FOUND_NOTHING } else { state_code(*state) });
    match *span {
        Span::Time(window) => writer.byte(0).timestamp(window.start()).timestamp(window.end()),
        Span::Days { from, to } => writer.byte(1).date(from).date(to),
        Span::Ids { from, to, pinned } => {
            writer.byte(2).number(from).option(to, |writer, to| {
                writer.number(to);
            });
            writer.timestamp(pinned)
        }
    };
    writer.option(*position, |writer, position| {
        writer.number(position);
    });
    writer.varint(u64::from(*attempts)).optional_text(last_error.as_deref());
    writer.timestamp(*opened).timestamp(*touched).optional_timestamp(*resume_at);
    writer.finish()
}

fn decode_plain(stream: Stream, key: &[u8], bytes: &[u8]) -> Result<LedgerRow, Damaged> {
    let mut key = Reader::new(key);
    let (_, id) = (key.stream()?, u64::from_be_bytes(key.array()?));
    let mut reader = Reader::new(bytes);
    let pass = reader.byte()?;
    let state = reader.byte()?;
    let row = LedgerRow {
        id,
        stream,
        pass: PASSES.into_iter().find(|known| pass_code(*known) == pass).ok_or(Damaged)?,
        state: match state {
            FOUND_NOTHING => RowState::Done,
            _ => STATES.into_iter().find(|known| state_code(*known) == state).ok_or(Damaged)?,
        },
        span: span(&mut reader)?,
        position: reader.option(Reader::number)?,
        attempts: reader.narrow()?,
        last_error: reader.option(Reader::owned_text)?,
        opened: reader.timestamp()?,
        touched: reader.timestamp()?,
        resume_at: reader.option(Reader::timestamp)?,
        found_nothing: state == FOUND_NOTHING,
    };
    reader.end()?;
    Ok(row)
}

fn span(reader: &mut Reader<'_>) -> Result<Span, Damaged> {
    match reader.byte()? {
        0 => Window::new(reader.timestamp()?, reader.timestamp()?).map(Span::Time).ok_or(Damaged),
        1 => Ok(Span::Days { from: reader.date()?, to: reader.date()? }),
        2 => Ok(Span::Ids { from: reader.number()?, to: reader.option(Reader::number)?, pinned: reader.timestamp()? }),
        _ => Err(Damaged),
    }
}

const PASSES: [Pass; 8] = [
    Pass::Load,
    Pass::Update,
    Pass::Deletes,
    Pass::Backfill,
    Pass::LateSweep,
    Pass::Reconcile,
    Pass::Rebuild,
    Pass::RebuildDeletes,
];
/// The state of a row that is done and brought nothing. Rows of earlier versions never have it: they are believed.
const FOUND_NOTHING: u8 = 5;
const STATES: [RowState; 4] = [RowState::Pending, RowState::Partial, RowState::Failed, RowState::Done];

fn pass_code(pass: Pass) -> u8 {
    match pass {
        Pass::Load => 1,
        Pass::Update => 2,
        Pass::Deletes => 3,
        Pass::Backfill => 4,
        Pass::LateSweep => 5,
        Pass::Reconcile => 6,
        Pass::Rebuild => 7,
        Pass::RebuildDeletes => 8,
    }
}

fn state_code(state: RowState) -> u8 {
    match state {
        RowState::Pending => 1,
        RowState::Partial => 2,
        RowState::Failed => 3,
        RowState::Done => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_brought_nothing_stays_known_as_such() {
        let span = Span::Days { from: jiff::civil::date(2026, 1, 4), to: jiff::civil::date(2026, 1, 6) };
        let opened = LedgerRow::opened(7, Stream::Bibs, Pass::Deletes, span, jiff::Timestamp::UNIX_EPOCH);
        for state in STATES {
            for found_nothing in [false, state == RowState::Done] {
                let row = LedgerRow { state, found_nothing, ..opened.clone() };
                let read = decode_plain(Stream::Bibs, &key(Stream::Bibs, 7), &encode_plain(&row)).unwrap();
                assert_eq!(read, row);
            }
        }
    }
}
