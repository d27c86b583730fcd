//! `check`: the parts that its probes work on, and no store.

use std::sync::Arc;

use anyhow::Context;

use crate::cli::check::{Asked, Ground};
use crate::clock::{SharedClock, SystemClock};
use crate::config::Config;
use crate::store::BreakerHold;

/// Builds what `check` probes. While a person holds the breaker open, or that cannot be known, Sierra is not asked.
///
/// # Errors
/// When the client cannot be built, e.g. for an unreadable certificate.
pub async fn ground(config: &Config) -> anyhow::Result<Ground> {
    let clock: SharedClock = Arc::new(SystemClock);
    let sierra = match BreakerHold::of(&config.store.path, clock.now()) {
        Ok(Some(hold)) => Asked::Held(hold),
        Err(error) => Asked::Unknown(error),
        Ok(None) => {
            let client = super::assembly::bare_client(config, &clock).context("failed to prepare the probes")?;
            let permissions = client.token_info().await.ok().flatten().map(|info| info.permissions);
            Asked::Open { source: Box::new(client), permissions }
        }
    };
    let sinks = config.sinks.iter().map(|(name, sink)| (name.clone(), crate::sink::build(name, &sink.sink, &clock)));
    let sinks = sinks.collect();
    Ok(Ground { sierra, sinks, clock })
}
