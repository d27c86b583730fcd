//! What is noted about a sink beside its position.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::Stream;
use crate::sync::Seq;
use crate::sync::ports::{Held as Stock, SinkPosition, Snapshot, Store, StoreError, StoreErrorKind};
use crate::sync::report::status::{Gap, SinkState};
use crate::sync::report::summary::ErrorReport;
use crate::sync::settings::RouteSettings;

/// What is kept about a sink beside its position, in [`Snapshot::Sinks`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkNote {
    /// By stream: everything captured before is confirmed.
    #[serde(default)]
    pub published: BTreeMap<Stream, Timestamp>,
    /// What the sink missed when it lost its place.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// What is wrong with it, until a delivery succeeds: a process that ended must not take it along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<SinkTrouble>,
    /// How much it held when it was last asked; `None` when nothing is known, as when a load has just begun.
    #[serde(default)]
    pub held: Option<Stock>,
    /// It once held changes up to here that this store never issued, and a rebuild was begun for that.
    #[serde(default)]
    pub ahead: Option<Seq>,
    /// The streams that it must be loaded with before it holds everything again.
    #[serde(default)]
    pub unloaded: BTreeSet<Stream>,
    /// By stream: the load is with the sink, and `published` counts again, once everything up to here is confirmed.
    #[serde(default)]
    pub loaded_at: BTreeMap<Stream, Seq>,
    /// Which records it was told of, as [`RouteSettings::choice`] gives it; `None` before that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Where its place was fixed when the load that it needs began.
    #[serde(default)]
    pub fixed_at: Seq,
}

/// What is wrong with a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkTrouble {
    /// `retrying` or `open`.
    pub state: SinkState,
    /// Since when, by our own clock.
    pub since: Timestamp,
    /// The last failure; free of private values.
    pub error: ErrorReport,
}

/// A sink's place and what is noted about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkPlace {
    /// Its position, with what the store counts.
    pub position: SinkPosition,
    /// What is noted.
    pub note: SinkNote,
}

impl SinkPlace {
    /// Whether it lacks what only a load can bring.
    #[must_use]
    pub fn needs_reload(&self) -> bool {
        !self.position.attached || !self.note.unloaded.is_empty()
    }
}

impl SinkNote {
    /// Whether the sink was told of other records than `route` chooses.
    #[must_use]
    pub fn was_told_otherwise(&self, route: &RouteSettings) -> bool {
        self.choice.as_ref().is_some_and(|choice| *choice != route.choice())
    }
}

/// The notes of all sinks.
pub(super) fn read(store: &dyn Store) -> Result<BTreeMap<String, SinkNote>, StoreError> {
    store.snapshot(Snapshot::Sinks)?.as_deref().map_or_else(|| Ok(BTreeMap::new()), read_notes)
}

/// The same from the bytes of [`Snapshot::Sinks`].
///
/// # Errors
/// When they are none.
pub fn read_notes(bytes: &[u8]) -> Result<BTreeMap<String, SinkNote>, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, "read what is noted of sinks").caused_by(error))
}

/// A stretch of time that a sink missed, and why.
pub(super) fn gap(from: Timestamp, to: Timestamp, why: &str) -> Gap {
    Gap { from: from.to_string(), to: to.to_string(), attempts: 0, error: Some(why.into()) }
}
