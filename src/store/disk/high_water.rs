//! How many commits were acknowledged and which seq was the last, noted beside the database.
//!
//! sled cuts a damaged tail off and opens as if nothing had been there. This note is written after each fence, so it
//! never counts more than is durable; a database that holds fewer commits lost some, and says nothing itself. When
//! nothing of a database can be read any more, the note still tells above which seq the next one must begin.
//! The note is not synced: after a power failure it may be old, which only makes it lenient.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::envelope;
use super::error;
use crate::sync::{Seq, StoreError};

/// The note's name beside the database.
const NAME: &str = "acknowledged";

/// The note's file, kept open.
#[derive(Debug)]
pub(super) struct HighWater(File);

/// What the note says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Acknowledged {
    /// How many commits were durable.
    pub(super) commits: u64,
    /// The last seq they issued; zero in notes of before this was noted.
    pub(super) last: Seq,
}

impl HighWater {
    /// Opens the note in `directory`, and reads it. A torn or missing one counts as none: it is a help, not a judge.
    pub(super) fn open(directory: &Path) -> Result<(Self, Acknowledged), StoreError> {
        let path = directory.join(NAME);
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let file = file.map_err(|error| error::io(format!("open {}", path.display()), error))?;
        let acknowledged = read(&file);
        Ok((Self(file), acknowledged))
    }

    /// What the note in `directory` says, without making one.
    pub(super) fn look(directory: &Path) -> Acknowledged {
        File::open(directory.join(NAME)).map(|file| read(&file)).unwrap_or_default()
    }

    /// Notes that what `acknowledged` counts is durable and about to be acknowledged.
    pub(super) fn note(&self, acknowledged: Acknowledged) -> Result<(), StoreError> {
        let payload = [acknowledged.commits.to_be_bytes(), acknowledged.last.value().to_be_bytes()].concat();
        let bytes = envelope::wrap(&payload);
        self.0.write_all_at(&bytes, 0).map_err(|error| error::io("note what was acknowledged", error))
    }
}

/// The newer form, 16 bytes, or the older one of the commits alone.
fn read(file: &File) -> Acknowledged {
    let mut bytes = [0; envelope::OVERHEAD + 16];
    let number = |payload: &[u8]| payload.try_into().map(u64::from_be_bytes).unwrap_or_default();
    if file.read_exact_at(&mut bytes, 0).is_ok()
        && let Ok(payload) = envelope::open(&bytes)
        && let Some((commits, last)) = payload.split_at_checked(8)
    {
        return Acknowledged { commits: number(commits), last: Seq::new(number(last)).unwrap_or_default() };
    }
    let mut bytes = [0; envelope::OVERHEAD + 8];
    if file.read_exact_at(&mut bytes, 0).is_ok()
        && let Ok(commits) = envelope::open(&bytes)
    {
        return Acknowledged { commits: number(commits), last: Seq::ZERO };
    }
    Acknowledged::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_reads_back_and_a_torn_one_counts_as_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let (note, before) = HighWater::open(directory.path()).expect("opens");
        assert_eq!(before, Acknowledged::default());
        let noted = |commits, last| Acknowledged { commits, last: Seq::new(last).expect("below the end") };
        note.note(noted(7, 70)).expect("written");
        note.note(noted(300, 3_000)).expect("written");
        assert_eq!(HighWater::open(directory.path()).expect("opens").1, noted(300, 3_000));
        // As it was written before the seq was noted.
        let older = envelope::wrap(&7_u64.to_be_bytes());
        std::fs::write(directory.path().join(NAME), older).expect("written");
        assert_eq!(HighWater::look(directory.path()), noted(7, 0));
        std::fs::write(directory.path().join(NAME), [1, 2, 3]).expect("torn");
        assert_eq!(HighWater::open(directory.path()).expect("opens").1, Acknowledged::default());
    }
}
