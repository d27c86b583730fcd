//! `run`: the service. Follows Sierra on schedule and delivers as changes come, until SIGTERM or SIGINT; reads its
//! configuration again on SIGHUP.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Problems, Warning, Written};
use crate::ops::{History, OpsServer, StatusSource};
use crate::sync::StoreError;
use crate::telemetry::metric;

use super::assembly::{Assembly, Wishes};
use super::chronicle::Chronicle;
use super::desk::OpenDesk;
use super::observatory::Observatory;
use super::progress::Progress;
use super::systemd;

/// A clean stop takes no longer; what is left then is as safe as after a crash, which loses nothing.
const STOPS_WITHIN: Duration = Duration::from_millis(4_500);
/// How long a request under way may hold the state open after that: so many looks, so far apart.
const RELEASE_TRIES: u32 = 100;
const RELEASE_PAUSE: Duration = Duration::from_millis(10);
/// How often breaker, quota and latch are kept, and systemd hears how things stand.
const CHECK_EVERY: Duration = Duration::from_secs(30);

/// Reads the configuration, again and again.
pub type LoadConfig = dyn Fn() -> Result<(Config, Vec<Warning>, Written), Problems> + Send + Sync;

/// Runs the service.
///
/// # Errors
/// When the configuration is wrong, another process holds the state, the ops address cannot be bound, or the store
/// fails.
pub async fn run(load: &LoadConfig) -> anyhow::Result<()> {
    let mut signals = Signals::install().context("failed to listen for signals")?;
    let (mut config, warnings, mut written) = load()?;
    tell(&warnings);
    let ground = Ground {
        metrics: recorder(),
        history: History::default(),
        progress: Arc::new(Progress::new(Chronicle::default())),
    };
    let mut service = Service::start(&config, &ground).await?;
    loop {
        systemd::ready();
        tracing::info!(
            event = "service_started",
            "following Sierra; SIGTERM stops, SIGHUP reads the configuration again"
        );
        let why = service.until_told(&mut signals, load, &written).await;
        match why {
            Why::Stop => {
                systemd::stopping();
                tracing::info!(event = "service_stopping", "stopping");
                tokio::select! {
                    stopped = service.stop() => stopped?,
                    () = signals.asked_to_stop() => tracing::warn!(event = "service_stopped", "told twice: stops at once"),
                }
                return Ok(());
            }
            Why::Failed(error) => {
                systemd::stopping();
                drop(service.stop().await);
                return Err(error).context("failed to follow Sierra");
            }
            Why::Changed(fresh) => {
                systemd::reloading();
                service.stop().await?;
                let (fresh_config, fresh_written) = *fresh;
                service = match Service::start(&fresh_config, &ground).await {
                    Ok(started) => {
                        (config, written) = (fresh_config, fresh_written);
                        started
                    }
                    Err(error) => {
                        tracing::error!(
                            event = "reload_failed",
                            "goes on with the configuration it had, since with the new one it {error:#}"
                        );
                        Service::start(&config, &ground).await.context("failed to go on with the old configuration")?
                    }
                };
            }
        }
    }
}

/// What outlives a change of the configuration.
struct Ground {
    metrics: PrometheusHandle,
    history: History,
    progress: Arc<Progress<Chronicle>>,
}

/// Why a service ends.
enum Why {
    /// A person or systemd wants it to.
    Stop,
    /// The configuration changed.
    Changed(Box<(Config, Written)>),
    /// The store failed.
    Failed(StoreError),
}

/// The service as one configuration wants it.
struct Service {
    assembly: Arc<Assembly>,
    observatory: Arc<Observatory>,
    progress: Arc<Progress<Chronicle>>,
    cancel: CancellationToken,
    following: JoinHandle<Result<(), StoreError>>,
    endpoint: JoinHandle<std::io::Result<()>>,
    desk: Option<OpenDesk>,
}

impl Service {
    async fn start(config: &Config, ground: &Ground) -> anyhow::Result<Self> {
        // The state first: a second service is told who holds it, not that an address is taken.
        let wishes = Wishes { observer: ground.progress.clone(), ..Wishes::usual() };
        let assembly = Arc::new(Assembly::open(config, wishes).await?);
        let server = OpsServer::bind(&config.ops, false).await?.with_history(ground.history.clone());
        let observatory = Arc::new(Observatory::over(Arc::clone(&assembly)).await?);
        tracing::info!(event = "ops_listening", address = %server.address(), "dashboard: http://{}/", server.address());
        let cancel = CancellationToken::new();
        let status: Arc<dyn StatusSource> = observatory.clone();
        let endpoint = tokio::spawn(server.serve(status, ground.metrics.clone(), cancel.clone()));
        let desk = OpenDesk::open(config, &assembly, true);
        let (follower, stop) = (Arc::clone(&assembly), cancel.clone());
        let following = tokio::spawn(async move { follower.engine.follow(&stop).await });
        let progress = Arc::clone(&ground.progress);
        Ok(Self { assembly, observatory, progress, cancel, following, endpoint, desk })
    }

