//! The fence: what comes after it survives a power failure.
//!
//! On Linux sled's `flush` ends in `sync_file_range`, which syncs neither the file's length nor the disk's own cache;
//! only `fsync` on the file does. So we keep a handle of our own on it.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error;
use super::trees::Trees;
use crate::sync::StoreError;

/// A handle on sled's file, for syncing alone.
#[derive(Debug)]
pub(super) struct Fence {
    file: File,
    raised: AtomicU64,
}

impl Fence {
    /// A fence for the database in `directory`, which must be open.
    pub(super) fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join("db");
        File::open(&path)
            .map(Self::on)
            .map_err(|error| error::io(format!("open {} for syncing", path.display()), error))
    }

    /// A fence that syncs `file`.
    pub(super) fn on(file: File) -> Self {
        Self { file, raised: AtomicU64::new(0) }
    }

    /// Returns once all that was written before is on the disk. Never called again after a failure: the kernel may
    /// have dropped what it could not write, and a second sync would then succeed over a hole.
    pub(super) fn raise(&self, trees: &Trees) -> Result<(), StoreError> {
        trees.flush()?;
        self.file.sync_all().map_err(|error| error::io("sync the state database; check the disk", error))?;
        self.raised.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// How often it was raised.
    pub(super) fn raised(&self) -> u64 {
        self.raised.load(Ordering::SeqCst)
    }
}
