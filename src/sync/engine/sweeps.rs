//! Sweeps as the engine runs them: those that are due, and a reconciliation that a person orders.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::reins::Reins;
use super::sync_once::Stop;
use super::{Board, Engine, EngineError};
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::capture::Lane;
use crate::sync::capture::pass::{Owed, PassReport};
use crate::sync::report::PassSummary;
use crate::sync::sweep::{Patience, ReconcileOrder, ReconcileReport, Sweeps};

/// How often a service looks whether a sweep is due.
const LOOK_FOR_SWEEPS: Duration = Duration::from_secs(60);

/// What a reconciliation that was ordered came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ReconcileOutcome {
    /// What it found and did.
    pub found: ReconcileReport,
    /// Whether it came to its end.
    pub is_whole: bool,
    /// The exit code, sinks included where it delivered.
    pub exit: u8,
    /// The deliveries, where it made any.
    pub summary: Option<PassSummary>,
}

impl Engine {
    /// Reconciles a stream and, if it repairs, delivers until every sink is drained or does not take deliveries. The
    /// same order goes on where an earlier one stopped.
    ///
    /// # Errors
    /// When the stream is not configured, another sweep of it is under way, and when the store fails; everything else is
    /// in the report.
    pub async fn reconcile(
        &self,
        order: &ReconcileOrder,
        cancel: &CancellationToken,
    ) -> Result<ReconcileOutcome, EngineError> {
        if !order.repair {
            return self.reconcile_beside(order, cancel).await;
        }
        let lane = self.lane_of(order.stream)?;
        let stop = Stop::on(cancel);
        let mut outcome = None;
        let summary = self
            .beside_deliveries(&stop, async {
                let sweeps = Sweeps { lane, owed: Owed::All, patience: patience(order), cancel: &stop.asked };
                let Some(reconciled) = sweeps.run_ordered(order).await? else { return Ok(BTreeMap::new()) };
                outcome = Some((reconciled.found, reconciled.is_whole, reconciled.exit));
                Ok(BTreeMap::from([(order.stream, reconciled.report)]))
            })
            .await?;
        let Some((found, is_whole, exit)) = outcome else {
            return Err(EngineError::SweepUnderWay { stream: order.stream });
        };
        // The reconciliation's own troubles are among the summary's, but for what it left.
        let exit = if summary.exit == 0 { exit } else { summary.exit };
        Ok(ReconcileOutcome { found, is_whole, exit, summary: Some(summary) })
    }

    /// The same for an engine that follows, which delivers by itself, and for one that only looks.
    ///
    /// # Errors
    /// As [`Engine::reconcile`].
    pub async fn reconcile_beside(
        &self,
        order: &ReconcileOrder,
        cancel: &CancellationToken,
    ) -> Result<ReconcileOutcome, EngineError> {
        let (lane, stream) = (self.lane_of(order.stream)?, order.stream);
        let sweeps = Sweeps { lane, owed: Owed::All, patience: patience(order), cancel };
        let reconciled = sweeps.run_ordered(order).await?.ok_or(EngineError::SweepUnderWay { stream })?;
        let (found, is_whole, exit) = (reconciled.found, reconciled.is_whole, reconciled.exit);
        Ok(ReconcileOutcome { found, is_whole, exit, summary: None })
    }

    /// Runs the sweeps that are due for the streams of `reports`, and adds what they came to.
    pub(super) async fn sweep(
        &self,
        reports: &mut BTreeMap<Stream, PassReport>,
        wait_for_quota: bool,
        cancel: &CancellationToken,
    ) -> Result<(), StoreError> {
        let patience = if wait_for_quota { Patience::Quota } else { Patience::None };
        for (stream, report) in reports {
            let Some(lane) = self.lanes.get(stream) else { continue };
            if cancel.is_cancelled() || !report.may_go_on() || report.needs_person {
                continue;
            }
            if let Some(swept) = (Sweeps { lane, owed: Owed::All, patience, cancel }).run_due().await? {
                report.add(swept);
            }
        }
        Ok(())
    }

    fn lane_of(&self, stream: Stream) -> Result<&Lane, EngineError> {
        self.lanes.get(&stream).map(AsRef::as_ref).ok_or(EngineError::UnknownStream { stream })
    }
}

/// Sweeps the stream of `lane` whenever that is due, beside its live passes, until `cancel`.
pub(super) async fn sweep_when_due(
    lane: &Lane,
    board: &Board,
    reins: &Reins,
    cancel: &CancellationToken,
) -> Result<(), StoreError> {
    let sweep = async |over: CancellationToken| {
        Sweeps { lane, owed: Owed::Due, patience: Patience::Endless, cancel: &over }.run_due().await
    };
    while !cancel.is_cancelled() {
        tokio::select! {
            biased;
            () = reins.free() => {}
            () = cancel.cancelled() => break,
        }
        let looked = Instant::now();
        if !board.read(lane.stream()).needs_person {
            reins.under(cancel, sweep).await?;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(looked + LOOK_FOR_SWEEPS) => {}
            () = cancel.cancelled() => break,
        }
    }
    Ok(())
}

fn patience(order: &ReconcileOrder) -> Patience {
    if order.wait_for_quota { Patience::Quota } else { Patience::None }
}
