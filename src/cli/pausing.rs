//! `pause` and `resume`: a person holds a stream or a sink back, or lets it go on.

use clap::Args;

use crate::app::{self, PauseOrder};
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::operator::OperatorArgs;
use crate::cli::sync::StreamName;
use crate::cli::{answer, dispatch};
use crate::sync::Pausable;

/// What `pause` and `resume` take.
#[derive(Debug, Args)]
pub struct PausingArgs {
    /// What
    #[command(flatten)]
    pub what: WhatArgs,
    /// Who says so, and why
    #[command(flatten)]
    pub operator: OperatorArgs,
}

/// One of both, several times if need be.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct WhatArgs {
    /// This stream; may be repeated
    #[arg(long = "stream", value_enum, value_name = "STREAM")]
    pub streams: Vec<StreamName>,
    /// This sink; may be repeated
    #[arg(long = "sink", value_name = "NAME")]
    pub sinks: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// When the configuration is wrong, does not have what was named, or pauses the sink that is to go on; when the process
/// that holds the state does not answer, or the store fails.
pub async fn run(args: PausingArgs, order: PauseOrder, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let streams = args.what.streams.iter().map(|name| Pausable::Stream((*name).into()));
    for what in streams.chain(args.what.sinks.iter().cloned().map(Pausable::Sink)) {
        let report = app::pausing(&config, order, &what, &args.operator.operator()).await?;
        let text = if global.json { serde_json::to_string(&report)? } else { report.message };
        answer::outcome(global, Exit::Ok, &text)?;
    }
    Ok(Exit::Ok)
}
