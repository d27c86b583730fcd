//! `check`: what is wrong, and what to do, before anything is changed.

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{dispatch, terminal};
use crate::config::Problems;

mod line;

pub use line::ProbeLine;

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Checks the configuration alone and asks nobody
    #[arg(long)]
    pub offline: bool,
}

/// Runs the command: one line a probe. Moves no position.
///
/// # Errors
/// When the probes could not be set up; what they found is on stdout.
pub async fn run(args: CheckArgs, global: &Global) -> anyhow::Result<Exit> {
    let (config, warnings) = match dispatch::load_with_warnings(global) {
        Ok(loaded) => loaded,
        Err(problems) => return refuse(&problems, global),
    };
    terminal::data(&ProbeLine::good("config", "the configuration is valid").text(global.json)?)?;
    for warning in warnings {
        let line = ProbeLine {
            ok: true,
            hint: Some(warning.hint.clone()),
            ..ProbeLine::good("config", &format!("{}: {}", warning.key, warning.message))
        };
        terminal::data(&line.text(global.json)?)?;
    }
    if args.offline {
        return Ok(Exit::Ok);
    }
    let mut lines = Vec::new();
    app::check(&config, &mut |line| lines.push(line)).await?;
    Ok(Exit::Ok)
}

fn refuse(problems: &Problems, global: &Global) -> anyhow::Result<Exit> {
    for problem in problems.iter() {
        terminal::data(&ProbeLine::bad("config", &problem.to_string(), None).text(global.json)?)?;
    }
    Ok(Exit::Usage)
}
