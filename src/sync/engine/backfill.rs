//! Backfills as the engine runs them: one that is ordered, and the loads of sinks that need one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::not_begun::{interrupted, without_time};
use super::sync_once::Stop;
use super::{Engine, EngineError};
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::backfill::{Backfill, BackfillOrder, Plan, owed_loads};
use crate::sync::capture::Lane;
use crate::sync::capture::pass::PassReport;
use crate::sync::report::PassSummary;
use crate::sync::runs::{Run, RunKind};

impl Engine {
    /// Runs a backfill and delivers until every sink is drained, or does not take deliveries. The same order goes on
    /// where an earlier one stopped.
    ///
    /// # Errors
    /// When the stream or the sink is not configured, and when the store fails; everything else is in the summary.
    pub async fn backfill(
        &self,
        order: &BackfillOrder,
        cancel: &CancellationToken,
    ) -> Result<PassSummary, EngineError> {
        let lane = self.lane_for(order)?;
        let stop = Stop::on(cancel);
        let run = self.capture_backfill(lane, order, &stop.asked);
        Ok(self.beside_deliveries(&stop, run).await?)
    }

    /// The same for an engine that follows: it delivers by itself, so this ends when everything is captured.
    ///
    /// # Errors
    /// As [`Engine::backfill`].
    pub async fn backfill_beside(
        &self,
        order: &BackfillOrder,
        cancel: &CancellationToken,
    ) -> Result<PassSummary, EngineError> {
        let lane = self.lane_for(order)?;
        let (started, before, whole) = (Instant::now(), self.standings(), self.whole().await?);
        let reports = self.capture_backfill(lane, order, &cancel.child_token()).await?;
        Ok(self.summary(reports, &before, &whole, false, started).await?)
    }

    async fn capture_backfill(
        &self,
        lane: &Lane,
        order: &BackfillOrder,
        cancel: &CancellationToken,
    ) -> Result<BTreeMap<Stream, PassReport>, StoreError> {
        let began = self.clock.now();
        let report = match self.sierra_time(&[order.stream], order.wait_for_quota, cancel).await? {
            Some(Ok((time, traffic))) => {
                let mut report = self.run_backfill(lane, order, time.now, cancel).await?;
                report.tally.traffic += traffic;
                report
            }
            Some(Err(error)) => without_time(lane, &error, error.traffic).await?,
            None => interrupted(lane).await?,
        };
        self.runs.note(Run::of(order.stream, RunKind::Backfill, began, self.clock.now(), &report));
        Ok(BTreeMap::from([(order.stream, report)]))
    }

    /// What a backfill would take. Nothing is asked of Sierra.
    ///
    /// # Errors
    /// When the stream or the sink is not configured, and on any storage error.
    pub async fn plan_backfill(&self, order: &BackfillOrder) -> Result<Plan, EngineError> {
        let lane = self.lane_for(order)?;
        Ok(lane.cut(&order.selection, order.via, self.clock.now()).await?)
    }

    /// Loads the sinks that must be loaded with one of the streams of `reports`, and adds what that came to.
    pub(super) async fn load_sinks(
        &self,
        reports: &mut BTreeMap<Stream, PassReport>,
        wait_for_quota: bool,
        cancel: &CancellationToken,
    ) -> Result<(), StoreError> {
        for (stream, report) in reports {
            let Some(lane) = self.lanes.get(stream) else { continue };
            for order in owed_loads(lane, wait_for_quota).await? {
                if cancel.is_cancelled() || !report.may_go_on() {
                    break;
                }
                let began = self.clock.now();
                let loaded = self.run_backfill(lane, &order, began, cancel).await?;
                self.runs.note(Run::of(*stream, RunKind::Backfill, began, self.clock.now(), &loaded));
                report.add(loaded);
            }
        }
        Ok(())
    }

    async fn run_backfill(
        &self,
        lane: &Lane,
        order: &BackfillOrder,
        now: Timestamp,
        cancel: &CancellationToken,
    ) -> Result<PassReport, StoreError> {
        Backfill { lane, book: &self.book, order, now, cancel }.run().await
    }

    /// The lane of the order's stream, once both stream and sink are known to be configured.
    fn lane_for(&self, order: &BackfillOrder) -> Result<&Lane, EngineError> {
        let stream = order.stream;
        if let Some(sink) = &order.sink
            && !self.sink(sink)?.route.streams.contains(&stream)
        {
            return Err(EngineError::NotTaken { sink: sink.clone(), stream });
        }
        self.lanes.get(&stream).map(AsRef::as_ref).ok_or(EngineError::UnknownStream { stream })
    }
}
