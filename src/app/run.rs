//! `run`: the service. Follows Sierra on schedule and delivers as changes come, until SIGTERM or SIGINT; reads its
//! configuration again on SIGHUP.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Problems, Warning, Written};
use crate::ops::alert::ActiveAlerts;
use crate::ops::{History, OpsServer, StatusSource};
use crate::sync::StoreError;
use crate::telemetry::metric;

use super::alerts;
use super::assembly::{Assembly, Wishes};
use super::chronicle::Chronicle;
use super::desk::{self, OpenDesk};
use super::errands::{Errands, Rest};
use super::observatory::{self, Observatory};
use super::progress::Progress;
use super::{damage, last_status, systemd};

/// A clean stop takes no longer; what is left then is as safe as after a crash, which loses nothing.
const STOPS_WITHIN: Duration = Duration::from_millis(4_500);
/// How long a request under way may hold the state open after that: so many looks, so far apart.
const RELEASE_TRIES: u32 = 100;
const RELEASE_PAUSE: Duration = Duration::from_millis(10);
/// So often it is looked whether a state is free again.
const HELD_PAUSE: Duration = Duration::from_millis(100);
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
    let (config, warnings, written) = load()?;
    tell(&warnings);
    let ground = Ground {
        metrics: recorder(),
        history: observatory::history(&config),
        progress: Arc::new(Progress::new(Chronicle::default())),
        errands: Arc::new(Errands::default()),
    };
    let ended = serve(config, written, load, &mut signals, &ground).await;
    // Whoever still waits for an errand is told that it is left.
    ground.errands.rest(Rest::ForGood).await;
    ground.errands.take_leave().await;
    ended
}

