//! What went wrong, in words that name tree and kind of key and never a value.

use std::fmt;
use std::io;
use std::path::Path;

use super::codec::Damaged;
use super::envelope::Unreadable;
use super::trees::Tree;
use super::verify::Verified;
use crate::privacy::SealError;
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// What to do about damage; the same words everywhere, so that they can be searched for.
const SET_ASIDE: &str = "the next `sierra-sync sync`, or start of the service, sets it aside and rebuilds from Sierra";

/// What is wrong, without what to do about it: for where that is being done.
pub(super) fn bare(why: &StoreError) -> &str {
    why.message.strip_suffix(SET_ASIDE).map_or(why.message.as_str(), |bare| bare.trim_end_matches("; "))
}

/// Below this a disk counts as full whatever error it gave: sled hides the system's own words now and then.
const AS_GOOD_AS_FULL: u64 = 1 << 20;

/// sled failed while doing `what`.
pub(super) fn sled(what: &str, error: ::sled::Error) -> StoreError {
    let kind = match &error {
        // A file that ends too early, or holds nonsense, is none of the disk's doing.
        ::sled::Error::Io(error)
            if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) =>
        {
            StoreErrorKind::Corrupt
        }
        ::sled::Error::Io(_) => StoreErrorKind::Io,
        ::sled::Error::Corruption { .. }
        | ::sled::Error::CollectionNotFound(_)
        | ::sled::Error::Unsupported(_)
        | ::sled::Error::ReportableBug(_) => StoreErrorKind::Corrupt,
    };
    let problem =
        if kind == StoreErrorKind::Io { "the state database failed" } else { "the state database is damaged" };
    let hint = if kind == StoreErrorKind::Io { String::new() } else { format!("; {SET_ASIDE}") };
    StoreError::new(kind, format!("{what}: {problem}{hint}")).caused_by(error)
}

/// The file system failed while doing `what`.
pub(super) fn io(what: impl Into<String>, error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Io, what).caused_by(error)
}

/// The same error, of a store that lies in `directory`: where the disk failed, it is told which, how much room it has
/// and what to do, in one sentence that holds the cause as well.
pub(super) fn on_disk(directory: &Path, error: StoreError) -> StoreError {
    if error.kind != StoreErrorKind::Io {
        return error;
    }
    let Some(source) = &error.source else { return error };
    let found = match (source.downcast_ref::<io::Error>(), source.downcast_ref::<::sled::Error>()) {
        (Some(error), _) | (None, Some(::sled::Error::Io(error))) => Some(error),
        _ => None,
    };
    let cause = found.map_or_else(|| source.to_string(), words_of);
    let free = fs4::available_space(directory).ok();
    let room = free.map_or_else(|| "room unknown".to_owned(), |free| format!("{} MiB free", free >> 20));
    let place = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let place = place.display();
    let advice = match found.map(io::Error::kind) {
        Some(io::ErrorKind::FileTooLarge) => format!(
            "the files of {place} may not grow ({room}): lift the limit on the size of files (ulimit -f, LimitFSIZE=), \
             then start again"
        ),
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => full(&place, &room),
        _ if free.is_some_and(|free| free < AS_GOOD_AS_FULL) => full(&place, &room),
        _ => format!(
            "the disk of {place} failed ({room}): see what the system's log says of it, mend it, then start again"
        ),
    };
    let message = format!("{} ({cause}): {advice}; what was acknowledged is kept", error.message);
    StoreError::new(StoreErrorKind::Io, message)
}

fn full(place: &impl fmt::Display, room: &str) -> String {
    format!(
        "the disk of {place} is full ({room}): free some room there, or let the state lie on a larger disk (move the \
         directory and name it in state.path), then start again"
    )
}

/// The system's words. sled hands errors of its own threads on as what they look like to a programmer.
fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    let quoted = text.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"'));
    quoted.map_or_else(|| text.clone(), |(words, _)| words.to_owned())
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

/// A sealed value of `tree` cannot be opened. Its checksum was right, so it is what was written: the key is gone, and
/// the state is not damaged.
pub(super) fn sealed(tree: Tree, error: SealError) -> StoreError {
    let kind = match error {
        SealError::NewerFormat { .. } => StoreErrorKind::NewerFormat,
        SealError::NoKeyFits => StoreErrorKind::KeyMissing,
        SealError::Truncated | SealError::Malformed => StoreErrorKind::Corrupt,
    };
    let message = format!("read a sealed value of the {} tree, keyed by {}", tree.name(), tree.key_kind());
    StoreError::new(kind, message).caused_by(error)
}

/// A full reading found what is wrong.
pub(super) fn unsound(found: &Verified) -> StoreError {
    let damaged: u64 = found.trees.iter().map(|tree| tree.damaged).sum();
    let message = format!(
        "verify the state database: {damaged} values are damaged, {} waiting changes cannot be read, and {} of {} wait; \
         {SET_ASIDE}",
        found.unreadable_changes, found.counted.entries, found.kept.entries
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
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

/// Another process took the state over.
pub(super) fn superseded(what: &str) -> StoreError {
    let message = format!(
        "{what}: another process has taken the state over, so this one may not write any more; never remove the lock of \
         a state that is in use"
    );
    StoreError::new(StoreErrorKind::Superseded, message)
}

/// An earlier failure, `cause`, closed the store. Whoever meets it is told what that was.
pub(super) fn closed(what: &str, cause: Option<&StoreError>) -> StoreError {
    match cause {
        Some(cause) => StoreError::new(cause.kind.clone(), cause.message.clone()),
        None => StoreError::new(StoreErrorKind::Io, format!("{what}: the store was closed by an earlier failure")),
    }
}
