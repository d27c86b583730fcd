//! `sync`: one pass over every stream, delivered until the sinks are drained.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::cli::sync::SyncArgs;
use crate::config::Config;
use crate::resilience::quota::Patience;
use crate::sync::engine::SyncOptions;
use crate::sync::report::PassSummary;

use super::assembly::{Assembly, Reach, Wishes};
use super::desk::OpenDesk;

/// Runs one pass and drains every sink that is neither paused nor detached. SIGTERM and SIGINT end it early, without
/// a page that would have to be fetched again.
///
/// # Errors
/// When nothing could be done at all; what went wrong with single streams and sinks is in the summary.
pub async fn sync(config: Config, args: &SyncArgs) -> anyhow::Result<PassSummary> {
    let patience = if args.wait { Patience::endless() } else { Patience::default() };
    let reach = if args.dry_run { Reach::Pretend } else { Reach::Everything };
    let assembly = Arc::new(Assembly::open(&config, Wishes { patience, reach, ..Wishes::usual() }).await?);
    let desk = if args.dry_run { None } else { OpenDesk::open(&config, &assembly, false) };
    let options =
        SyncOptions { streams: args.streams.iter().map(|name| (*name).into()).collect(), wait_for_quota: args.wait };
    let cancel = CancellationToken::new();
    assembly.client.await_health_checks(cancel.clone());
    let stop = cancel.clone();
    let listener = tokio::spawn(async move {
        asked_to_stop().await;
        stop.cancel();
    });
    let summary = assembly.engine.sync_once(&options, &cancel).await;
    listener.abort();
    let mut summary = summary?;
    close(&assembly, &mut summary).await;
    assembly.keep_vitals()?;
    if let Some(desk) = desk {
        desk.close().await;
    }
    Ok(summary)
}

/// Closes the sinks; one that fails is told in `summary`.
pub(super) async fn close(assembly: &Assembly, summary: &mut PassSummary) {
    for (name, error) in assembly.engine.close().await {
        tracing::error!(event = "sink_close_failed", sink = name, hint = error.hint, "failed to {error}");
        summary.ok = false;
        if summary.exit == 0 || summary.exit == 3 || summary.exit == 75 {
            summary.exit = 69;
        }
    }
}

/// Waits for SIGTERM or SIGINT. A handler that cannot be installed never answers: the signal then ends the process,
/// which is safe at any moment.
pub(super) async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
