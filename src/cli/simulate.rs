//! `simulate`: a Sierra look-alike to try settings on.

use clap::Args;

use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};

/// What `simulate` takes.
#[derive(Debug, Args)]
pub struct SimulateArgs {}

/// Runs the command.
///
/// # Errors
/// Always: it is not built yet.
pub async fn run(_args: SimulateArgs, _global: &Global) -> anyhow::Result<Exit> {
    Err(Refused("`simulate` is not built yet".to_owned()).into())
}
