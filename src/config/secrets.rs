//! Where secrets come from: the environment, a file of their own, or systemd's credentials; never the configuration
//! file itself, never a flag.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::document::Value;
use crate::config::kind::FilePath;
use crate::config::problem::Place;
use crate::config::section::{Section, Written};
use crate::secret::Secret;

/// No secret is longer; a larger file is some other file.
const MAX_BYTES: u64 = 64 * 1024;

/// Platforms put secrets here readable by all of the container, and nobody else is in it.
const PLATFORM_DIRECTORY: &str = "/run/secrets";

const IN_FILE: &str = "a secret does not belong in this file";

/// The keys of one secret.
pub(super) struct SecretKeys {
    /// The variable's key: `client_secret`. It is not allowed in the file.
    pub(super) name: &'static str,
    /// The key of the file's path: `client_secret_file`.
    pub(super) file: &'static str,
    /// What the secret is, for the schema.
    pub(super) about: &'static str,
}

/// Reads a secret: environment before file before systemd credential.
pub(super) fn read(section: &mut Section<'_>, keys: &SecretKeys) -> Written<Secret> {
    let file = match section.written(keys.file, &FilePath, keys.about) {
        Written::Good(path) => Some(path),
        Written::Absent => None,
        Written::Refused => return Written::Refused,
    };
    let credentials = section.reading().environment.credentials();
    match of_environment(section, keys) {
        Written::Absent => {}
        Written::Refused => {
            // All problems are told at once: what is wrong with the file would come up next.
            if let Some(Err(refusal)) = file.map(|path| read_file(&path, credentials)) {
                section.refuse(keys.file, refusal.message, refusal.hint);
            }
            return Written::Refused;
        }
        found => return found,
    }
    let credential = credentials.map(|directory| directory.join(section.key(keys.name).to_string()));
    let (path, key) = match (file, credential.filter(|path| path.exists())) {
        (Some(path), _) => (path, keys.file),
        (None, Some(path)) => (path, keys.name),
        (None, None) => return Written::Absent,
    };
    match read_file(&path, credentials) {
        Ok(secret) => Written::Good(secret),
        Err(refusal) => {
            section.refuse(key, refusal.message, refusal.hint);
            Written::Refused
        }
    }
}

/// The secret itself where a variable gives it. In the file or a flag it is refused.
fn of_environment(section: &mut Section<'_>, keys: &SecretKeys) -> Written<Secret> {
    let Some(node) = section.unnamed(keys.name) else { return Written::Absent };
    // Whoever may read the file reads it there, whatever takes its place when it is loaded.
    if section.refuse_replaced(keys.name, IN_FILE, format!("take it out of there: {} overrides it", node.place)) {
        return Written::Refused;
    }
    let variable = section.key(keys.name).variable();
    let (message, hint) = match (&node.place, &node.value) {
        (Place::Environment(_), Value::Untyped(text)) if text.trim().is_empty() => return Written::Absent,
        (Place::Environment(_), Value::Untyped(text)) => return Written::Good(Secret::new(text.clone())),
        (Place::Environment(_), _) => ("a table does not fit here", format!("set {variable} to the secret itself")),
        (Place::Flag, _) => (
            "a secret is never given as a flag, where others can read it in the list of processes",
            format!("use {} or {variable}", keys.file),
        ),
        _ => (IN_FILE, format!("put it into a file of its own, named by {}, or into {variable}", keys.file)),
    };
    section.refuse(keys.name, message, hint);
    Written::Refused
}

struct Refusal {
    message: String,
    hint: String,
}

/// Reads the secret in `path`, without the line break at its end.
///
/// A path that names no file is not shown: people put the secret itself where its file belongs.
fn read_file(path: &Path, credentials: Option<&PathBuf>) -> Result<Secret, Refusal> {
    let unreadable = |error: io::Error| Refusal {
        message: format!("the file it names cannot be read: {}", describe(&error)),
        hint: "give the path of a file that holds the secret and nothing else, mode 0600".to_owned(),
    };
    let shown = path.display();
    // Before it is opened: a pipe that nobody writes to would be waited for, without end.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Refusal { message: format!("{shown} is not a file"), hint: "give the path of a file".to_owned() });
    }
    let file = fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.permissions().mode() & 0o007 != 0 && !is_exempt(path, credentials) {
        let message = format!("{shown} can be read by every user of this machine");
        return Err(Refusal { message, hint: format!("run: chmod 600 {shown}") });
    }
    if metadata.len() > MAX_BYTES {
        let message = format!("{shown} is too large for a secret");
        return Err(Refusal { message, hint: "give a file that holds the secret and nothing else".to_owned() });
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    let secret = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)).unwrap_or(&text);
    if secret.trim().is_empty() {
        return Err(Refusal { message: format!("{shown} is empty"), hint: "write the secret into it".to_owned() });
    }
    if secret.contains(['\n', '\r']) {
        let message = format!("{shown} has more than one line");
        return Err(Refusal { message, hint: "write the secret into it and nothing else".to_owned() });
    }
    Ok(Secret::new(secret.to_owned()))
}

/// Whether `path` lies where platforms put secrets. Links and `..` are resolved first.
fn is_exempt(path: &Path, credentials: Option<&PathBuf>) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let platform = Path::new(PLATFORM_DIRECTORY);
    let directories = [Some(platform), credentials.map(PathBuf::as_path)];
    directories
        .into_iter()
        .flatten()
        .filter_map(|directory| directory.canonicalize().ok())
        .any(|directory| path.starts_with(directory))
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}
