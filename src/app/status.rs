//! `status`: how everything stands, read from the state itself.

use crate::config::Config;
use crate::store;
use crate::sync::report::StatusReport;

use super::assembly::{Assembly, Reach, Wishes};

/// Tells how everything stands. Asks Sierra nothing, moves no position, and makes no state where there is none. A state
/// that another process holds is not read: the error names the holder (exit 75).
///
/// # Errors
/// When the state cannot be read.
pub async fn status(config: &Config) -> anyhow::Result<StatusReport> {
    let is_there = store::disk::is_there(&config.store.path);
    let assembly = Assembly::open(config, Wishes { reach: Reach::Look, ..Wishes::usual() }).await?;
    let mut report = assembly.status(false).await?;
    if !is_there {
        report.message =
            format!("Nothing was synced yet into {}: run `sierra-sync sync`.", config.store.path.display());
    }
    Ok(report)
}
