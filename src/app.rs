//! The composition root: the only place that knows every concrete type.

use crate::cli::check::ProbeLine;
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

/// Probes what the configuration points to, handing each line over as soon as it is known. Moves no position.
///
/// # Errors
/// When the probes could not be set up.
pub async fn check(_config: &Config, _tell: &mut dyn FnMut(ProbeLine)) -> anyhow::Result<()> {
    Err(Refused("`check` without --offline is not built yet".to_owned()).into())
}
