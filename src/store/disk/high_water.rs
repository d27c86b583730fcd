//! How many commits were acknowledged, noted beside the database.
//!
//! sled cuts a damaged tail off and opens as if nothing had been there. This note is written after each fence, so it
//! never counts more than is durable; a database that holds fewer commits lost some, and says nothing itself.
//! The note is not synced: after a power failure it may be old, which only makes it lenient.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::envelope;
use super::error;
use crate::sync::StoreError;

/// The note's file, kept open.
#[derive(Debug)]
pub(super) struct HighWater(File);

impl HighWater {
    /// Opens the note in `directory`, and reads it. A torn or missing one counts as none: it is a help, not a judge.
    pub(super) fn open(directory: &Path) -> Result<(Self, u64), StoreError> {
        let path = directory.join("acknowledged");
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let file = file.map_err(|error| error::io(format!("open {}", path.display()), error))?;
        let mut bytes = [0; 8 + envelope::OVERHEAD];
        let noted = file.read_exact_at(&mut bytes, 0).is_ok();
        let commits = envelope::open(&bytes).ok().and_then(|payload| payload.try_into().ok()).map(u64::from_be_bytes);
        Ok((Self(file), commits.filter(|_| noted).unwrap_or(0)))
    }

    /// Notes that `commits` commits are durable and about to be acknowledged.
    pub(super) fn note(&self, commits: u64) -> Result<(), StoreError> {
        let bytes = envelope::wrap(&commits.to_be_bytes());
        self.0.write_all_at(&bytes, 0).map_err(|error| error::io("note what was acknowledged", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_reads_back_and_a_torn_one_counts_as_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let (note, before) = HighWater::open(directory.path()).expect("opens");
        assert_eq!(before, 0);
        note.note(7).expect("written");
        note.note(300).expect("written");
        assert_eq!(HighWater::open(directory.path()).expect("opens").1, 300);
        std::fs::write(directory.path().join("acknowledged"), [1, 2, 3]).expect("torn");
        assert_eq!(HighWater::open(directory.path()).expect("opens").1, 0);
    }
}
