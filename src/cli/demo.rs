//! `demo`: the main job on this machine, with nothing to set up.

use clap::Args;

use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};

/// What `demo` takes.
#[derive(Debug, Args)]
pub struct DemoArgs {}

/// Runs the command.
///
/// # Errors
/// Always: it is not built yet.
pub async fn run(_args: DemoArgs, _global: &Global) -> anyhow::Result<Exit> {
    Err(Refused("`demo` is not built yet".to_owned()).into())
}
