//! `check`: the parts that its probes work on, and no store.

use std::sync::Arc;

use anyhow::Context;

use crate::cli::check::Ground;
use crate::clock::{SharedClock, SystemClock};
use crate::config::Config;

/// Builds what `check` probes.
///
/// # Errors
/// When the client cannot be built, e.g. for an unreadable certificate.
pub async fn ground(config: &Config) -> anyhow::Result<Ground> {
    let clock: SharedClock = Arc::new(SystemClock);
    let client = super::assembly::bare_client(config, &clock).context("failed to prepare the probes")?;
    let permissions = client.token_info().await.ok().flatten().map(|info| info.permissions);
    let sinks = config.sinks.iter().map(|(name, sink)| (name.clone(), crate::sink::build(name, &sink.sink, &clock)));
    let sinks = sinks.collect();
    Ok(Ground { source: Box::new(client), permissions, sinks, clock })
}
