//! `check`: what is wrong, and what to do, before anything is changed.

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{dispatch, terminal};
use crate::config::{Config, Problems, Warning};

mod disk;
mod estimate;
mod line;
mod roles;
mod sierra;
mod sinks;

pub use line::ProbeLine;
pub use sinks::BuiltSink;

use crate::clock::SharedClock;
use crate::sync::Source;

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Checks the configuration alone and asks nobody
    #[arg(long)]
    pub offline: bool,
}

/// What the probes work on. Holds no store: `check` never moves a position.
pub struct Ground {
    /// Sierra.
    pub source: Box<dyn Source>,
    /// What the key may do, as Sierra told with the token; `None` when it did not.
    pub permissions: Option<Vec<String>>,
    /// Each configured sink by its name.
    pub sinks: Vec<(String, BuiltSink)>,
    /// Our clock.
    pub clock: SharedClock,
}

/// Runs the command: one line a probe, printed as soon as it is known.
///
/// # Errors
/// When the probes could not be set up or stdout cannot be written to; what the probes found is on stdout.
pub async fn run(args: CheckArgs, global: &Global) -> anyhow::Result<Exit> {
    let print = |line: &ProbeLine| Ok(terminal::data(&line.text(global.json)?)?);
    let mut tell = Tell { print: Box::new(print), exits: Vec::new(), broken: None };
    match dispatch::load_with_warnings(global) {
        Err(problems) => tell_problems(&problems, &mut tell),
        Ok((config, warnings)) => {
            tell_config(&config, &warnings, &mut tell);
            if !args.offline {
                disk::probe(&config, &mut tell);
                probe(&config, app::ground(&config).await?, &mut tell).await;
            }
        }
    }
    tell.finish()
}

type Print<'p> = Box<dyn FnMut(&ProbeLine) -> anyhow::Result<()> + 'p>;

/// Where the lines go, and what they mean to the exit code.
struct Tell<'p> {
    print: Print<'p>,
    exits: Vec<Exit>,
    broken: Option<anyhow::Error>,
}

impl Tell<'_> {
    fn line(&mut self, line: &ProbeLine) {
        self.exits.push(line.exit);
        let printed = (self.print)(line);
        self.broken = self.broken.take().or(printed.err());
    }

    fn finish(self) -> anyhow::Result<Exit> {
        self.broken.map_or_else(|| Ok(Exit::gravest(self.exits)), Err)
    }
}

fn tell_problems(problems: &Problems, tell: &mut Tell<'_>) {
    for problem in problems.iter() {
        let key = problem.key.as_ref().map_or_else(String::new, |key| format!("{key}: "));
        let message = format!("{}: {key}{}", problem.place, problem.message);
        tell.line(&ProbeLine::bad("config", message, problem.hint.clone(), Exit::Usage));
    }
}

fn tell_config(config: &Config, warnings: &[Warning], tell: &mut Tell<'_>) {
    let streams: Vec<&str> = config.streams.iter().map(|settings| settings.stream.name()).collect();
    let sinks: Vec<&str> = config.sinks.keys().map(String::as_str).collect();
    tell.line(&ProbeLine::good("config", format!("valid; follows {} into {}", streams.join(", "), sinks.join(", "))));
    for warning in warnings {
        let message = format!("{} {}", warning.key, warning.message);
        tell.line(&ProbeLine::note("config", message, warning.hint.clone()));
    }
    if config.streams.iter().any(|settings| settings.late_sweep.is_none() || settings.reconcile.is_none()) {
        let message = "late_sweep and reconcile are off (they are not built yet), so back-dated edits and silent \
                       suppressions stay unseen until a record is touched again";
        let hint = "a sync into a fresh [state] path and sink reads everything again";
        tell.line(&ProbeLine::note("sweeps", message, hint));
    }
    tell.line(&estimate::line(config));
}

async fn probe(config: &Config, ground: Ground, tell: &mut Tell<'_>) {
    let refused = sierra::probe(config, ground.source.as_ref(), &ground.clock, tell).await;
    if let (Some(permissions), Some(refused)) = (ground.permissions, refused) {
        roles::probe(config, &permissions, &refused, tell);
    }
    for (name, sink) in ground.sinks {
        sinks::probe(&name, sink, tell).await;
    }
}