    /// Serves until there is a reason to end.
    async fn until_told(&mut self, signals: &mut Signals, load: &LoadConfig, written: &Written) -> Why {
        let mut checks = interval(systemd::watchdog().map_or(CHECK_EVERY, |within| within / 3).min(CHECK_EVERY));
        loop {
            tokio::select! {
                biased;
                asked = signals.next() => match asked {
                    Asked::Stop => return Why::Stop,
                    Asked::Reload => {
                        if let Some(fresh) = read_again(load, written) {
                            return Why::Changed(fresh);
                        }
                    }
                },
                followed = &mut self.following => return ended(followed),
                _ = checks.tick() => self.check().await,
            }
        }
    }

    /// Keeps what the next process must know, and tells systemd how it goes, if it does.
    async fn check(&self) {
        if let Err(error) = self.assembly.keep_vitals() {
            // Following ends by itself on a store that failed.
            tracing::error!(event = "vitals_not_kept", "failed to {error}");
            return;
        }
        let report = self.observatory.status().await;
        if self.progress.goes_on(&report) {
            systemd::alive(&report.message);
        }
    }

    /// Stops everything: what is in flight is committed or given up, sinks publish what they hold open.
    ///
    /// # Errors
    /// When the store failed meanwhile.
    async fn stop(self) -> anyhow::Result<()> {
        self.cancel.cancel();
        let assembly = &self.assembly;
        let stopping = async move {
            if let Some(desk) = self.desk {
                desk.close().await;
            }
            if !self.following.is_finished()
                && let Ok(Err(error)) = self.following.await
            {
                return Err(error).context("failed to stop in order");
            }
            for (name, error) in assembly.engine.close().await {
                tracing::error!(event = "sink_close_failed", sink = name, hint = error.hint, "failed to {error}");
            }
            assembly.keep_vitals()?;
            Ok(())
        };
        let stopped = timeout(STOPS_WITHIN, stopping).await;
        self.endpoint.abort();
        drop(self.endpoint.await);
        // Whoever opens the state next in this process must find it free: requests under way end first.
        self.observatory.close();
        let mut held = Some(self.assembly);
        for _ in 0..RELEASE_TRIES {
            let Some(assembly) = held.take() else { break };
            if let Err(assembly) = Arc::try_unwrap(assembly) {
                held = Some(assembly);
                tokio::time::sleep(RELEASE_PAUSE).await;
            }
        }
        stopped.unwrap_or_else(|_| {
            tracing::warn!(
                event = "service_stopped",
                "not everything ended in time; the next start goes on from there"
            );
            Ok(())
        })
    }
}

/// A follower that ends without being told to has met a store that failed, or a defect in the supervision.
fn ended(followed: Result<Result<(), StoreError>, tokio::task::JoinError>) -> Why {
    match followed {
        Ok(Err(error)) => Why::Failed(error),
        Ok(Ok(())) | Err(_) => Why::Stop,
    }
}

/// The configuration as it is now, if it is valid and different. Says what it found.
fn read_again(load: &LoadConfig, before: &Written) -> Option<Box<(Config, Written)>> {
    match load() {
        Err(problems) => {
            for problem in problems.iter() {
                let (key, hint) = (problem.key.as_ref().map(ToString::to_string), problem.hint.as_deref());
                let place = problem.place.to_string();
                tracing::error!(event = "config_problem", place, key, hint, "{}", problem.message);
            }
            tracing::error!(event = "reload_refused", "the new configuration is wrong; nothing changed");
            None
        }
        Ok((config, warnings, written)) => {
            tell(&warnings);
            let changes = written.changes_since(before);
            for change in &changes {
                tracing::info!(event = "config_changed", "{change}");
            }
            if changes.is_empty() {
                tracing::info!(event = "config_reloaded", "no key changed; secrets and keys are read again");
            }
            Some(Box::new((config, written)))
        }
    }
}

fn tell(warnings: &[Warning]) {
    for warning in warnings {
        tracing::warn!(event = "config_warning", key = %warning.key, hint = warning.hint, "{warning}");
    }
}

/// The process's recorder of metrics; there can be only one.
pub(super) fn recorder() -> PrometheusHandle {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    if ::metrics::set_global_recorder(recorder).is_ok() {
        metric::describe();
    }
    handle
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Stop,
    Reload,
}

/// The signals that the service heeds.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn install() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }

    async fn asked_to_stop(&mut self) {
        while self.next().await != Asked::Stop {}
    }
}
