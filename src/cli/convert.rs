//! `convert`: MARC at the desk.

use clap::Args;

use crate::cli::exit::{Exit, Refused};

/// What `convert` takes.
#[derive(Debug, Args)]
pub struct ConvertArgs {}

/// Runs the command.
///
/// # Errors
/// Always: it is not built yet.
pub fn run(_args: ConvertArgs) -> anyhow::Result<Exit> {
    Err(Refused("`convert` is not built yet".to_owned()).into())
}
