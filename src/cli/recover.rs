//! `recover`: comes back from a stall (A18).

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::operator::OperatorArgs;
use crate::cli::{answer, dispatch};

/// What `recover` takes.
#[derive(Debug, Clone, Default, Args)]
pub struct RecoverArgs {
    /// Who says so, and why
    #[command(flatten)]
    pub operator: OperatorArgs,
    /// Sits out long quota waits instead of ending with exit code 75
    #[arg(long)]
    pub wait: bool,
}

/// Runs the command: progress is logged, the outcome is the last thing on stdout.
///
/// # Errors
/// When the configuration is wrong, the process that holds the state does not answer, or the store fails.
pub async fn run(args: RecoverArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let report = app::recover(&config, &args.operator.operator(), args.wait).await?;
    let latch = if report.latch_lifted { "\nThe lock on the refused key is lifted." } else { "" };
    let text = if global.json { serde_json::to_string(&report)? } else { format!("{}{latch}", report.message) };
    let exit = Exit::of_code(report.exit).unwrap_or(Exit::Unavailable);
    answer::outcome(global, exit, &text)?;
    Ok(exit)
}
