//! sled's snapshots: what it writes at an opening so that the next one need not read its whole file.
//!
//! They are hints and can be made again. Yet sled takes a torn one for corruption, and an opening that is killed, or meets
//! a full disk, leaves a torn one behind under a name that sled reads (`snap.….generating`; 0.34.7, `config.rs` and
//! `pagecache/snapshot.rs`). So what was never finished goes before sled looks, and a finished one that will not do is
//! passed over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "snap.";
const UNFINISHED: &str = ".generating";
/// What a hint that was passed over is called: not with [`PREFIX`].
const PASSED_OVER: &str = "passed-over.";

/// Removes the hints in `database` that were never finished.
pub(super) fn remove_unfinished(database: &Path) -> io::Result<()> {
    hints(database)?
        .into_iter()
        .filter(|(name, _)| name.ends_with(UNFINISHED))
        .try_for_each(|(_, path)| fs::remove_file(path))
}

/// Takes every hint in `database` out of sled's sight; says whether there was one.
pub(super) fn pass_over(database: &Path) -> io::Result<bool> {
    let hints = hints(database)?;
    for (name, path) in &hints {
        fs::rename(path, database.join(format!("{PASSED_OVER}{name}")))?;
    }
    Ok(!hints.is_empty())
}

fn hints(database: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut hints = Vec::new();
    for entry in fs::read_dir(database)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PREFIX) {
            hints.push((name, entry.path()));
        }
    }
    Ok(hints)
}
