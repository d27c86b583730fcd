//! `run`: the service.

use clap::Args;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::config::{self, Environment};

/// What `run` takes.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {}

/// Runs the service until SIGTERM or SIGINT. SIGHUP makes it read its configuration again.
///
/// # Errors
/// When the configuration is wrong, another process holds the state, the ops address cannot be bound, or the store
/// fails.
pub async fn run(_: RunArgs, global: &Global) -> anyhow::Result<Exit> {
    let (path, flags) = (global.config.clone(), global.set.clone());
    let load = move || config::load_written(path.as_deref(), &Environment::of_process(), &flags);
    app::run(&load).await.map(|()| Exit::Ok)
}
