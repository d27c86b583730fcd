//! From file, environment and flags to a checked [`Config`], or to everything that is wrong with them.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::config::combine;
use crate::config::document::Document;
use crate::config::env::{self, Environment};
use crate::config::kind::IntegerIn;
use crate::config::places;
use crate::config::problem::{Place, Problem, Problems, Warning};
use crate::config::section::Reading;
use crate::config::sections;
use crate::config::settings::Config;
use crate::config::written::Written;
use crate::record::Stream;

/// Where the configuration is looked for when `--config` is not given, in this order.
pub const DEFAULT_FILES: [&str; 2] = ["./sierra-sync.toml", "/etc/sierra-sync/sierra-sync.toml"];

/// Loads the configuration: defaults, then the file, then the environment, then `--set` flags (`key=value` pairs).
///
/// Without `path` the first of [`DEFAULT_FILES`] that exists is read; there may be none if the environment says all,
/// `config_version` included.
///
/// # Errors
/// Every problem at once. Nothing is sent anywhere before a configuration is free of them.
pub fn load(
    path: Option<&Path>,
    environment: &Environment,
    flags: &[(String, String)],
) -> Result<(Config, Vec<Warning>), Problems> {
    load_written(path, environment, flags).map(|(config, warnings, _)| (config, warnings))
}

/// The same with what was written, for telling later what changed.
///
/// # Errors
/// Every problem at once.
pub fn load_written(
    path: Option<&Path>,
    environment: &Environment,
    flags: &[(String, String)],
) -> Result<(Config, Vec<Warning>, Written), Problems> {
    let found = path.map(Path::to_owned).or_else(default_file);
    let (mut document, mut problems) = match &found {
        Some(file) => {
            let text = read_file(file)?;
            Document::parse(file, &text)
        }
        None => (Document::empty(), Vec::new()),
    };
    // What could be read of a broken file would only be reported as missing.
    if !problems.is_empty() {
        return Err(Problems::new(problems).expect("it is not empty"));
    }
    problems.extend(env::overlay_environment(&mut document, environment));
    for (key, value) in flags {
        env::overlay_flag(&mut document, key, value);
    }
    // A variable or two, such as the secret alone, are no configuration: what is missing is the file.
    if found.is_none() && !document.root.contains_key(VERSION_KEY) {
        return Err(no_file());
    }
    let reading = Reading::of(&document, environment);
    let config = read(&reading);
    problems.extend(reading.problems.into_inner());
    match (Problems::new(problems), config) {
        (None, Some(config)) => Ok((config, reading.warnings.into_inner(), Written::of(&document))),
        (Some(problems), _) => Err(problems),
        (None, None) => unreachable!("a section refused its settings without saying why"),
    }
}

/// Reads every section. `None` only after a problem.
pub(super) fn read(reading: &Reading<'_>) -> Option<Config> {
    let mut root = reading.root();
    root.required(VERSION_KEY, &VERSION, "The version of this file's language.");
    let sierra = sections::sierra::read(&mut root);
    let privacy = sections::privacy::read(&mut root);
    let store = sections::state::read(&mut root, privacy.retention);
    let streams = sections::streams::read(&mut root);
    let quota = sections::resilience::read_quota(&mut root, &streams);
    let retry = sections::resilience::read_retry(&mut root, sierra.request_timeout);
    let breaker = sections::resilience::read_breaker(&mut root);
    let marc = sections::marc::read(&mut root);
    let on: Vec<Stream> = streams.iter().map(|settings| settings.stream).collect();
    let sinks = sections::sinks::read(&mut root, &on);
    let ops = sections::ops::read(&mut root);
    let alerts = sections::ops::read_alerts(&mut root);
    root.finish();
    combine::check(reading, &retry, &breaker, &quota);
    places::check(reading, &store, &sinks);
    Some(Config { sierra: sierra.settings?, store, streams, quota, retry, breaker, privacy, marc, sinks, ops, alerts })
}

/// The key that every configuration has.
const VERSION_KEY: &str = "config_version";

/// The versions of the file's language that are understood (A17).
const VERSION: IntegerIn = IntegerIn(1..=1);

/// No configuration is larger; a larger file is some other file.
const MAX_BYTES: u64 = 1024 * 1024;

fn default_file() -> Option<PathBuf> {
    DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists())
}

fn no_file() -> Problems {
    Problems::one(Problem {
        place: Place::Missing { path: None },
        key: None,
        message: format!("there is no {} and no {}", DEFAULT_FILES[0], DEFAULT_FILES[1]),
        hint: Some("run `sierra-sync init` to write one, or name one with --config".to_owned()),
    })
}

fn read_file(path: &Path) -> Result<String, Problems> {
    let unreadable = |message: String| {
        let place = Place::Missing { path: Some(path.to_owned()) };
        let hint = Some("name the file with --config, or run `sierra-sync init` to write one".to_owned());
        Problems::one(Problem { place, key: None, message, hint })
    };
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| match error.kind() {
        ErrorKind::NotFound => unreadable("there is no such file".to_owned()),
        ErrorKind::InvalidData => unreadable("is not UTF-8 text".to_owned()),
        _ => unreadable(format!("cannot be read: {error}")),
    })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unreadable("is larger than 1 MiB and no configuration".to_owned()));
    }
    Ok(text)
}
