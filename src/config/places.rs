//! Directories that must not be, or lie in, one another: two writers in one place spoil what each takes for its own.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::config::path::KeyPath;
use crate::config::section::Reading;
use crate::config::settings::SinkConfig;
use crate::record::Stream;
use crate::sink::SinkSettings;
use crate::store::StoreSettings;

/// Checks the directories of the sinks against each other and against that of the state.
pub(super) fn check(reading: &Reading<'_>, store: &StoreSettings, sinks: &BTreeMap<String, SinkConfig>) {
    let state = (KeyPath::dotted("state.path"), place_of(&store.path));
    let files = sinks.iter().filter_map(|(name, sink)| match &sink.sink {
        SinkSettings::File(file) => Some((KeyPath::dotted("sinks").child(name).child("path"), place_of(&file.path))),
        SinkSettings::Stdout => None,
    });
    // Where a path was refused its default stands in, and comparing that would only be noise.
    let files: Vec<(KeyPath, PathBuf)> = files.filter(|(key, _)| !reading.is_refused(key)).collect();
    let hint = "give it a directory of its own";
    for (index, (key, place)) in files.iter().enumerate() {
        if !reading.is_refused(&state.0) && place.starts_with(&state.1) {
            let how = if *place == state.1 { "is the same directory as" } else { "lies inside" };
            reading.refuse(key, format!("{how} {}, where nobody else may write", state.0), hint);
            continue;
        }
        let clash = files.iter().enumerate().find_map(|(other, (other_key, other_place))| {
            if other < index && other_place == place {
                return Some(format!("is the same directory as {other_key}"));
            }
            let holds = |stream: &Stream| other != index && place.starts_with(other_place.join(stream.name()));
            let stream = Stream::ALL.into_iter().find(holds)?;
            Some(format!("lies inside the folder that {other_key} uses for {stream}"))
        });
        if let Some(message) = clash {
            reading.refuse(key, message, hint);
        }
    }
    let directories = sinks.iter().filter_map(|(name, sink)| match &sink.sink {
        SinkSettings::File(file) => Some((KeyPath::dotted("sinks").child(name).child("path"), file.path.clone())),
        SinkSettings::Stdout => None,
    });
    for (key, path) in directories.chain([(state.0.clone(), store.path.clone())]) {
        if let Some(message) = in_the_way(&path).filter(|_| !reading.is_refused(&key)) {
            reading.refuse(&key, message, "name a directory, or one that is to be made");
        }
    }
}

/// What stands at `path` and neither is a directory nor can become one.
fn in_the_way(path: &Path) -> Option<String> {
    let shown = path.display();
    match (path.metadata(), path.read_link()) {
        (Ok(found), _) if !found.is_dir() => Some(format!("{shown} is there and is no directory")),
        (Err(error), Ok(target)) if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("{shown} is a link to {}, which is not there", target.display()))
        }
        _ => None,
    }
}

/// The directory that `path` names, however it is written: absolute, without `.` and `..`, and with the links of the
/// part that exists followed.
fn place_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    real(&plain(&absolute), 0)
}

/// Links followed by hand at most; as many as the system follows.
const LINKS: u32 = 40;

/// `plain` with the links of the part that exists followed. A link counts as its target also where that is not there
/// yet: the first of two sinks would make it.
fn real(plain: &Path, followed: u32) -> PathBuf {
    for ancestor in plain.ancestors() {
        let rest = plain.strip_prefix(ancestor).unwrap_or(Path::new(""));
        // Joining nothing leaves a separator behind, which comparing by components does not see.
        if let Ok(real) = ancestor.canonicalize() {
            return real.join(rest);
        }
        if let (Ok(target), Some(parent)) = (ancestor.read_link(), ancestor.parent())
            && followed < LINKS
        {
            return real(&self::plain(&parent.join(target).join(rest)), followed + 1);
        }
    }
    plain.to_owned()
}

/// Without `.` and `..`.
fn plain(absolute: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
