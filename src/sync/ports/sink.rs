//! Where changes go.

use futures_util::future::BoxFuture;

use crate::failure::{Classify, Disposition};
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

    /// Called after each delivery run: publish what is ripe (rotation by size and age).
    fn settle(&mut self) -> BoxFuture<'_, Result<(), SinkError>>;

    /// Called once at the end: publish what is open and release the destination.
    fn close(&mut self) -> BoxFuture<'_, Result<(), SinkError>>;
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
