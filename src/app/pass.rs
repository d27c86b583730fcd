//! `sync`: one pass over every stream, delivered until the sinks are drained.

use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::Refused;
use crate::cli::sync::{StreamName, SyncArgs};
use crate::config::Config;
use crate::record::Stream;
use crate::resilience::quota::Patience;
use crate::sync::engine::{EngineError, SyncOptions};
use crate::sync::report::PassSummary;

use super::alerts;
use super::assembly::{Assembly, Reach, Wishes};
use super::desk::OpenDesk;
use super::{damage, last_status};

/// Runs one pass and drains every sink that is neither paused nor detached. SIGTERM and SIGINT end it early, without
/// a page that would have to be fetched again.
///
/// # Errors
/// When nothing could be done at all; what went wrong with single streams and sinks is in the summary.
pub async fn sync(config: Config, args: &SyncArgs) -> anyhow::Result<PassSummary> {
    let mut synced = sync_once(&config, args).await;
    if let Err(error) = &synced
        && damage::is_damage(error)
        && !args.dry_run
    {
        // What shows only while it is read is begun anew at once: the opening sets it aside, once.
        tracing::error!(event = "state_damaged", "the state is damaged and is begun anew: {error:#}");
        synced = sync_once(&config, args).await;
    }
    synced
}

async fn sync_once(config: &Config, args: &SyncArgs) -> anyhow::Result<PassSummary> {
    let patience = if args.wait { Patience::endless() } else { Patience::default() };
    let reach = if args.dry_run { Reach::Pretend } else { Reach::Everything };
    let wishes = Wishes { patience, reach, begins_anew: !args.dry_run, ..Wishes::usual() };
    let assembly = Arc::new(Assembly::open(config, wishes).await?);
    heed_pauses(&assembly, &args.streams)?;
    keep_status(config, &assembly, args).await;
    let desk = if args.dry_run { None } else { OpenDesk::open(config, &assembly, None) };
    let options =
        SyncOptions { streams: args.streams.iter().map(|name| (*name).into()).collect(), wait_for_quota: args.wait };
    let interrupts = Interrupts::listen();
    assembly.client.await_health_checks(interrupts.cancel.clone());
    let summary = assembly.engine.sync_once(&options, &interrupts.cancel).await;
    drop(interrupts);
    let summary = async {
        let mut summary = summary?;
        close(&assembly, &mut summary).await;
        if !args.dry_run {
            alerts::after_a_pass(config, &assembly, summary.did_its_work()).await;
        }
        assembly.keep_vitals()?;
        summary.set_aside.clone_from(&assembly.set_aside);
        keep_status(config, &assembly, args).await;
        anyhow::Ok(summary)
    };
    let summary = summary.await.inspect_err(|error| assembly.failed_with(error));
    let summary = summary.context(CutShort);
    if let Some(desk) = desk {
        desk.close().await;
    }
    summary
}

/// What was done until the state failed is not known any more: the count of it went with the pass.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the pass was cut short")]
pub struct CutShort;

/// For whoever asks when the state itself cannot tell any more.
async fn keep_status(config: &Config, assembly: &Assembly, args: &SyncArgs) {
    if !args.dry_run
        && let Ok(report) = assembly.status(false).await
    {
        last_status::keep(&config.store.path, &report);
    }
}

/// Says what a person paused, and refuses to read it when it is asked for by name.
fn heed_pauses(assembly: &Assembly, asked: &[StreamName]) -> Result<(), Refused> {
    let asked: Vec<Stream> = asked.iter().map(|name| (*name).into()).collect();
    for stream in assembly.engine.streams() {
        let Some(pause) = assembly.engine.paused(stream) else { continue };
        if asked.contains(&stream) {
            return Err(Refused(EngineError::Paused { stream }.to_string()));
        }
        if asked.is_empty() {
            let (by, reason) = (pause.by.as_deref(), pause.reason.as_deref());
            let sentence = "is paused and left alone; `sierra-sync resume` lets it go on";
            tracing::info!(event = "stream_paused", %stream, since = %pause.since, by, reason, "{stream} {sentence}");
        }
    }
    Ok(())
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

/// Ends a pass early on SIGTERM and SIGINT, as long as it is kept.
pub(super) struct Interrupts {
    /// Cancelled by the first signal.
    pub(super) cancel: CancellationToken,
    listener: tokio::task::JoinHandle<()>,
}

impl Interrupts {
    pub(super) fn listen() -> Self {
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let listener = tokio::spawn(async move {
            asked_to_stop().await;
            stop.cancel();
        });
        Self { cancel, listener }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.listener.abort();
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
