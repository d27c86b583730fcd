//! `reconcile`: a whole stream compared with what is known of it, and put right where that is wanted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::assembly::{Assembly, Wishes};
use super::backfill::refused;
use super::desk::{OpenDesk, Question, document_of_holder};
use super::errands;
use super::pass::{Interrupts, close};
use crate::cli::exit::{Declined, Exit};
use crate::config::Config;
use crate::resilience::quota::Patience;
use crate::sync::engine::{EngineError, ReconcileOutcome};
use crate::sync::sweep::{ReconcileOrder, ReconcileReport};

/// Reconciles a stream; a service that holds the state does it beside its streams, and goes on with it when nobody waits
/// for the answer any more. SIGTERM and SIGINT end it early; the same order goes on from there.
///
/// # Errors
/// When the stream is not configured, another sweep of it is under way, or nothing could be done at all; all else is in
/// the report.
pub async fn reconcile(config: Config, order: &ReconcileOrder) -> anyhow::Result<(ReconcileReport, Exit)> {
    let patience = if order.wait_for_quota { Patience::endless() } else { Patience::default() };
    let assembly = match Assembly::open(&config, Wishes { patience, ..Wishes::usual() }).await {
        Ok(assembly) => Arc::new(assembly),
        Err(held) => {
            let question = Question::Reconcile(ReconcileQuestion { order: *order });
            return document_of_holder(&config, &question, held).await;
        }
    };
    let desk = OpenDesk::open(&config, &assembly, None);
    let interrupts = Interrupts::listen();
    assembly.client.await_health_checks(interrupts.cancel.clone());
    let outcome = assembly.engine.reconcile(order, &interrupts.cancel).await;
    drop(interrupts);
    let ReconcileOutcome { found, is_whole: _, mut exit, summary } = outcome.map_err(declined)?;
    match summary {
        Some(mut summary) => {
            let before = summary.exit;
            close(&assembly, &mut summary).await;
            exit = if summary.exit == before { exit } else { summary.exit };
        }
        None => drop(assembly.engine.close().await),
    }
    assembly.keep_vitals()?;
    if let Some(desk) = desk {
        desk.close().await;
    }
    Ok((found, Exit::of_code(exit).unwrap_or(Exit::Unavailable)))
}

/// A reconciliation as it is asked for between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReconcileQuestion {
    order: ReconcileOrder,
}

impl ReconcileQuestion {
    /// What is to be done.
    pub(super) fn order(self) -> ReconcileOrder {
        self.order
    }

    /// It is the errand of a service.
    pub(super) fn decline(self, serving: bool) -> anyhow::Result<Exit> {
        Err(errands::not_here(serving))
    }
}

pub(super) fn declined(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::SweepUnderWay { .. } => Declined { sentence: error.to_string(), exit: Exit::TryLater }.into(),
        error => refused(error),
    }
}
