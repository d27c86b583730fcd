//! Values of any length in chunks that sled keeps out of blob files.
//!
//! The first chunk lies under the key itself and begins with the number of chunks; the others lie under the key
//! followed by their number, so that they come right after it in key order.

use super::codec::{Reader, Writer};
use super::envelope;
use super::error;
use super::trees::{Batch, MAX_VALUE_BYTES, Tree, Trees};
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// Payload bytes of one chunk: less the envelope and the count of the first one.
const CHUNK_BYTES: usize = MAX_VALUE_BYTES - envelope::OVERHEAD - 3;

/// Puts `bytes` under `key` and says how many chunks that took. What lay there before must take no more chunks, or
/// have been removed.
pub(super) fn put(batch: &mut Batch, tree: Tree, key: &[u8], bytes: &[u8]) -> Result<u16, StoreError> {
    let count = u16::try_from(bytes.len().div_ceil(CHUNK_BYTES).max(1)).map_err(|_| too_long(tree, bytes.len()))?;
    let mut chunks = bytes.chunks(CHUNK_BYTES);
    let mut first = Writer::new();
    first.varint(u64::from(count)).raw(chunks.next().unwrap_or_default());
    batch.put(tree, key, &first.finish());
    for (number, chunk) in (1..count).zip(chunks) {
        batch.put(tree, key_of(key, number), chunk);
    }
    Ok(count)
}

/// Puts `bytes` under `key` and removes what an earlier, longer value left there.
pub(super) fn replace(
    trees: &Trees,
    batch: &mut Batch,
    tree: Tree,
    key: &[u8],
    bytes: &[u8],
) -> Result<(), StoreError> {
    let count = put(batch, tree, key, bytes)?;
    for surplus in continuations(trees, tree, key, count) {
        batch.remove(tree, surplus?.to_vec());
    }
    Ok(())
}

/// Removes the `count` chunks under `key`.
pub(super) fn remove_counted(batch: &mut Batch, tree: Tree, key: &[u8], count: u16) {
    batch.remove(tree, key);
    for number in 1..count {
        batch.remove(tree, key_of(key, number));
    }
}

/// Removes however many chunks lie under `key`.
pub(super) fn remove(trees: &Trees, batch: &mut Batch, tree: Tree, key: &[u8]) -> Result<(), StoreError> {
    batch.remove(tree, key);
    for chunk in continuations(trees, tree, key, 1) {
        batch.remove(tree, chunk?.to_vec());
    }
    Ok(())
}

/// The value under `key`.
pub(super) fn get(trees: &Trees, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    trees.get(tree, key)?.map(|first| join(trees, tree, key, &first)).transpose()
}

/// The value whose first chunk, found under `key`, is `first`.
pub(super) fn join(trees: &Trees, tree: Tree, key: &[u8], first: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut reader = Reader::new(first);
    let count: u16 = reader.narrow().map_err(error::damaged(tree))?;
    let mut bytes = reader.rest().to_vec();
    for number in 1..count {
        let chunk = trees.get(tree, &key_of(key, number))?.ok_or_else(|| error::missing(tree))?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Whether `key`, found in a tree whose own keys have `length` bytes, is that of a later chunk.
pub(super) fn is_continuation(key: &[u8], length: usize) -> bool {
    key.len() > length
}

fn key_of(key: &[u8], number: u16) -> Vec<u8> {
    [key, &number.to_be_bytes()].concat()
}

fn continuations(
    trees: &Trees,
    tree: Tree,
    key: &[u8],
    from: u16,
) -> impl Iterator<Item = Result<sled::IVec, StoreError>> {
    trees.keys(tree, key_of(key, from)..=key_of(key, u16::MAX))
}

fn too_long(tree: Tree, length: usize) -> StoreError {
    let message = format!("store a value of {length} bytes in the {} tree: it is too long", tree.name());
    StoreError::new(StoreErrorKind::Io, message)
}
