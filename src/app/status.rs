//! `status`: how everything stands, read from the state itself or told by the process that holds it.

use std::io;

use anyhow::Context;

use crate::config::Config;
use crate::ops::control::Line;
use crate::store;
use crate::sync::report::StatusReport;

use super::desk::{self, Question};
use super::last_status;

/// Tells how everything stands. Asks Sierra nothing, moves no position, and makes no state where there is none. While
/// another process holds the state, that process tells; one that does not answer is named in the error (exit 75).
///
/// # Errors
/// When the state cannot be read.
pub async fn status(config: &Config) -> anyhow::Result<StatusReport> {
    let is_there = store::disk::is_there(&config.store.path);
    let (mut document, mut said) = (None, Vec::new());
    let hear = |line: Line| {
        match line {
            Line::Data(text) => document = Some(text),
            Line::Talk(text) => said.push(text),
            Line::Accepted | Line::Exit(_) => {}
        }
        Ok::<(), io::Error>(())
    };
    if let Err(error) = desk::ask(config, &Question::Status, hear).await {
        return last_status::instead_of(&error, &config.store.path).ok_or(error);
    }
    let Some(document) = document else { anyhow::bail!("failed to ask for the status: {}", said.join("; ")) };
    let mut report: StatusReport = serde_json::from_str(&document)
        .context("failed to read what the process that holds the state says; use the same version of sierra-sync")?;
    if !is_there {
        report.message =
            format!("Nothing was synced yet into {}: run `sierra-sync sync`.", config.store.path.display());
    }
    Ok(report)
}
