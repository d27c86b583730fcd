//! `demo`: the main job with nothing to set up, against the bundled simulator on loopback.

mod copy;
mod ground;
mod play;
mod teller;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Environment};
use crate::ops::OpsServer;
use crate::seed::RootSeed;
use crate::simulator::{Scenario, Server, SharedSimulator};

use super::assembly::{Assembly, Wishes};
use super::desk::OpenDesk;
use super::errands::{Errands, Rest};
use super::observatory::Observatory;
use super::run;
use ground::Ground;
use play::Play;
use teller::Teller;

/// Where the demo writes.
const DIRECTORY: &str = "sierra-sync-demo";

/// What is asked of a demo.
#[derive(Debug, Clone, Copy)]
pub struct DemoPlan {
    /// Total wall time: load, changes, drain and comparison included.
    pub lasts: Duration,
    /// Live bibs at the start; the scenario's 2,000 if absent. Items are one and a half times as many.
    pub bibs: Option<usize>,
    /// The number from which the library and its life follow.
    pub seed: u64,
}

/// What came of a demo.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Whether both outputs agree with the library, and a script played to its end showed breaker and queue at work.
    pub ok: bool,
    /// Live bibs and items of the library at the end.
    pub live: usize,
    /// Deleted ones.
    pub deleted: usize,
    /// Records compared, once for each output.
    pub compared: usize,
    /// Differences found.
    pub differences: usize,
    /// The first of them, as sentences.
    pub examples: Vec<String>,
    /// Steps of the scenario that were played.
    pub steps: usize,
    /// Steps that there was no time for.
    pub steps_left: usize,
    /// Requests that the simulator answered, or did not.
    pub requests: u64,
    /// The most MARCXML entries that waited in the durable queue while the sink was paused.
    pub most_queued: u64,
    /// Whether the breaker opened.
    pub breaker_opened: bool,
    /// Wall time in seconds.
    pub elapsed_seconds: f64,
}

/// Runs the demo, telling of it through `say`.
///
/// # Errors
/// When it cannot be set up, or the store fails. Differences are in the report.
pub async fn demo(plan: &DemoPlan, say: Arc<dyn Fn(&str) + Send + Sync>) -> anyhow::Result<DemoReport> {
    let started = Instant::now();
    let ground = Ground::claim(Path::new(DIRECTORY))?;
    let (simulator, script, server) = start_simulator(plan).await?;
    let config = configure(&ground, &simulator, &server)?;
    let usual = Wishes::usual();
    let teller = Arc::new(Teller::new(Arc::clone(&say), Arc::clone(&usual.chronicle)));
    let wishes =
        Wishes { observer: teller.clone(), breaker_observer: teller.clone(), seed: RootSeed::new(plan.seed), ..usual };
    let assembly = Arc::new(Assembly::open(&config, wishes).await?);
    let errands = Arc::new(Errands::default());
    errands.begin(&assembly);
    let desk = OpenDesk::open(&config, &assembly, Some(&errands));
    let shutdown = CancellationToken::new();
    let dashboard = serve_dashboard(&config, &assembly, &shutdown, &*say).await?;
    let play = Play {
        assembly: &assembly,
        simulator: &simulator,
        say: &*say,
        breaker_opened: &teller.breaker_opened,
        ends: started + plan.lasts,
    };
    let played = play.run(script).await?;
    if let Some((name, error)) = assembly.engine.close().await.into_iter().next() {
        anyhow::bail!("failed to close sink {name}: {error}");
    }
    say("Comparing what was written with what the library holds …");
    let verdict = simulator
        .with(|simulator| verify::compare(&simulator.world, &ground.path("ndjson"), &ground.path("marcxml")))?;
    shutdown.cancel();
    dashboard.await.context("failed to stop the dashboard")?.context("failed to serve the dashboard")?;
    let requests = simulator.with(|simulator| simulator.journal.total());
    server.stop().await;
    assembly.keep_vitals()?;
    errands.rest(Rest::ForGood).await;
    if let Some(desk) = desk {
        desk.close().await;
    }
    errands.take_leave().await;
    // A script that was played to its end without these two has not shown what it is for.
    let was_shown = played.steps_left > 0 || (played.breaker_opened && played.most_queued > 0);
    Ok(DemoReport {
        schema: 1,
        ok: verdict.agrees() && was_shown,
        live: verdict.live,
        deleted: verdict.deleted,
        compared: verdict.compared,
        differences: verdict.count,
        examples: verdict.differences,
        steps: played.steps,
        steps_left: played.steps_left,
        requests,
        most_queued: played.most_queued,
        breaker_opened: played.breaker_opened,
        elapsed_seconds: started.elapsed().as_secs_f64(),
    })
}

async fn start_simulator(plan: &DemoPlan) -> anyhow::Result<(SharedSimulator, play::Steps, Server)> {
    let mut scenario = Scenario::find("demo").context("failed to prepare the demo")?;
    if let Some(bibs) = plan.bibs {
        scenario.library.bibs = Some(bibs);
        scenario.library.items = Some(bibs + bibs / 2);
    }
    let started = scenario.start(RootSeed::new(plan.seed), SystemClock.now());
    let (simulator, script) = started.context("failed to prepare the demo")?;
    let steps = play::Steps { outage: play::outage_of(&scenario.step), script, count: scenario.step.len() };
    let simulator = SharedSimulator::new(simulator, Arc::new(SystemClock));
    let server = Server::start(simulator.clone(), ([127, 0, 0, 1], 0).into()).await;
    Ok((simulator, steps, server.context("failed to start the simulator on loopback")?))
}

/// Writes the configuration and reads it the way any other is read.
fn configure(ground: &Ground, simulator: &SharedSimulator, server: &Server) -> anyhow::Result<Config> {
    let (key, secret) = simulator.with(|simulator| (simulator.access.key.clone(), simulator.access.secret.clone()));
    let secret_file = ground.write("client_secret", &secret)?;
    let mut text = include_str!("sierra-sync.toml")
        .replace("@base_url@", &server.base_url())
        .replace("@client_key@", &key)
        .replace("@secret_file@", &quoted(&secret_file));
    for name in ["state", "ndjson", "marcxml"] {
        text = text.replace(&format!("@{name}@"), &quoted(&ground.path(name)));
    }
    let file = ground.write("sierra-sync.toml", &text)?;
    let (config, _) =
        config::load(Some(&file), &Environment::default(), &[]).context("failed to configure the demo")?;
    Ok(config)
}

/// A path inside a basic TOML string.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"")
}

async fn serve_dashboard(
    config: &Config,
    assembly: &Arc<Assembly>,
    shutdown: &CancellationToken,
    say: &(dyn Fn(&str) + Send + Sync),
) -> anyhow::Result<tokio::task::JoinHandle<std::io::Result<()>>> {
    let metrics = run::recorder();
    let server = OpsServer::bind(&config.ops, true).await?;
    say(&format!("Dashboard: http://{}/", server.address()));
    let observatory = Observatory::over(Arc::clone(assembly)).await?;
    let observatory = Arc::new(observatory);
    let shutdown = shutdown.clone();
    Ok(tokio::spawn(async move { server.serve(observatory.clone(), observatory, metrics, shutdown).await }))
}
