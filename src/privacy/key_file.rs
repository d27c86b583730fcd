//! The key file: one key a line, 64 hexadecimal digits; the last one is the newest. Lines starting with `#` and empty
//! lines are skipped.
//!
//! To rotate, append a key: `openssl rand -hex 32 >> <file>`. Older keys stay as long as something sealed with them
//! may have to be opened.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use super::KeyFileError;

/// One key as it stands in the file. Wiped on drop.
pub(in crate::privacy) type Key = Zeroizing<[u8; 32]>;

/// Where secrets are handed in by a container runtime; their mode is not ours to set (design: §5).
const HANDED_IN: &str = "/run/secrets";

const HEADER: &str = "\
# Keys of sierra-sync. They make the pseudonyms of patrons and seal what is kept of them.
# The last key is the newest: it seals and hashes; all of them open. To rotate, append a line: openssl rand -hex 32
# Keep a copy in a safe place: without it, pseudonyms change and sealed values are lost.
";

/// Reads the keys of `path`, oldest first.
///
/// # Errors
/// When the file cannot be read, is open to others than its owner, or holds anything that is not a key.
pub(in crate::privacy) fn read(path: &Path) -> Result<Vec<Key>, KeyFileError> {
    let failed = |source| KeyFileError::Read { path: path.to_owned(), source };
    // Before it is opened: a pipe that nobody writes to would be waited for, without end.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")));
    }
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    let by_systemd = std::env::var_os("CREDENTIALS_DIRECTORY");
    if mode & 0o077 != 0 && !is_handed_in(path, by_systemd.as_deref()) {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    let text = Zeroizing::new(io::read_to_string(file).map_err(failed)?);
    parse(&text, path)
}

/// Makes `path` with `key` in it, and its directory if need be; neither can be read by others. Never overwrites.
///
/// # Errors
/// When the file exists or cannot be made.
pub(in crate::privacy) fn create(path: &Path, key: &Key) -> Result<(), KeyFileError> {
    let failed = |source| KeyFileError::Create { path: path.to_owned(), source };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    if path.exists() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    // Written aside and moved into place, so that a crash in between leaves no file with half a key.
    let aside = path.with_extension("new");
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(failed)?;
    file.write_all(HEADER.as_bytes()).map_err(failed)?;
    file.write_all(hex(key).as_bytes()).map_err(failed)?;
    file.write_all(b"\n").map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&aside, path).map_err(failed)?;
    // A key that a power failure takes back would leave values that nobody can open.
    File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// `N` bytes from exactly `2 × N` hexadecimal digits.
pub(in crate::privacy) fn bytes_from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn parse(text: &str, path: &Path) -> Result<Vec<Key>, KeyFileError> {
    let mut keys: Vec<Key> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key = bytes_from_hex(line)
            .map(Zeroizing::new)
            .ok_or_else(|| KeyFileError::Malformed { path: path.to_owned(), line: index + 1 })?;
        if keys.contains(&key) {
            return Err(KeyFileError::Repeated { path: path.to_owned(), line: index + 1 });
        }
        keys.push(key);
    }
    if keys.is_empty() { Err(KeyFileError::Empty { path: path.to_owned() }) } else { Ok(keys) }
}

fn hex(key: &Key) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(64));
    for byte in key.iter() {
        for digit in [byte >> 4, byte & 0x0f] {
            text.push(char::from_digit(u32::from(digit), 16).expect("four bits are a hexadecimal digit"));
        }
    }
    text
}

fn is_handed_in(path: &Path, by_systemd: Option<&OsStr>) -> bool {
    let by_systemd = by_systemd.filter(|directory| !directory.is_empty());
    path.starts_with(HANDED_IN) || by_systemd.is_some_and(|directory| path.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Zeroizing::new([byte; 32])
    }

    #[test]
    fn a_new_key_file_is_private_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/keys/patrons.keys");
        create(&path, &key(7)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(read(&path).unwrap(), vec![key(7)]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn an_existing_key_file_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        create(&path, &key(7)).unwrap();
        assert!(matches!(create(&path, &key(8)), Err(KeyFileError::Create { .. })));
        assert_eq!(read(&path).unwrap(), vec![key(7)]);
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        create(&path, &key(7)).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(read(&path), Err(KeyFileError::Exposed { .. })), "{mode:o}");
        }
    }

    #[test]
    fn only_secrets_handed_in_from_outside_may_have_any_mode() {
        let systemd = Some(OsStr::new("/run/credentials/sierra-sync.service"));
        assert!(is_handed_in(Path::new("/run/secrets/patrons"), None));
        assert!(is_handed_in(Path::new("/run/credentials/sierra-sync.service/patrons"), systemd));
        assert!(!is_handed_in(Path::new("/run/secrets-of-others/patrons"), systemd));
        assert!(!is_handed_in(Path::new("/run/credentials/other.service/patrons"), systemd));
        assert!(!is_handed_in(Path::new("state/keys/privacy.keys"), Some(OsStr::new(""))));
    }

    #[test]
    fn anything_that_is_not_a_key_is_named_by_its_line_and_not_shown() {
        let good = "ab".repeat(32);
        let other = "cd".repeat(32);
        let path = Path::new("keys");
        let line = |text: &str| match parse(text, path) {
            Err(KeyFileError::Malformed { line, .. } | KeyFileError::Repeated { line, .. }) => Some(line),
            _ => None,
        };
        assert_eq!(parse(&format!("# comment\n\n{good}\n  {other}  \n"), path).unwrap().len(), 2);
        assert_eq!(line(&format!("{good}\n{}", &good[1..])), Some(2));
        assert_eq!(line(&format!("{good}\n\n{good}")), Some(3));
        assert_eq!(line("secret-canary"), Some(1));
        assert!(!parse("secret-canary", path).unwrap_err().to_string().contains("canary"));
        assert!(matches!(parse("# nothing\n", path), Err(KeyFileError::Empty { .. })));
    }
}
