//! Item links: the bibs that each item was last seen to hang from. Deleted items arrive without them (§7.3 of the
//! design), so they are remembered here.

use super::chunks;
use super::codec::{Reader, Writer};
use super::error;
use super::trees::{Batch, Tree, Trees};
use crate::record::RecordNumber;
use crate::sync::StoreError;

/// The bibs of `item`; none when it was never linked.
pub(super) fn of(trees: &Trees, item: RecordNumber) -> Result<Vec<RecordNumber>, StoreError> {
    let Some(bytes) = chunks::get(trees, Tree::Links, &key(item))? else { return Ok(Vec::new()) };
    let mut reader = Reader::new(&bytes);
    let bibs = reader.numbers().map_err(error::damaged(Tree::Links))?;
    reader.end().map_err(error::damaged(Tree::Links))?;
    Ok(bibs)
}

/// Sets the bibs of `item`; an empty list removes its row. Any number of bibs is fine (BR-016).
pub(super) fn set(
    trees: &Trees,
    batch: &mut Batch,
    item: RecordNumber,
    bibs: &[RecordNumber],
) -> Result<(), StoreError> {
    if bibs.is_empty() {
        return chunks::remove(trees, batch, Tree::Links, &key(item));
    }
    let mut writer = Writer::new();
    writer.numbers(bibs);
    chunks::replace(trees, batch, Tree::Links, &key(item), &writer.finish())
}

fn key(item: RecordNumber) -> [u8; 8] {
    item.value().to_be_bytes()
}
