//! `sierra-sync simulate`: the Sierra look-alike on a port, for trying settings without a Sierra.

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;

use crate::cli::exit::NotListening;
use crate::clock::SharedClock;
use crate::seed::RootSeed;
use crate::simulator::{
    Counting, Dialect, Kind, Life, Progress, RateLimit, Reset, RetryAfter, Scenario, Script, Server, SharedSimulator,
};

/// How often the script of a scenario is asked whether its next step is due.
const SCRIPT_BEAT: Duration = Duration::from_millis(200);

/// The options of `simulate`.
#[derive(Debug, Clone, clap::Args)]
pub struct SimulateArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The number from which the library and all chance follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Live bibs at the start [default: the scenario's, else 2000]
    #[arg(long, value_name = "N")]
    pub bibs: Option<usize>,
    /// Live items at the start [default: the scenario's, else 3000]
    #[arg(long, value_name = "N")]
    pub items: Option<usize>,
    /// Live patrons at the start [default: the scenario's, else 200]
    #[arg(long, value_name = "N")]
    pub patrons: Option<usize>,
    /// A built-in scenario (demo, night, outage, quiet, storm) or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "quiet")]
    pub scenario: String,
    /// The only key that is let in
    #[arg(long, value_name = "KEY", default_value = "simulator-key")]
    pub client_key: String,
    /// Its secret; it opens nothing but this simulator
    #[arg(long, value_name = "SECRET", default_value = "simulator-secret")]
    pub client_secret: String,
    /// The library's time zone, an IANA name [default: the scenario's, else UTC]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// Grant so many calls in so many seconds, such as 100/60
    #[arg(long, value_name = "CALLS/SECONDS", value_parser = rate)]
    pub rate_limit: Option<(u32, u32)>,
    /// How the grant is counted: fixed_window, moving_window, token_bucket
    #[arg(long, value_name = "WAY", value_parser = named::<Counting>, requires = "rate_limit")]
    pub rate_counting: Option<Counting>,
    /// Headers that tell the grant: x_rate_limit, rate_limit_headers, rate_limit_field, rate_limit_item, silent
    #[arg(long, value_name = "DIALECT", value_parser = named::<Dialect>, requires = "rate_limit")]
    pub rate_dialect: Option<Dialect>,
    /// Form of the reset: delta_seconds, delta_milliseconds, epoch_seconds, epoch_milliseconds, rfc3339, http_date, absent
    #[arg(long, value_name = "FORM", value_parser = named::<Reset>, requires = "rate_limit")]
    pub rate_reset: Option<Reset>,
    /// Retry-After of a refusal: absent, seconds, http_date, too_short
    #[arg(long, value_name = "FORM", value_parser = named::<RetryAfter>, requires = "rate_limit")]
    pub retry_after: Option<RetryAfter>,
    /// Let the library live so many times as fast as a town library; 0 keeps it still [default: the scenario's life]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub life: Option<f64>,
    /// Print what a client needs as one line of JSON on stdout: `--json`, which every command takes
    #[arg(skip)]
    pub json: bool,
}

/// Serves until the process is asked to stop, by Ctrl-C or SIGTERM.
///
/// # Errors
/// When the scenario cannot be used or the address not be bound.
pub async fn run(args: SimulateArgs, clock: SharedClock) -> anyhow::Result<()> {
    run_until(args, clock, asked_to_stop(), &mut std::io::stdout(), &mut std::io::stderr()).await
}

/// Serves until `stop` is ready; data goes to `out`, talk to `talk`.
///
/// # Errors
/// When the scenario cannot be used, the address not be bound, or nobody reads `out` any more.
pub async fn run_until(
    args: SimulateArgs,
    clock: SharedClock,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
    talk: &mut impl Write,
) -> anyhow::Result<()> {
    let mut scenario = Scenario::find(&args.scenario).context("failed to prepare the simulator")?;
    args.apply(&mut scenario);
    let started = scenario.start(RootSeed::new(args.seed), clock.now());
    let (mut simulator, mut script) = started.context("failed to prepare the simulator")?;
    simulator.access.key.clone_from(&args.client_key);
    simulator.access.secret.clone_from(&args.client_secret);
    let simulator = SharedSimulator::new(simulator, clock);
    let server = Server::start(simulator.clone(), args.listen).await;
    let server = server.map_err(|source| NotListening { address: args.listen, source })?;
    introduce(&args, &scenario, &simulator, &server.base_url(), out, talk)?;
    tokio::select! {
        () = stop => {}
        told = tell(&simulator, &mut script, talk) => told?,
    }
    server.stop().await;
    Ok(())
}

