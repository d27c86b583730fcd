//! Alerts over a running assembly: the book lives in its store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use crate::config::Config;
use crate::ops::alert::{AlertBook, AlertMemory, AlertSettings, Courier, Watch};
use crate::seed::RootSeed;
use crate::sierra::install_crypto;
use crate::sync::Store;
use crate::sync::ports::Snapshot;

use super::assembly::Assembly;

/// A command that ends waits no longer for those who are told.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// A watch over `assembly` that goes on where the last process ended. It does not keep the state open.
///
/// # Errors
/// When an address for alerts cannot be used.
pub(super) async fn watch(settings: &AlertSettings, assembly: &Assembly) -> anyhow::Result<Watch> {
    install_crypto();
    let courier = Courier::new(settings).context("failed to set up [alerts]")?;
    let memory = Arc::new(KeptBook(Arc::downgrade(&assembly.store)));
    let chance = RootSeed::from_system().generator("alerts");
    Ok(Watch::begin(memory, courier, settings.stale_after, chance).await)
}

/// Tells what is to be told when a pass has ended, which may have done its work or not. What fails meanwhile is logged:
/// the pass itself is done.
pub(super) async fn after_a_pass(config: &Config, assembly: &Assembly, did_its_work: bool) {
    let told = async {
        let report = assembly.status(false).await?;
        watch(&config.alerts, assembly).await?.once(&report, did_its_work).await;
        anyhow::Ok(())
    };
    match timeout(TOLD_WITHIN, told).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(event = "alerts_not_told", "failed to look for what is wrong: {error:#}"),
        Err(_) => tracing::warn!(
            event = "alerts_not_told",
            "whoever listens at [alerts] takes too long; the rest is told after the next pass"
        ),
    }
}

/// The book as a value in the store.
struct KeptBook(Weak<dyn Store>);

impl AlertMemory for KeptBook {
    fn recall(&self) -> BoxFuture<'_, AlertBook> {
        Box::pin(async {
            let Some(store) = self.0.upgrade() else { return AlertBook::default() };
            let read = tokio::task::spawn_blocking(move || store.snapshot(Snapshot::Alerts));
            let bytes = read.await.ok().and_then(Result::ok).flatten();
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
        })
    }

    fn keep<'a>(&'a self, book: &'a AlertBook) -> BoxFuture<'a, ()> {
        Box::pin(async {
            let (Some(store), Ok(bytes)) = (self.0.upgrade(), serde_json::to_vec(book)) else { return };
            let write = tokio::task::spawn_blocking(move || store.save_snapshot(Snapshot::Alerts, &bytes));
            if let Ok(Err(error)) = write.await {
                tracing::error!(event = "alerts_not_kept", "failed to {error}");
            }
        })
    }
}
