//! What kind of store this is: the first thing read at every open.

use jiff::Timestamp;

use super::codec::{Reader, Writer};
use super::error;
use super::head::{self, Head};
use super::trees::{Batch, Tree, Trees};
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// The format written by this program: which trees there are and what their keys mean. Values have versions of their
/// own.
pub(super) const FORMAT: u64 = 1;

/// The key of the format row in the meta tree. Its payload begins with the format in every format there will be.
pub(super) const KEY: &[u8] = b"format";

/// Checks that we can read this store, or makes a new one; gives its instance.
///
/// # Errors
/// `NewerFormat` for what a newer program wrote; `Corrupt` for a database that is not empty and does not say.
pub(super) fn check_or_make(trees: &Trees, now: Timestamp) -> Result<String, StoreError> {
    if trees.get(Tree::Meta, KEY)?.is_none() { make(trees, now) } else { check(trees) }
}

/// Checks that we can read this store; gives its instance.
///
/// # Errors
/// `NewerFormat` for what a newer program wrote; `Corrupt` for a database that does not say.
pub(super) fn check(trees: &Trees) -> Result<String, StoreError> {
    let row = trees.get(Tree::Meta, KEY)?.ok_or_else(|| error::missing(Tree::Meta))?;
    let mut reader = Reader::new(&row);
    let format = reader.varint().map_err(error::damaged(Tree::Meta))?;
    if format > FORMAT {
        let message = format!(
            "open the state database: its format {format} is newer than {FORMAT}, the newest this program knows; \
             update sierra-sync"
        );
        return Err(StoreError::new(StoreErrorKind::NewerFormat, message));
    }
    reader.owned_text().map_err(error::damaged(Tree::Meta))
}

fn make(trees: &Trees, now: Timestamp) -> Result<String, StoreError> {
    for tree in Tree::ALL {
        if trees.keys(tree, ..).next().is_some() {
            return Err(error::missing(Tree::Meta));
        }
    }
    // Not a secret: it only has to differ between two stores made at the same place.
    let mut hasher = blake3::Hasher::new();
    hasher.update(&now.as_nanosecond().to_be_bytes()).update(&std::process::id().to_be_bytes());
    let instance: String = hasher.finalize().to_hex().chars().take(32).collect();
    let mut row = Writer::new();
    row.varint(FORMAT).text(&instance);
    let mut batch = Batch::default();
    batch.put(Tree::Meta, KEY, &row.finish());
    batch.put(Tree::Meta, head::KEY, &Head::NEW.encode());
    trees.transact("make a state database", &batch, KEY, None)?;
    Ok(instance)
}
