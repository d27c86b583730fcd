//! Damage that shows only while the store is at work: noted inside the database, so that the next opening knows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::error;
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

/// The mark's name. It lies in the directory of the database and goes wherever that goes.
const MARK: &str = "damaged";
/// A database up to this is read whole before it is opened: a tenth of a second from memory, one from a disk.
const READ_WHOLE: u64 = 128 << 20;
/// What is written to see whether the disk takes anything.
const TRIAL: &str = "trial";

/// Marks `database` as damaged because of `why`. The first mark stays. One that cannot be written is done without: the
/// same damage is met again.
pub(super) fn mark(database: &Path, why: &StoreError) {
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(database.join(MARK));
    if let Ok(mut file) = file {
        drop(file.write_all(why.message.as_bytes()).and_then(|()| file.sync_all()));
    }
}

/// Refuses a database that was marked.
pub(super) fn refuse_marked(database: &Path) -> Result<(), StoreError> {
    match fs::read(database.join(MARK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error::io("read the mark of damage in the state database", error)),
        Ok(why) => Err(StoreError::new(StoreErrorKind::Corrupt, String::from_utf8_lossy(&why).into_owned())),
    }
}

/// Whether the disk beneath `directory` takes so many bytes.
pub(super) fn takes_bytes(directory: &Path, bytes: usize) -> io::Result<()> {
    let path = directory.join(TRIAL);
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&vec![0x55; bytes])?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written.and(removed)
}

/// Whether the disk gives what an opening of `database` reads. sled takes what it cannot read for what was never written,
/// and cuts off what lies behind it: so this is found out before. Of a large database only the beginning of each segment
/// is looked at, which sled reads first; the rest would keep a start waiting.
pub(super) fn gives_what_is_opened(database: &Path, segment_bytes: usize) -> io::Result<()> {
    let mut file = match File::open(database.join("db")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    if length <= READ_WHOLE {
        return io::copy(&mut file, &mut io::sink()).map(drop);
    }
    let mut begin = [0; 4096];
    (0..length).step_by(segment_bytes).try_for_each(|at| file.read_at(&mut begin, at).map(drop))
}

/// Whether the disk gives every byte of the files in `directory`.
pub(super) fn gives_bytes(directory: &Path) -> io::Result<()> {
    fs::read_dir(directory)?.try_for_each(|entry| {
        let path = entry?.path();
        if path.is_file() { io::copy(&mut File::open(path)?, &mut io::sink()).map(drop) } else { Ok(()) }
    })
}
