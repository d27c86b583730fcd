//! `check`: what is wrong, and what to do, before anything is changed.

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{dispatch, terminal};
use crate::config::{Config, Problems, SAMPLE, Warning};

mod disk;
mod estimate;
mod line;
mod opening;
mod roles;
mod sierra;
mod sinks;

pub use line::ProbeLine;
pub use sinks::BuiltSink;

use crate::clock::{SharedClock, SystemClock};
use crate::store::{BreakerHold, StateLock};
use crate::sync::{Source, StoreError};

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Checks the configuration and the state, and asks nobody
    #[arg(long)]
    pub offline: bool,
}

/// What the probes work on. Holds no store: `check` never moves a position, and opens a copy of the state at most.
pub struct Ground {
    /// Sierra.
    pub sierra: Asked,
    /// Each configured sink by its name.
    pub sinks: Vec<(String, BuiltSink)>,
    /// Our clock.
    pub clock: SharedClock,
}

/// Whether Sierra may be asked.
pub enum Asked {
    /// It may.
    Open {
        /// Sierra.
        source: Box<dyn Source>,
        /// What the key may do, as Sierra told with the token; `None` when it did not.
        permissions: Option<Vec<String>>,
    },
    /// A person said that no call may go there.
    Held(BreakerHold),
    /// What people said could not be read: no call goes there either.
    Unknown(StoreError),
}

/// Runs the command: one line a probe, printed as soon as it is known.
///
/// # Errors
/// When stdout cannot be written to; what the probes found is on stdout.
pub async fn run(args: CheckArgs, global: &Global) -> anyhow::Result<Exit> {
    let print = |line: &ProbeLine| Ok(terminal::data(&line.text(global.json)?)?);
    let mut tell = Tell { print: Box::new(print), exits: Vec::new(), broken: None };
    match dispatch::load_with_warnings(global) {
        Err(problems) => tell_problems(&problems, &mut tell),
        Ok((config, warnings)) => {
            tell_config(&config, &warnings, &mut tell);
            opening::probe(&config, &SystemClock, &mut tell);
            if !args.offline {
                disk::probe(&config, &mut tell);
                match app::ground(&config).await {
                    Ok(ground) => probe(&config, ground, &mut tell).await,
                    Err(error) => {
                        tell.line(&ProbeLine::bad("sierra", format!("{error:#}"), None, Exit::of_error(&error)))
                    }
                }
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
    if SAMPLE.contains(&format!("base_url = {:?}", config.sierra.base_url)) {
        let message = "sierra.base_url is still the example's, where no Sierra is";
        tell.line(&ProbeLine::note("config", message, "set it to the address of your Sierra's API"));
    }
    for warning in warnings {
        let message = format!("{} {}", warning.key, warning.message);
        tell.line(&ProbeLine::note("config", message, warning.hint.clone()));
    }
    if config.streams.iter().any(|settings| settings.late_sweep.is_none() || settings.reconcile.is_none()) {
        let message = "late_sweep or reconcile is off, so what becomes visible late, back-dated edits and silent \
                       suppressions stay unseen until a record is touched again";
        let hint = "leave both at their defaults, or run `sierra-sync reconcile` now and then";
        tell.line(&ProbeLine::note("sweeps", message, hint));
    }
    tell.line(&estimate::line(config));
}

async fn probe(config: &Config, ground: Ground, tell: &mut Tell<'_>) {
    match ground.sierra {
        Asked::Held(hold) => tell.line(&held(&hold)),
        Asked::Unknown(error) => tell.line(&unknown(&error)),
        Asked::Open { source, permissions } => {
            let refused = sierra::probe(config, source.as_ref(), &ground.clock, tell).await;
            if let (Some(permissions), Some(refused)) = (permissions, refused) {
                roles::probe(config, &permissions, &refused, tell);
            }
        }
    }
    let holder = || StateLock::held_by(&config.store.path);
    for (name, sink) in ground.sinks {
        let line = match config.sinks.get(&name).and_then(|configured| sinks::not_begun(&name, &configured.sink)) {
            Some(line) => line,
            None => sinks::probe(&name, sink, holder).await,
        };
        tell.line(&line);
    }
}

/// One line in place of everything that would have been asked.
fn held(hold: &BreakerHold) -> ProbeLine {
    let until = hold.until.map_or_else(String::new, |until| format!(" until {}", until.strftime("%Y-%m-%dT%H:%M:%SZ")));
    let by = hold.by.as_ref().map_or_else(String::new, |by| format!(" {by}"));
    let message = format!("held open by operator{by}{until}, reason: {}; Sierra was not asked", hold.reason);
    let hint = "`sierra-sync breaker close --yes` lifts it".to_owned();
    ProbeLine::bad("breaker", message, Some(hint), Exit::Unavailable)
}

fn unknown(error: &StoreError) -> ProbeLine {
    let message = format!("whether somebody holds it open is not known, so Sierra was not asked: failed to {error}");
    let hint = "see that this user can read that file; `sierra-sync breaker close --yes` writes it anew".to_owned();
    ProbeLine::bad("breaker", message, Some(hint), Exit::StoreFailed)
}
