//! `status`: how fresh everything is, and what to do if it is not.

use std::time::Duration;

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{dispatch, terminal};
use crate::sync::report::StatusReport;
use crate::sync::report::status::{OverallState, StoreState, TokenState};

mod page;

/// What `status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Shows it again every two seconds, until interrupted
    #[arg(long)]
    pub watch: bool,
    /// Says one sentence and, while the overall state is failing, ends with 69, 74 or 77: for health checks, to which 2
    /// (the configuration would not do at the next start) and 75 (the service does not answer) are unhealthy as well
    #[arg(long, conflicts_with = "watch")]
    pub check: bool,
}

/// Often enough to see things move, and rarely enough to cost nothing.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Clears the screen and goes to its top left (ECMA-48).
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Runs the command.
///
/// # Errors
/// When the configuration is wrong or the state cannot be read.
pub async fn run(args: StatusArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    loop {
        let report = app::status(&config).await?;
        let text = match (global.json, args.check) {
            (true, _) => serde_json::to_string(&report)?,
            (false, true) => page::headline(&report),
            (false, false) => page::of(&report),
        };
        let clear = if args.watch && !global.json && terminal::is_coloured() { CLEAR } else { "" };
        terminal::data(&format!("{clear}{text}"))?;
        if args.check {
            return Ok(health(&report));
        }
        if !args.watch {
            return Ok(Exit::Ok);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

/// How a health check ends. What passes by itself, such as an outage of Sierra, a gap or a wait for quota, is no
/// sickness of ours, and nothing that a restart would mend.
fn health(report: &StatusReport) -> Exit {
    match (report.state, report.store.state, report.token.state) {
        (OverallState::Ok | OverallState::Degraded, ..) => Exit::Ok,
        (OverallState::Failing, StoreState::Failed, _) => Exit::StoreFailed,
        (OverallState::Failing, StoreState::Ok, TokenState::Latched) => Exit::Credentials,
        (OverallState::Failing, ..) => Exit::Unavailable,
    }
}
