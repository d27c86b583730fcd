//! The directory of the demo: made, claimed, and cleared of what an earlier demo left; nothing else is ever removed.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use fs4::fs_std::FileExt;

use crate::cli::exit::Refused;

/// Says that a directory is a demo's; locked while one runs there.
const MARK: &str = ".demo-of-sierra-sync";

/// The demo's directory, claimed as long as this lives.
pub(super) struct Ground {
    root: PathBuf,
    _claim: File,
}

impl Ground {
    /// Makes `root`, or takes over what an earlier demo left there.
    ///
    /// # Errors
    /// When something else is there, another demo runs there, or it cannot be written.
    pub(super) fn claim(root: &Path) -> anyhow::Result<Self> {
        let failed = || format!("failed to set up {}; run the demo where you may write", root.display());
        let is_new = match fs::DirBuilder::new().mode(0o700).create(root) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error).with_context(failed),
        };
        let mark = root.join(MARK);
        if !is_new && !mark.exists() {
            let sentence = format!(
                "{} exists and no demo made it; move it away, or run the demo in another directory",
                root.display()
            );
            return Err(Refused(sentence).into());
        }
        let claim = OpenOptions::new().create(true).append(true).mode(0o600).open(&mark).with_context(failed)?;
        if !claim.try_lock_exclusive().with_context(failed)? {
            let sentence = format!("another demo runs in {}; wait for its end", root.display());
            return Err(Refused(sentence).into());
        }
        for left in ["state", "ndjson", "marcxml"] {
            match fs::remove_dir_all(root.join(left)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(failed),
                _ => {}
            }
        }
        let root = root.canonicalize().with_context(failed)?;
        Ok(Self { root, _claim: claim })
    }

    /// A path below it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file that only its owner may read, and returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        let written = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }
}
