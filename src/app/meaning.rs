//! Settings that change what events say.
//!
//! Sameness would hide such a change: a record read again under new settings looks unchanged, or worse, differs for
//! half of the records. Loading the stream again beside the live one is not built yet, so a change is refused.

use std::collections::BTreeMap;

use crate::cli::exit::Refused;
use crate::config::Config;
use crate::record::Stream;
use crate::sync::Store;
use crate::sync::ports::{Snapshot, StoreError};

/// What is kept: the hash of each stream's settings, as hexadecimal digits.
type Hashes = BTreeMap<Stream, String>;

/// Refuses a configuration whose streams would mean something else than what the state was made with.
///
/// # Errors
/// When a stream's settings changed, and on any storage error.
pub(super) fn unchanged(config: &Config, store: &dyn Store) -> anyhow::Result<()> {
    let kept = kept(store)?;
    let changed: Vec<&str> = config
        .streams
        .iter()
        .map(|settings| settings.stream)
        .filter(|stream| kept.get(stream).is_some_and(|hash| *hash != hash_of(config, *stream)))
        .map(Stream::name)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let sentence = format!(
        "the settings that shape the events of {} (fields, locations, hash_ignore, [privacy], [marc]) changed since \
         the state in {} was made, and loading a stream again beside the live one is not built yet; undo the change, \
         or name a new state.path and new sink paths to load everything afresh",
        changed.join(", "),
        config.store.path.display()
    );
    Err(Refused(sentence).into())
}

/// Keeps what the streams mean now.
///
/// # Errors
/// On any storage error.
pub(super) fn remember(config: &Config, store: &dyn Store) -> anyhow::Result<()> {
    let before = kept(store)?;
    let mut now = before.clone();
    now.extend(config.streams.iter().map(|settings| (settings.stream, hash_of(config, settings.stream))));
    if now != before {
        store.save_snapshot(Snapshot::Settings, &serde_json::to_vec(&now)?)?;
    }
    Ok(())
}

fn kept(store: &dyn Store) -> Result<Hashes, StoreError> {
    let bytes = store.snapshot(Snapshot::Settings)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

fn hash_of(config: &Config, stream: Stream) -> String {
    config.settings_hash(stream).bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
