//! Sink positions with what waits for each.

use super::codec::{Damaged, Reader, Writer};
use crate::store::backlog::Backlog;

/// The key: the sink's name.
pub(super) fn key(name: &str) -> Vec<u8> {
    name.as_bytes().to_vec()
}

/// Reads a key.
pub(super) fn decode_key(key: &[u8]) -> Result<String, Damaged> {
    std::str::from_utf8(key).map(str::to_owned).map_err(|_| Damaged)
}

pub(super) fn encode(backlog: &Backlog) -> Vec<u8> {
    let Backlog { confirmed, attached, streams, pending, oldest } = backlog;
    let mut writer = Writer::new();
    writer.seq(*confirmed).flag(*attached).length(streams.len());
    for stream in streams {
        writer.stream(*stream);
    }
    writer.varint(*pending).option(*oldest, |writer, (seq, captured)| {
        writer.seq(seq).timestamp(captured);
    });
    writer.finish()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Backlog, Damaged> {
    let mut reader = Reader::new(bytes);
    let (confirmed, attached, streams) = (reader.seq()?, reader.flag()?, reader.length()?);
    let backlog = Backlog {
        confirmed,
        attached,
        streams: (0..streams).map(|_| reader.stream()).collect::<Result<_, _>>()?,
        pending: reader.varint()?,
        oldest: reader.option(|reader| Ok((reader.seq()?, reader.timestamp()?)))?,
    };
    reader.end()?;
    Ok(backlog)
}
