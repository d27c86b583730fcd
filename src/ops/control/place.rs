//! Where the socket lies: beside the state, or, where that path is too long for a socket, in the runtime directory.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Its name below the state directory.
const NAME: &str = "control.sock";

/// A socket's path may take 107 bytes on Linux (unix(7)).
const MAX_BYTES: usize = 100;

/// Where the holder of `state` answers unless `<state>/holder` says otherwise.
pub(super) fn usual(state: &Path) -> PathBuf {
    state.join(NAME)
}

/// Where to make the socket of `state`; a directory of our own is made for it where need be.
///
/// # Errors
/// When the runtime directory cannot be used.
pub(super) fn to_bind(state: &Path) -> io::Result<PathBuf> {
    let beside = usual(state);
    if beside.as_os_str().len() <= MAX_BYTES {
        return Ok(beside);
    }
    let digest = blake3::hash(std::path::absolute(state)?.as_os_str().as_bytes());
    let short: String = digest.to_hex().chars().take(16).collect();
    let directory = runtime_directory().join(format!("sierra-sync-{short}"));
    match fs::DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_ours(&directory)?,
        made => made?,
    }
    Ok(directory.join(NAME))
}

fn runtime_directory() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("RUNTIME_DIRECTORY").or_else(|| named("XDG_RUNTIME_DIR")).unwrap_or_else(std::env::temp_dir)
}

/// Refuses a directory that somebody else made, or can look into.
fn is_ours(directory: &Path) -> io::Result<()> {
    let (found, us) = (fs::symlink_metadata(directory)?, fs::metadata("/proc/self")?);
    if found.is_dir() && found.uid() == us.uid() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("{} is not a private directory of this user; remove it", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_socket_lies_beside_the_state_unless_the_path_is_too_long() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        assert_eq!(to_bind(&state).expect("short"), state.join("control.sock"));
        let deep = directory.path().join("deep".repeat(40));
        let elsewhere = to_bind(&deep).expect("made");
        assert!(elsewhere.as_os_str().len() <= MAX_BYTES && !elsewhere.starts_with(&deep), "{elsewhere:?}");
        assert_eq!(to_bind(&deep).expect("made before"), elsewhere, "the same state, the same place");
        let parent = elsewhere.parent().expect("it has one");
        fs::set_permissions(parent, fs::Permissions::from_mode(0o777)).expect("ours");
        assert!(to_bind(&deep).is_err(), "others could put a socket of theirs there");
        fs::remove_dir(parent).expect("empty");
    }
}
