//! `status`: how everything stands, read from the state itself.

use crate::config::Config;
use crate::sync::report::StatusReport;

use super::assembly::{Assembly, Reach, Wishes};

/// Tells how everything stands. Asks Sierra nothing and moves no position. A state that another process holds is
/// not read: the error names the holder (exit 75).
///
/// # Errors
/// When the state cannot be read.
pub async fn status(config: &Config) -> anyhow::Result<StatusReport> {
    let assembly = Assembly::open(config, Wishes { reach: Reach::Look, ..Wishes::usual() }).await?;
    Ok(assembly.status(false).await?)
}
