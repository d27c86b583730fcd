//! The composition root: the only place that knows every concrete type.

mod demo;

use crate::cli::check::Ground;
use crate::cli::exit::Refused;
use crate::cli::sync::SyncArgs;
use crate::config::Config;
use crate::sync::report::{PassSummary, StatusReport};

/// Runs one pass and drains every sink that is neither paused nor detached.
///
/// # Errors
/// When nothing could be done at all; what went wrong with single streams and sinks is in the summary.
pub async fn sync(_config: Config, _args: &SyncArgs) -> anyhow::Result<PassSummary> {
    Err(Refused("`sync` is not built yet".to_owned()).into())
}

/// Tells how everything stands, from the process that holds the state, else from the state itself.
///
/// # Errors
/// When the state cannot be read.
pub async fn status(_config: &Config) -> anyhow::Result<StatusReport> {
    Err(Refused("`status` is not built yet".to_owned()).into())
}

/// Builds what `check` probes: a source and sinks, and no store.
///
/// # Errors
/// When the client cannot be built, e.g. for an unreadable certificate.
pub async fn ground(_config: &Config) -> anyhow::Result<Ground> {
    Err(Refused("`check` without --offline is not built yet".to_owned()).into())
}