impl SimulateArgs {
    /// Puts what was given on the command line over what the scenario says.
    fn apply(&self, scenario: &mut Scenario) {
        let library = &mut scenario.library;
        library.bibs = self.bibs.or(library.bibs);
        library.items = self.items.or(library.items);
        library.patrons = self.patrons.or(library.patrons);
        if let Some(zone) = &self.zone {
            library.zone = Some(zone.clone());
        }
        if let Some(factor) = self.life {
            scenario.life = Life::town().times(factor);
            if factor == 0.0 {
                scenario.life = Life::default();
            }
        }
        if let Some((calls, seconds)) = self.rate_limit {
            let usual = RateLimit::default();
            scenario.rate_limit = Some(RateLimit {
                calls,
                seconds,
                counting: self.rate_counting.unwrap_or(usual.counting),
                dialect: self.rate_dialect.unwrap_or(usual.dialect),
                reset: self.rate_reset.unwrap_or(usual.reset),
                retry_after: self.retry_after.unwrap_or(usual.retry_after),
                free_token_calls: false,
            });
        }
    }
}

fn introduce(
    args: &SimulateArgs,
    scenario: &Scenario,
    simulator: &SharedSimulator,
    base_url: &str,
    out: &mut impl Write,
    talk: &mut impl Write,
) -> anyhow::Result<()> {
    let [bibs, items, patrons] = Kind::ALL.map(|kind| simulator.world(|world| world.ids(kind).len()));
    let zone = scenario.library.zone.as_deref().unwrap_or("UTC");
    let SimulateArgs { client_key, client_secret, seed, scenario: name, .. } = args;
    writeln!(talk, "Simulated Sierra with {bibs} bibs, {items} items and {patrons} patrons (seed {seed}).")?;
    writeln!(talk, "Scenario {name}: {}", scenario.about)?;
    writeln!(talk, "It listens at {base_url} until Ctrl-C. To point sierra-sync at it:\n")?;
    writeln!(talk, "    export SIERRA_SYNC__SIERRA__CLIENT_SECRET={client_secret}\n")?;
    let config = format!(
        "config_version = 1\n\n[sierra]\nbase_url = \"{base_url}\"\nclient_key = \"{client_key}\"\n\
         local_zone = \"{zone}\"\n\n[streams.bibs]\n[streams.items]\n\n[sinks.archive]\ntype = \"file\"\npath = \"./out\"\n"
    );
    for line in config.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        writeln!(talk, "{indent}{line}")?;
    }
    writeln!(talk)?;
    if args.json {
        let data = serde_json::json!({
            "base_url": base_url, "client_key": client_key, "client_secret": client_secret, "seed": seed,
            "scenario": name, "bibs": bibs, "items": items, "patrons": patrons, "local_zone": zone,
        });
        writeln!(out, "{data}")?;
        out.flush()?;
    }
    Ok(())
}

/// Drives the script and tells each step, then waits for ever.
async fn tell(simulator: &SharedSimulator, script: &mut Script, talk: &mut impl Write) -> anyhow::Result<()> {
    loop {
        match simulator.with(|simulator| script.step(simulator)) {
            Progress::Done { say, step, of } => writeln!(talk, "[{step}/{of}] {say}")?,
            Progress::Waiting { .. } => tokio::time::sleep(SCRIPT_BEAT).await,
            Progress::Finished => std::future::pending().await,
        }
    }
}

async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupted = tokio::signal::ctrl_c();
    // Where signals cannot be had, the process ends by them all the same, only less politely.
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        Err(_) => {
            let _ended = interrupted.await;
        }
    }
}

fn rate(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('/').and_then(|(calls, seconds)| Some((calls.parse().ok()?, seconds.parse().ok()?)));
    parsed
        .filter(|(calls, seconds)| *calls > 0 && *seconds > 0)
        .ok_or_else(|| "expected calls/seconds, such as 100/60".into())
}

fn factor(text: &str) -> Result<f64, String> {
    let parsed: Option<f64> = text.parse().ok();
    parsed.filter(|factor| factor.is_finite() && *factor >= 0.0).ok_or_else(|| "expected a number, 0 or more".into())
}

/// One of an enum's names, as scenario files write them.
fn named<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    T::deserialize(text.into_deserializer()).map_err(|error: ValueError| error.to_string())
}
