//! Delivering what waits, and capturing nothing.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::sync_once::{Stop, joined};
use crate::sync::{StoreError, signal};

impl Engine {
    /// Delivers until every sink that is neither paused nor detached is drained, or does not take deliveries. Only for
    /// an engine that does not follow: one that does delivers by itself.
    ///
    /// # Errors
    /// Only when the store fails: how sinks fare is in their status.
    pub async fn drain(&self, cancel: &CancellationToken) -> Result<(), StoreError> {
        let stop = Stop::on(cancel);
        let (_captured, nothing_comes) = signal::channel(true);
        let mut deliveries = JoinSet::new();
        for lane in self.sinks.values().map(Arc::clone) {
            let ending = stop.ending(true, &nothing_comes);
            deliveries.spawn(async move { lane.run(ending).await });
        }
        joined(&mut deliveries, &stop).await
    }
}
