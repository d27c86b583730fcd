//! Overrides from the environment and from `--set` flags, and where secrets may come from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::document::{Document, Table, Value};
use crate::config::path::KeyPath;
use crate::config::problem::{Place, Problem};
use crate::config::sections::privacy::PATRON_FIELDS;

/// Variables that begin so are settings: `SIERRA_SYNC__SINKS__ARCHIVE__PATH` is `sinks.archive.path`.
pub(super) const PREFIX: &str = "SIERRA_SYNC__";

/// What the configuration may take from the process's environment. An argument, so that tests need no process of
/// their own.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    credentials: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect()
    }

    /// systemd's directory of credentials, where there is one.
    pub(super) fn credentials(&self) -> Option<&PathBuf> {
        self.credentials.as_ref()
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            let (name, value) = (name.into(), value.into());
            if name == "CREDENTIALS_DIRECTORY" {
                environment.credentials = Some(PathBuf::from(value));
            } else if name.starts_with(PREFIX) {
                environment.variables.insert(name, value);
            }
        }
        environment
    }
}

impl std::fmt::Debug for Environment {
    /// Names alone: values may be secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Environment").field("variables", &self.variables.keys()).finish_non_exhaustive()
    }
}

/// Lays the environment over the document.
pub(super) fn overlay_environment(document: &mut Document, environment: &Environment) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (variable, value) in &environment.variables {
        let place = Place::Environment(variable.clone());
        let mut problem = |message: &str| {
            problems.push(Problem { place: place.clone(), key: None, message: message.into(), hint: None })
        };
        let segments: Vec<&str> = variable.strip_prefix(PREFIX).unwrap_or_default().split("__").collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            problem("names no key; keys are joined by two underscores, as in SIERRA_SYNC__SIERRA__BASE_URL");
            continue;
        }
        let Some(text) = value.to_str() else {
            problem("is not UTF-8");
            continue;
        };
        let path = key_path(document, &segments);
        document.set(&path, &place, read(text, &place));
    }
    problems
}

/// Lays one `--set key=value` over the document.
pub(super) fn overlay_flag(document: &mut Document, key: &str, text: &str) {
    let place = Place::Flag;
    document.set(&KeyPath::dotted(key), &place, read(text, &place));
}

/// An inline table is read as one; all else waits for the type of its key.
fn read(text: &str, place: &Place) -> Value {
    let table = text.trim_start().starts_with('{').then(|| Value::from_override(text, place)).flatten();
    table.unwrap_or_else(|| Value::Untyped(text.to_owned()))
}

/// Variables are written in capitals, keys are not: take the spelling of the file, else that of Sierra's patron
/// fields, else small letters.
fn key_path(document: &Document, segments: &[&str]) -> KeyPath {
    let mut path = KeyPath::root();
    let mut table: Option<&Table> = Some(&document.root);
    for segment in segments {
        let written = table.and_then(|table| table.keys().find(|key| key.eq_ignore_ascii_case(segment)));
        let known = || PATRON_FIELDS.iter().find(|field| field.eq_ignore_ascii_case(segment));
        let key = match written {
            Some(key) => key.clone(),
            None if path.fits("privacy.patrons.fields") => {
                known().map_or_else(|| segment.to_lowercase(), |field| (*field).to_owned())
            }
            None => segment.to_lowercase(),
        };
        table = match table.and_then(|table| table.get(&key)).map(|node| &node.value) {
            Some(Value::Table(inner)) => Some(inner),
            _ => None,
        };
        path = path.child(&key);
    }
    path
}
