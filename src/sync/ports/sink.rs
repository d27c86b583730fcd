//! Where changes go.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::failure::{Classify, Disposition};
use crate::record::Stream;
use crate::sync::{Change, Seq};

/// One destination. A sink never retries: `sync::deliver` owns that.
pub trait Sink: Send {
    /// Returns once the destination holds every change of `batch` durably. May be given a change again after a crash;
    /// [`Change::key`] lets the destination discard the copy. Never reorders one record's changes. On an error any
    /// prefix of the batch may have arrived.
    fn deliver<'a>(&'a mut self, batch: &'a [Change]) -> BoxFuture<'a, Result<(), SinkError>>;

    /// The highest seq that the destination is known to hold: a store whose own seq is lower was restored from a
    /// backup. `None` when the destination cannot tell.
    fn highest_seq(&mut self) -> BoxFuture<'_, Result<Option<Seq>, SinkError>>;

    /// What the destination holds now, and what it lacks of `before`, an earlier answer of its own that was kept: files
    /// may be deleted, cut, or replaced by an older copy behind our back. Looks at the destination itself, so that it
    /// is worth asking again. A destination that cannot tell says nothing, as this does unless it is written anew.
    fn holding<'a>(&'a mut self, before: Option<&'a Held>) -> BoxFuture<'a, Result<Holding, SinkError>> {
        let _ = before;
        Box::pin(ready(Ok(Holding::default())))
    }

    /// Called after each delivery run: publish what is ripe (rotation by size and age).
    fn settle(&mut self) -> BoxFuture<'_, Result<(), SinkError>>;

    /// Called once at the end: publish what is open and release the destination.
    fn close(&mut self) -> BoxFuture<'_, Result<(), SinkError>>;
}

/// How much a destination holds, by stream: what is kept of it on our side and compared later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Changes that it holds or that were taken away on purpose.
    pub changes: BTreeMap<Stream, u64>,
    /// Those of them that were taken away on purpose.
    #[serde(default)]
    pub taken: BTreeMap<Stream, u64>,
    /// What it knows to be gone and has told, by names of its own: no news any more.
    #[serde(default)]
    pub gone: BTreeSet<String>,
}

impl Held {
    /// The same without the streams that are not in `streams`: what a sink no longer takes may go.
    #[must_use]
    pub fn only(mut self, streams: &[Stream]) -> Self {
        self.changes.retain(|stream, _| streams.contains(stream));
        self.taken.retain(|stream, _| streams.contains(stream));
        self
    }
}

/// What a destination says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// What it holds now; `None` when it cannot tell.
    pub held: Option<Held>,
    /// What is gone of what it held before: a sentence's end that names files and amounts, `None` when nothing is.
    pub missing: Option<String>,
}

/// Why a delivery failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    /// What the delivery loop should do: retry later, quarantine `culprit`, or halt this sink.
    pub disposition: Disposition,
    /// What happened and where, as a fragment after "failed to …".
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// The change that the destination refused, when it is known which.
    pub culprit: Option<Seq>,
    /// The error beneath.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Classify for SinkError {
    fn disposition(&self) -> Disposition {
        self.disposition
    }
}
