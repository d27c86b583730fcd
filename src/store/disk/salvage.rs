//! What can still be read of a database that was set aside.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::chunks;
use super::head::{self, Head};
use super::outbox;
use super::quarantine;
use super::squeeze::Squeeze;
use super::trees::{Tree, Trees};
use super::{error, format};
use crate::privacy::Keyring;
use crate::record::Stream;
use crate::sync::ports::{QuarantineEntry, Snapshot, StoreErrorKind};
use crate::sync::{Change, Seq, StoreError};

/// Something that was saved from a damaged database.
#[derive(Debug)]
pub enum Salvaged {
    /// A change that was still waiting for some sink.
    Change(Box<Change>),
    /// An entry of the quarantine.
    Quarantined(Box<QuarantineEntry>),
    /// A snapshot, by its name.
    Snapshot(Snapshot, Vec<u8>),
}

/// What a salvage came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Salvage {
    /// Values that could not be read. What lies behind a damaged page is not counted: nobody knows how much that is.
    pub unreadable: u64,
    /// The last seq that the database issued, as far as it still tells.
    pub last: Seq,
}

/// Reads what is readable of the database in `directory` and gives it to `found`. Remembered states are not among it: a
/// rebuild asks Sierra for these.
///
/// # Errors
/// When the database does not open at all: then nothing can be saved.
pub fn salvage(directory: &Path, keyring: &Keyring, mut found: impl FnMut(Salvaged)) -> Result<Salvage, StoreError> {
    let open_contained = |directory: &Path| {
        let opened = catch_unwind(AssertUnwindSafe(|| open(directory)));
        opened.unwrap_or_else(|_| Err(error::panicked("read a database that was set aside")))
    };
    let copy = directory.with_extension("copy");
    let trees = match open_contained(directory) {
        // A store that this process closed after a failure keeps its files locked until the process ends.
        Err(error) if matches!(error.kind, StoreErrorKind::Held { .. }) => {
            copy_files(directory, &copy).map_err(|error| error::io("copy a database that was set aside", error))?;
            open_contained(&copy)
        }
        opened => opened,
    };
    let salvage = trees.map(|trees| all_of(&trees, keyring, &mut found));
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|error| error::io(format!("remove {}", copy.display()), error))?;
    }
    salvage
}

fn all_of(trees: &Trees, keyring: &Keyring, found: &mut impl FnMut(Salvaged)) -> Salvage {
    let mut salvage = Salvage::default();
    // Each part for itself: sled may panic over one tree and read the next one well.
    let mut part = |read: &mut dyn FnMut(&mut Salvage)| {
        if catch_unwind(AssertUnwindSafe(|| read(&mut salvage))).is_err() {
            salvage.unreadable += 1;
        }
    };
    part(&mut |salvage| {
        let head = trees.get(Tree::Meta, head::KEY).ok().flatten().and_then(|row| Head::decode(&row).ok());
        salvage.last = head.map_or(Seq::ZERO, |head| head.order.last);
    });
    part(&mut |salvage| {
        for change in outbox::each_change(trees, keyring, &Squeeze::default()) {
            match change {
                Ok(change) => {
                    salvage.last = salvage.last.max(change.seq);
                    found(Salvaged::Change(Box::new(change)));
                }
                Err(_) => salvage.unreadable += 1,
            }
        }
    });
    for stream in Stream::ALL {
        part(&mut |salvage| {
            for entry in quarantine::each(trees, stream) {
                match entry {
                    Ok(entry) => found(Salvaged::Quarantined(Box::new(entry))),
                    Err(_) => salvage.unreadable += 1,
                }
            }
        });
    }
    for name in Snapshot::ALL {
        part(&mut |salvage| match chunks::get(trees, Tree::Snapshots, name.name().as_bytes()) {
            Ok(Some(bytes)) => found(Salvaged::Snapshot(name, bytes)),
            Ok(None) => {}
            Err(_) => salvage.unreadable += 1,
        });
    }
    salvage
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    fs::read_dir(from)?.try_for_each(|entry| {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_file() { fs::copy(&path, to.join(name)).map(drop) } else { Ok(()) }
    })
}

fn open(directory: &Path) -> Result<Trees, StoreError> {
    let trees = Trees::open(directory)?;
    match format::check(&trees) {
        Err(error) if error.kind == StoreErrorKind::NewerFormat => Err(error),
        // One that does not say what it is was ours all the same.
        _ => Ok(trees),
    }
}
