//! Whether the state would open: its key, and its database; and whether it was made with the same settings. Nothing of
//! it is changed.

use anyhow::Error;

use super::{ProbeLine, Tell};
use crate::cli::exit::Exit;
use crate::clock::Clock;
use crate::config::Config;
use crate::privacy::{Absent, Keyring};
use crate::record::Stream;
use crate::store::StateLock;
use crate::store::disk::{self, Tried, try_opening};
use crate::sync::StoreError;

/// Looks at the key file, and opens a copy of the database unless a process of ours has it open.
pub(super) fn probe(config: &Config, clock: &dyn Clock, tell: &mut Tell<'_>) {
    tell.line(&key(config));
    let state = &config.store.path;
    let holder = || StateLock::held_by(state).map(|holder| open_elsewhere(&holder));
    let lines = holder().map(|line| vec![line]).unwrap_or_else(|| match try_opening(state, clock.now()) {
        // A copy that was made while a process wrote means nothing, and that process opened the state itself.
        Err(error) => vec![holder().unwrap_or_else(|| shut(error))],
        Ok(tried) => {
            let changed = changed(config, &tried).into_iter().chain(chosen_otherwise(config, &tried));
            let changed: Vec<_> = changed.collect();
            [open(tried)].into_iter().chain(changed).collect()
        }
    });
    lines.iter().for_each(|line| tell.line(line));
}

/// The streams that are read again because the settings that shape their events are not those of the state.
fn changed(config: &Config, tried: &Tried) -> Option<ProbeLine> {
    let Tried::Opened { meanings, .. } = tried else { return None };
    let is_changed = |(stream, meaning): &(Stream, String)| meanings.get(stream).is_some_and(|kept| kept != meaning);
    let streams = config.meanings().into_iter().filter(is_changed).map(|(stream, _)| stream.name());
    let streams = streams.collect::<Vec<_>>().join(", ");
    if streams.is_empty() {
        return None;
    }
    let message = format!(
        "the settings that shape the events of {streams} changed (fields, locations, hash_ignore, [privacy], [marc]): \
         the next run reads and emits all of {streams} again"
    );
    Some(ProbeLine::note("settings", message, "if that is not meant, put them back before it"))
}

/// The sinks that are loaded again because other settings chose what they hold.
fn chosen_otherwise(config: &Config, tried: &Tried) -> Option<ProbeLine> {
    let Tried::Opened { sinks, .. } = tried else { return None };
    let routes = config.sinks.values().map(|sink| &sink.route);
    let changed = routes.filter(|route| sinks.get(&route.name).is_some_and(|note| note.was_told_otherwise(route)));
    let names = changed.map(|route| route.name.as_str()).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        return None;
    }
    let message = format!(
        "the settings that choose the records of {names} changed (locations, suppressed): the next run loads it again, and \
         deletes there what it should not have"
    );
    Some(ProbeLine::note("settings", message, "if that is not meant, put them back before it"))
}

fn key(config: &Config) -> ProbeLine {
    let state = &config.store.path;
    let has_patrons = config.streams.iter().any(|settings| settings.stream == Stream::Patrons);
    let absent = if has_patrons && disk::is_there(state) { Absent::Refuse } else { Absent::Forget };
    match Keyring::of(&config.privacy, state, absent) {
        Ok(_) => ProbeLine::good("key", "the privacy key can be used, or is made with the state"),
        Err(error) => {
            let hint = error.hint();
            let error = Error::new(error);
            let text = format!("failed to {error:#}");
            // The other messages end in what to do.
            let (message, hint) = match (hint, text.rsplit_once("; ")) {
                (None, Some((message, hint))) => (message.to_owned(), Some(hint.to_owned())),
                (hint, _) => (text, hint),
            };
            ProbeLine::bad("key", message, hint, Exit::of_error(&error))
        }
    }
}

fn open_elsewhere(holder: &str) -> ProbeLine {
    ProbeLine::good("database", format!("held by {holder}, which has it open"))
}

fn open(tried: Tried) -> ProbeLine {
    match tried {
        Tried::Absent => ProbeLine::good("database", "there is none yet; the first run makes it"),
        Tried::Opened { .. } => ProbeLine::good("database", "a copy of it opens"),
        Tried::TooLarge { bytes } => {
            let message = format!("not tried, since a copy of its {} MiB would be needed", bytes >> 20);
            ProbeLine::note("database", message, "the next run tells; `sierra-sync queue verify` reads all of it")
        }
    }
}

fn shut(error: StoreError) -> ProbeLine {
    let error = Error::new(error);
    ProbeLine::bad("database", format!("failed to {error:#}"), None, Exit::of_error(&error))
}
