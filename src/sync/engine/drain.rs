//! Delivering what waits, and capturing nothing.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::sync_once::flatten;
use crate::sync::StoreError;
use crate::sync::deliver::Ending;

impl Engine {
    /// Delivers until every sink that is neither paused nor detached is drained, or does not take deliveries. Only for
    /// an engine that does not follow: one that does delivers by itself.
    ///
    /// # Errors
    /// Only when the store fails: how sinks fare is in their status.
    pub async fn drain(&self, cancel: &CancellationToken) -> Result<(), StoreError> {
        let (_captured, nothing_comes) = watch::channel(true);
        let cancel = cancel.child_token();
        let mut deliveries = JoinSet::new();
        for lane in self.sinks.values().map(Arc::clone) {
            let (ending, cancel) = (Ending::Drained { captured: nothing_comes.clone() }, cancel.clone());
            deliveries.spawn(async move { lane.run(ending, &cancel).await });
        }
        let mut drained = Ok(());
        while let Some(joined) = deliveries.join_next().await {
            if let Err(error) = flatten(joined) {
                cancel.cancel();
                drained = Err(error);
            }
        }
        drained
    }
}
