//! What can still be read of a database that was set aside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::outbox;
use super::quarantine;
use super::squeeze::Squeeze;
use super::trees::Trees;
use super::{error, format};
use crate::privacy::Keyring;
use crate::record::Stream;
use crate::sync::ports::QuarantineEntry;
use crate::sync::{Change, StoreError};

/// Something that was saved from a damaged database.
#[derive(Debug)]
pub enum Salvaged {
    /// A change that was still waiting for some sink.
    Change(Box<Change>),
    /// An entry of the quarantine.
    Quarantined(Box<QuarantineEntry>),
}

/// Reads what is readable of the database in `directory` and gives it to `found`; says how many values were not.
/// Remembered states are not among it: a rebuild asks Sierra for these.
///
/// # Errors
/// When the database does not open at all: then nothing can be saved.
pub fn salvage(directory: &Path, keyring: &Keyring, found: impl FnMut(Salvaged)) -> Result<u64, StoreError> {
    let contained = catch_unwind(AssertUnwindSafe(|| salvage_contained(directory, keyring, found)));
    contained.unwrap_or_else(|_| Err(error::panicked("read a database that was set aside")))
}

fn salvage_contained(directory: &Path, keyring: &Keyring, mut found: impl FnMut(Salvaged)) -> Result<u64, StoreError> {
    let trees = Trees::open(directory)?;
    format::check(&trees)?;
    let squeeze = Squeeze::default();
    let mut unreadable = 0;
    for change in outbox::each_change(&trees, keyring, &squeeze) {
        match change {
            Ok(change) => found(Salvaged::Change(Box::new(change))),
            Err(_) => unreadable += 1,
        }
    }
    for stream in Stream::ALL {
        for entry in quarantine::each(&trees, stream) {
            match entry {
                Ok(entry) => found(Salvaged::Quarantined(Box::new(entry))),
                Err(_) => unreadable += 1,
            }
        }
    }
    Ok(unreadable)
}
