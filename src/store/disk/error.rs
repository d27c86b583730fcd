//! What went wrong, in words that name tree and kind of key and never a value.

use std::io;

use super::codec::Damaged;
use super::envelope::Unreadable;
use super::trees::Tree;
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// What to do about damage; the same words everywhere, so that they can be searched for.
const SET_ASIDE: &str =
    "move the state directory away, name new sink paths, and run `sierra-sync sync`: it loads everything again";

/// sled failed while doing `what`.
pub(super) fn sled(what: &str, error: ::sled::Error) -> StoreError {
    let kind = match &error {
        ::sled::Error::Io(_) => StoreErrorKind::Io,
        ::sled::Error::Corruption { .. }
        | ::sled::Error::CollectionNotFound(_)
        | ::sled::Error::Unsupported(_)
        | ::sled::Error::ReportableBug(_) => StoreErrorKind::Corrupt,
    };
    let hint = if kind == StoreErrorKind::Io { "check that the disk is well and not full" } else { SET_ASIDE };
    StoreError::new(kind, format!("{what}: the state database failed; {hint}")).caused_by(error)
}

/// The file system failed while doing `what`.
pub(super) fn io(what: impl Into<String>, error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Io, what).caused_by(error)
}

/// A value of `tree` cannot be read.
pub(super) fn unreadable(tree: Tree, why: Unreadable) -> StoreError {
    let place = format!("read a value of the {} tree, keyed by {}", tree.name(), tree.key_kind());
    match why {
        Unreadable::Damaged => StoreError::new(StoreErrorKind::Corrupt, format!("{place}: it is damaged; {SET_ASIDE}")),
        Unreadable::Newer(version) => StoreError::new(
            StoreErrorKind::NewerFormat,
            format!("{place}: its format {version} is newer than this program knows; update sierra-sync"),
        ),
    }
}

/// A value of `tree` is not what was written.
pub(super) fn damaged(tree: Tree) -> impl Fn(Damaged) -> StoreError {
    move |Damaged| unreadable(tree, Unreadable::Damaged)
}

/// A value that must be there is not.
pub(super) fn missing(tree: Tree) -> StoreError {
    let message =
        format!("read a value of the {} tree, keyed by {}: it is missing; {SET_ASIDE}", tree.name(), tree.key_kind());
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// A sealed value of `tree` cannot be opened: damaged, or the key is gone.
pub(super) fn sealed(tree: Tree, error: crate::privacy::SealError) -> StoreError {
    let message = format!("read a sealed value of the {} tree, keyed by {}", tree.name(), tree.key_kind());
    StoreError::new(StoreErrorKind::Corrupt, message).caused_by(error)
}

/// The database's own code panicked.
pub(super) fn panicked(what: &str) -> StoreError {
    let message = format!("{what}: the state database is damaged beyond what it can tell; {SET_ASIDE}");
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// What is on disk is older than what was acknowledged.
pub(super) fn rolled_back(acknowledged: u64, found: u64) -> StoreError {
    let lost = acknowledged.saturating_sub(found);
    let message = format!(
        "open the state database: its last {lost} acknowledged commits are gone (a damaged tail, or a backup was \
         restored); {SET_ASIDE}"
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// An earlier failure closed the store.
pub(super) fn closed(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("{what}: the store was closed by an earlier failure"))
}
