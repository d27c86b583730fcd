//! `status`: how fresh everything is, and what to do if it is not.

use std::time::Duration;

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{dispatch, terminal};

mod page;

/// What `status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Shows it again every two seconds, until interrupted
    #[arg(long)]
    pub watch: bool,
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
        let text = if global.json { serde_json::to_string(&report)? } else { page::of(&report) };
        let clear = if args.watch && !global.json && terminal::is_coloured() { CLEAR } else { "" };
        terminal::data(&format!("{clear}{text}"))?;
        if !args.watch {
            return Ok(Exit::Ok);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}