async fn serve(
    mut config: Config,
    mut written: Written,
    load: &LoadConfig,
    signals: &mut Signals,
    ground: &Ground,
) -> anyhow::Result<()> {
    let mut service = Service::start(&config, ground).await?;
    loop {
        systemd::ready();
        tracing::info!(
            event = "service_started",
            "following Sierra; SIGTERM stops, SIGHUP reads the configuration again"
        );
        let why = service.until_told(signals, load, &written).await;
        match why {
            Why::Stop => {
                systemd::stopping();
                tracing::info!(event = "service_stopping", "stopping");
                tokio::select! {
                    stopped = service.stop(Rest::ForGood) => stopped?,
                    () = signals.asked_to_stop() => tracing::warn!(event = "service_stopped", "told twice: stops at once"),
                }
                return Ok(());
            }
            Why::Failed(error) => {
                let error = anyhow::Error::new(error);
                service.assembly.failed_with(&error);
                drop(service.stop(Rest::ForGood).await);
                if !damage::is_damage(&error) {
                    systemd::stopping();
                    return Err(error).context("failed to follow Sierra");
                }
                tracing::error!(event = "state_damaged", "the state is damaged and is begun anew: {error:#}");
                service = Service::start(&config, ground).await?;
            }
            Why::Ended(defect) => {
                drop(service.stop(Rest::ForGood).await);
                systemd::stopping();
                return Err(defect).context("failed to go on");
            }
            Why::Changed(fresh) => {
                systemd::reloading();
                service.stop(Rest::UntilTakenUp).await?;
                let (fresh_config, fresh_written) = *fresh;
                service = match Service::start_again(&fresh_config, ground).await {
                    Ok(started) => {
                        (config, written) = (fresh_config, fresh_written);
                        started
                    }
                    Err(error) => {
                        tracing::error!(
                            event = "reload_failed",
                            "goes on with the configuration it had, since the new one cannot be used: {error:#}"
                        );
                        let started = Service::start_again(&config, ground).await;
                        started.context("failed to go on with the old configuration")?
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
    errands: Arc<Errands>,
}

/// Why a service ends.
enum Why {
    /// A person or systemd wants it to.
    Stop,
    /// The configuration changed.
    Changed(Box<(Config, Written)>),
    /// The store failed.
    Failed(StoreError),
    /// A part of it ended that nobody asked to: whoever started the process starts it anew.
    Ended(anyhow::Error),
}

/// The service as one configuration wants it.
struct Service {
    assembly: Arc<Assembly>,
    observatory: Arc<Observatory>,
    progress: Arc<Progress<Chronicle>>,
    cancel: CancellationToken,
    following: JoinHandle<Result<(), StoreError>>,
    endpoint: JoinHandle<std::io::Result<()>>,
    alerts: JoinHandle<anyhow::Result<()>>,
    desk: Option<OpenDesk>,
    errands: Arc<Errands>,
    /// The state directory.
    state: PathBuf,
}

impl Service {
    /// Starts; a state that turns out to be damaged only when it is read is begun anew, once.
    async fn start(config: &Config, ground: &Ground) -> anyhow::Result<Self> {
        match Self::start_once(config, ground).await {
            Err(error) if damage::is_damage(&error) => {
                tracing::error!(event = "state_damaged", "the state is damaged and is begun anew: {error:#}");
                Self::start_once(config, ground).await
            }
            started => started,
        }
    }

    /// Starts in the place of one that was stopped; a command that has taken the state meanwhile is waited for.
    async fn start_again(config: &Config, ground: &Ground) -> anyhow::Result<Self> {
        let began = Instant::now();
        loop {
            match Self::start(config, ground).await {
                Err(error) if desk::is_held(&error) && began.elapsed() < desk::BACK_WITHIN => {
                    tokio::time::sleep(HELD_PAUSE).await;
                }
                started => return started,
            }
        }
    }

    async fn start_once(config: &Config, ground: &Ground) -> anyhow::Result<Self> {
        // The state first: a second service is told who holds it, not that an address is taken.
        let wishes = Wishes { observer: ground.progress.clone(), begins_anew: true, ..Wishes::usual() };
        let assembly = Arc::new(Assembly::open(config, wishes).await?);
        let active = ActiveAlerts::default();
        let server = OpsServer::bind(&config.ops, false).await?;
        let server = server.with_history(ground.history.clone()).with_alerts(active.clone());
        let observatory = Arc::new(Observatory::over(Arc::clone(&assembly)).await?);
        tracing::info!(event = "ops_listening", address = %server.address(), "dashboard: http://{}/", server.address());
        // Addresses for alerts that cannot be used are told before anything runs.
        drop(alerts::watch(&config.alerts, &assembly).await?);
        let cancel = CancellationToken::new();
        let (supervisor, over, seen) = (assembly.engine.supervisor(), cancel.clone(), Arc::clone(&observatory));
        let metrics = ground.metrics.clone();
        let endpoint = tokio::spawn(async move {
            let serving = || server.serve(seen.clone(), seen.clone(), metrics.clone(), over.clone());
            supervisor.run("ops endpoint", &over, serving).await
        });
        let alerts = tokio::spawn(watch(config, &assembly, &observatory, &ground.progress, &active, &cancel));
        ground.errands.begin(&assembly);
        let desk = OpenDesk::open(config, &assembly, Some(&ground.errands));
        let (follower, stop) = (Arc::clone(&assembly), cancel.clone());
        let following = tokio::spawn(async move { follower.engine.follow(&stop).await });
        let progress = Arc::clone(&ground.progress);
        Ok(Self {
            assembly,
            observatory,
            progress,
            cancel,
            following,
            endpoint,
            alerts,
            desk,
            errands: Arc::clone(&ground.errands),
            state: config.store.path.clone(),
        })
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
                followed = &mut self.following => return match followed {
                    Ok(Err(error)) => Why::Failed(error),
                    followed => ended("what follows Sierra", followed),
                },
                served = &mut self.endpoint => return ended("the ops endpoint", served),
                watched = &mut self.alerts => return ended("what looks for alerts", watched),
                answered = at_desk(&mut self.desk) => return ended("the control socket", answered),
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
        last_status::keep(&self.state, &report);
        if self.progress.goes_on(&report) {
            systemd::alive(&report.message);
        }
    }

    /// Stops everything: what is in flight is committed or given up, sinks publish what they hold open. Errands `rest`.
    ///
    /// # Errors
    /// When the store failed meanwhile.
    async fn stop(self, rest: Rest) -> anyhow::Result<()> {
        self.cancel.cancel();
        let assembly = &self.assembly;
        let errands = self.errands;
        let stopping = async move {
            errands.rest(rest).await;
            if let Some(desk) = self.desk {
                desk.close().await;
            }
            if rest == Rest::ForGood {
                errands.take_leave().await;
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
        put_down(self.endpoint).await;
        put_down(self.alerts).await;
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

/// Looks for what people must be told until `cancel`, again after each panic.
fn watch(
    config: &Config,
    assembly: &Arc<Assembly>,
    observatory: &Arc<Observatory>,
    progress: &Arc<Progress<Chronicle>>,
    active: &ActiveAlerts,
    cancel: &CancellationToken,
) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
    let (settings, active, cancel) = (config.alerts.clone(), active.clone(), cancel.clone());
    let (assembly, observatory, progress) = (Arc::clone(assembly), Arc::clone(observatory), Arc::clone(progress));
    async move {
        let watching = async || {
            let watch = alerts::watch(&settings, &assembly).await?.showing(active.clone());
            let status: Arc<dyn StatusSource> = observatory.clone();
            watch.run(status, |report| progress.goes_on(report), cancel.clone()).await;
            anyhow::Ok(())
        };
        assembly.engine.supervisor().run("alerts", &cancel, watching).await
    }
}

/// Ends a task, unless it has ended and was heard.
async fn put_down<T>(task: JoinHandle<T>) {
    task.abort();
    if !task.is_finished() {
        drop(task.await);
    }
}

/// The end of the desk, if there is one.
async fn at_desk(desk: &mut Option<OpenDesk>) -> Result<Result<(), Infallible>, JoinError> {
    match desk {
        Some(desk) => desk.ended().await,
        None => std::future::pending().await,
    }
}

/// A part of the service has ended while nobody asked it to: a defect in the supervision, which is never a good end, or
/// the service would be left alone with a part that does nothing.
fn ended<E: std::fmt::Display>(part: &str, how: Result<Result<(), E>, JoinError>) -> Why {
    let why = match how {
        Ok(Ok(())) => "nobody asked it to".to_owned(),
        Ok(Err(error)) => format!("{error:#}"),
        Err(error) => error.to_string(),
    };
    Why::Ended(anyhow::anyhow!("{part} ended: {why}; please report this, and start the service again"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::Exit;

    /// systemd starts a service again that fails, and leaves one alone that ends with 0.
    #[tokio::test]
    async fn a_part_that_ends_unasked_is_a_failure_of_the_service() {
        let cut = tokio::spawn(std::future::pending::<Result<(), StoreError>>());
        cut.abort();
        let ends: [Result<Result<(), StoreError>, JoinError>; 2] = [Ok(Ok(())), cut.await];
        for how in ends {
            let Why::Ended(error) = ended("what follows Sierra", how) else { panic!("it passes for a stop") };
            assert!(error.to_string().starts_with("what follows Sierra ended: "), "{error}");
            // Not one of those after which nobody starts it again.
            assert_eq!(Exit::of_error(&error), Exit::Unavailable);
        }
    }

    /// A task that was heard may not be waited for again: the stop after it would panic.
    #[tokio::test]
    async fn a_task_that_was_heard_is_put_down_all_the_same() {
        let mut task = tokio::spawn(async {});
        (&mut task).await.expect("it ends well");
        put_down(task).await;
        put_down(tokio::spawn(std::future::pending::<()>())).await;
    }
}
