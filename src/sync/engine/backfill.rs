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
use crate::sync::exit::{Trouble, exit_code};
use crate::sync::report::PassSummary;
use crate::sync::report::summary::StreamOutcome;
use crate::sync::runs::{Run, RunKind};

/// What one engine did of a backfill.
#[derive(Debug, Clone, PartialEq)]
pub struct BackfillLeg {
    /// What it came to.
    pub summary: PassSummary,
    /// Whether nothing of the order is left.
    pub is_whole: bool,
    /// Whether it set records aside that were not yet.
    pub set_aside: bool,
}

impl BackfillLeg {
    /// This leg as the end of a backfill that began with `earlier`: what both did, and how this one ended.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        let set_aside = self.set_aside || earlier.set_aside;
        let mut summary = self.summary.after(&earlier.summary);
        let sinks_refused = earlier.summary.sinks.values().any(|sink| sink.quarantined > 0);
        if summary.exit == 0 && (set_aside || sinks_refused) {
            (summary.exit, summary.ok) = (exit_code([Trouble::NewlyQuarantined]), false);
        }
        Self { summary, is_whole: self.is_whole, set_aside }
    }
}

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
        Ok(self.backfill_leg(order, cancel).await?.summary)
    }

    /// The same, for whoever lets the order go on in another engine when this one was told to stop.
    ///
    /// # Errors
    /// As [`Engine::backfill`].
    pub async fn backfill_leg(
        &self,
        order: &BackfillOrder,
        cancel: &CancellationToken,
    ) -> Result<BackfillLeg, EngineError> {
        let lane = self.lane_for(order)?;
        let (started, before, whole) = (Instant::now(), self.standings(), self.whole().await?);
        let reports = self.capture_backfill(lane, order, &cancel.child_token()).await?;
        let is_whole = reports.values().all(|report| report.outcome == StreamOutcome::CaughtUp);
        let set_aside = reports.values().any(|report| report.troubles.contains(&Trouble::NewlyQuarantined));
        let summary = self.summary(reports, &before, &whole, false, started).await?;
        Ok(BackfillLeg { summary, is_whole, set_aside })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::report::summary::ErrorReport;

    fn leg(exit: u8, set_aside: bool) -> BackfillLeg {
        let error = ErrorReport {
            kind: "none".to_owned(),
            message: String::new(),
            endpoint: None,
            status_code: None,
            code: None,
            correlation_id: None,
            hint: None,
        };
        let mut summary = PassSummary { exit, ok: exit == 0, ..PassSummary::failed(exit, 1.5, &[Stream::Bibs], error) };
        summary
            .streams
            .values_mut()
            .for_each(|stream| (stream.fetched, stream.quarantined) = (7, u64::from(set_aside)));
        BackfillLeg { summary, is_whole: exit == 0, set_aside }
    }

    /// What was set aside before the engine was changed is part of the run: it ends with 3 all the same.
    #[test]
    fn a_leg_that_set_something_aside_is_told_by_the_exit_code_of_the_whole() {
        let whole = leg(0, false).after(leg(3, true));
        assert_eq!((whole.summary.exit, whole.summary.ok, whole.is_whole), (3, false, true));
        assert_eq!((whole.summary.streams["bibs"].fetched, whole.summary.streams["bibs"].quarantined), (14, 1));
        assert!((whole.summary.elapsed_seconds - 3.0).abs() < f64::EPSILON);
        // That it was interrupted is no longer true.
        let whole = leg(0, false).after(leg(3, false));
        assert_eq!((whole.summary.exit, whole.summary.ok), (0, true));
        assert_eq!(leg(69, false).after(leg(3, true)).summary.exit, 69);
    }
}
