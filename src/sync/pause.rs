//! What people have paused: streams that are not read, sinks that get nothing. Kept with the state, so that a restart
//! changes nothing about it.
//!
//! The configuration can pause a sink too. That is another matter: what it says holds whatever people say by command.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ports::Snapshot;
use super::report::status::Pause;
use super::{Store, StoreError};
use crate::record::Stream;

/// What can be paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pausable {
    /// A stream: it is not read by itself. What a person asks of it by command is done.
    Stream(Stream),
    /// A sink: what it misses waits in the queue.
    Sink(String),
}

impl std::fmt::Display for Pausable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stream(stream) => write!(out, "stream {stream}"),
            Self::Sink(sink) => write!(out, "sink {sink}"),
        }
    }
}

impl Pausable {
    /// The options that name it on the command line.
    #[must_use]
    pub fn options(&self) -> String {
        match self {
            Self::Stream(stream) => format!("--stream {stream}"),
            Self::Sink(sink) => format!("--sink {sink}"),
        }
    }
}

/// Keeps in `store` that `what` is paused, or is not any more, for the next process; tells whether that is new.
///
/// # Errors
/// On any storage error.
pub fn keep(store: &dyn Store, what: &Pausable, pause: Option<Pause>) -> Result<bool, StoreError> {
    Pauses::keep(store, what, pause)
}

/// Everything that is paused by command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pauses {
    #[serde(default)]
    pub(super) streams: BTreeMap<Stream, Pause>,
    #[serde(default)]
    pub(super) sinks: BTreeMap<String, Pause>,
}

impl Pauses {
    /// What is kept. What cannot be read pauses nothing: who paused it sees that it goes on.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) fn kept(store: &dyn Store) -> Result<Self, StoreError> {
        let bytes = store.snapshot(Snapshot::Pauses)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// Keeps that `what` is paused, or is not any more; tells whether that is new.
    ///
    /// # Errors
    /// On any storage error.
    fn keep(store: &dyn Store, what: &Pausable, pause: Option<Pause>) -> Result<bool, StoreError> {
        let mut pauses = Self::kept(store)?;
        let is_new = match (what, pause) {
            // Whoever was first is remembered.
            (Pausable::Stream(stream), Some(_)) if pauses.streams.contains_key(stream) => false,
            (Pausable::Sink(sink), Some(_)) if pauses.sinks.contains_key(sink) => false,
            (Pausable::Stream(stream), Some(pause)) => pauses.streams.insert(*stream, pause).is_none(),
            (Pausable::Sink(sink), Some(pause)) => pauses.sinks.insert(sink.clone(), pause).is_none(),
            (Pausable::Stream(stream), None) => pauses.streams.remove(stream).is_some(),
            (Pausable::Sink(sink), None) => pauses.sinks.remove(sink).is_some(),
        };
        if is_new {
            let value = serde_json::to_vec(&pauses).expect("names and texts are JSON");
            store.save_snapshot(Snapshot::Pauses, &value)?;
        }
        Ok(is_new)
    }
}
