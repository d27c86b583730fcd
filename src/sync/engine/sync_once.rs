//! One pass over everything, for cron: capture what is owed and what is new, deliver until the sinks are drained.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Board, Engine};
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::capture::Lane;
use crate::sync::capture::error::{source_report, source_trouble};
use crate::sync::capture::pass::{Owed, PassOrder, PassReport};
use crate::sync::capture::tally::Tally;
use crate::sync::clock_guard::SierraTime;
use crate::sync::deliver::Ending;
use crate::sync::deliver::lane::Standing;
use crate::sync::exit::{Trouble, exit_code};
use crate::sync::ledger::coverage::{coverage, gaps};
use crate::sync::ledger::own_rows;
use crate::sync::ports::{SourceError, SourceErrorKind, Traffic};
use crate::sync::report::status::SinkState;
use crate::sync::report::summary::{ErrorReport, PassSummary, SinkSummary, StreamOutcome, StreamSummary};
use crate::sync::timekeeper::{TimeError, Timekeeper};

/// What `sync` is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyncOptions {
    /// The streams; empty means all that are configured.
    pub streams: Vec<Stream>,
    /// Sit out long quota waits instead of ending with them.
    pub wait_for_quota: bool,
}

impl Engine {
    /// Runs one pass and delivers until every sink that is neither paused nor detached is drained, or does not take
    /// deliveries. A shutdown ends it early, without a page that would have to be fetched again.
    ///
    /// # Errors
    /// Only when the store fails (exit 74): everything else is in the summary.
    pub async fn sync_once(
        &self,
        options: &SyncOptions,
        cancel: &CancellationToken,
    ) -> Result<PassSummary, StoreError> {
        // A failing store ends everything that still runs.
        let cancel = cancel.child_token();
        self.beside_deliveries(&cancel, async {
            let mut reports = self.capture(options, &cancel).await?;
            self.load_sinks(&mut reports, options.wait_for_quota, &cancel).await?;
            Ok(reports)
        })
        .await
    }

    /// Runs `capture` while every sink delivers, until all of them are drained or do not take deliveries.
    pub(super) async fn beside_deliveries(
        &self,
        cancel: &CancellationToken,
        capture: impl Future<Output = Result<BTreeMap<Stream, PassReport>, StoreError>>,
    ) -> Result<PassSummary, StoreError> {
        let started = Instant::now();
        let before = self.standings();
        let whole_before = self.whole().await?;
        let (captured, capture_ended) = watch::channel(false);
        let mut deliveries = JoinSet::new();
        for lane in self.sinks.values().map(Arc::clone) {
            let (ending, cancel) = (Ending::Drained { captured: capture_ended.clone() }, cancel.clone());
            deliveries.spawn(async move { lane.run(ending, &cancel).await });
        }
        let reports = capture.await;
        if reports.is_err() {
            cancel.cancel();
        }
        captured.send_replace(true);
        let mut delivered = Ok(());
        while let Some(joined) = deliveries.join_next().await {
            if let Err(error) = flatten(joined) {
                cancel.cancel();
                delivered = Err(error);
            }
        }
        let reports = reports?;
        delivered?;
        self.summary(reports, &before, &whole_before, started).await
    }

    async fn capture(
        &self,
        options: &SyncOptions,
        cancel: &CancellationToken,
    ) -> Result<BTreeMap<Stream, PassReport>, StoreError> {
        let wanted = |stream: &Stream| options.streams.is_empty() || options.streams.contains(stream);
        let lanes: Vec<Arc<Lane>> =
            self.lanes.iter().filter(|(stream, _)| wanted(stream)).map(|(_, lane)| Arc::clone(lane)).collect();
        let streams: Vec<Stream> = lanes.iter().map(|lane| lane.stream()).collect();
        let mut reports = BTreeMap::new();
        let (time, mut traffic) = match self.sierra_time(&streams, options.wait_for_quota, cancel).await? {
            Ok(time) => time,
            Err(error) => {
                let mut traffic = error.traffic;
                for lane in lanes {
                    let report = without_time(&lane, &error, std::mem::take(&mut traffic)).await?;
                    reports.insert(lane.stream(), report);
                }
                self.post(&reports);
                return Ok(reports);
            }
        };
        let mut passes = JoinSet::new();
        for lane in lanes {
            let order = PassOrder {
                now: time.now,
                reach_back: self.timekeeper.reach_back(lane.stream()).await,
                owed: Owed::All,
                update: true,
                deletes: true,
                wait_for_quota: options.wait_for_quota,
            };
            let (timekeeper, cancel) = (Arc::clone(&self.timekeeper), cancel.clone());
            passes.spawn(async move {
                let report = run_pass(&lane, &timekeeper, order, &cancel).await;
                (lane.stream(), report)
            });
        }
        let mut failed = None;
        while let Some(joined) = passes.join_next().await {
            let (stream, report) = joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            match report {
                Ok(report) => drop(reports.insert(stream, report)),
                Err(error) => {
                    cancel.cancel();
                    failed = Some(error);
                }
            }
        }
        if let Some(first) = reports.values_mut().next() {
            first.tally.traffic += std::mem::take(&mut traffic);
        }
        self.post(&reports);
        failed.map_or(Ok(reports), Err)
    }

    /// Asks for the time, sitting out quota waits if that is wanted.
    pub(super) async fn sierra_time(
        &self,
        streams: &[Stream],
        wait_for_quota: bool,
        cancel: &CancellationToken,
    ) -> Result<Result<(SierraTime, Traffic), SourceError>, StoreError> {
        loop {
            let error = match self.timekeeper.ask(streams).await {
                Ok(time) => return Ok(Ok(time)),
                Err(TimeError::Store(error)) => return Err(error),
                Err(TimeError::Source(error)) => error,
            };
            match error.kind {
                SourceErrorKind::WaitingQuota { resume_at } if wait_for_quota && !cancel.is_cancelled() => {
                    let left: SignedDuration = resume_at.duration_since(self.clock.now());
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep(left.try_into().unwrap_or_default()) => {}
                        () = cancel.cancelled() => return Ok(Err(error)),
                    }
                }
                _ => return Ok(Err(error)),
            }
        }
    }

    fn post(&self, reports: &BTreeMap<Stream, PassReport>) {
        for (stream, report) in reports {
            post(&self.board, *stream, report);
        }
    }

    pub(super) fn standings(&self) -> BTreeMap<String, Standing> {
        self.sinks.iter().map(|(name, lane)| (name.clone(), lane.standing())).collect()
    }

    /// The sinks that lack nothing but what waits for them.
    pub(super) async fn whole(&self) -> Result<BTreeSet<String>, StoreError> {
        let places = self.positions.places().await?;
        Ok(places.into_iter().filter(|(_, place)| !place.needs_reload()).map(|(name, _)| name).collect())
    }

    pub(super) async fn summary(
        &self,
        reports: BTreeMap<Stream, PassReport>,
        before: &BTreeMap<String, Standing>,
        whole_before: &BTreeSet<String>,
        started: Instant,
    ) -> Result<PassSummary, StoreError> {
        let mut troubles: BTreeSet<Trouble> =
            reports.values().flat_map(|report| report.troubles.iter().copied()).collect();
        let mut sinks = BTreeMap::new();
        for (name, place) in self.positions.places().await? {
            let Some(lane) = self.sinks.get(&name) else { continue };
            let (now, then) = (lane.standing(), before.get(&name).cloned().unwrap_or_default());
            let state = match (place.needs_reload(), lane.is_paused(), now.trouble) {
                (true, ..) => SinkState::NeedsReload,
                (_, true, _) => SinkState::Paused,
                (.., trouble) => trouble.unwrap_or(SinkState::Ok),
            };
            let refused = now.refused.saturating_sub(then.refused);
            if state == SinkState::Open || (state == SinkState::Retrying && place.position.pending > 0) {
                troubles.insert(Trouble::Unavailable);
            }
            if state == SinkState::NeedsReload && whole_before.contains(&name) {
                troubles.insert(Trouble::Gap);
            }
            if refused > 0 {
                troubles.insert(Trouble::NewlyQuarantined);
            }
            let published = lane
                .route
                .streams
                .iter()
                .map(|stream| (stream.name().to_owned(), place.note.published.get(stream).copied()));
            let summary = SinkSummary {
                delivered: now.delivered.saturating_sub(then.delivered),
                pending: place.position.pending,
                quarantined: refused,
                state,
                published: published.collect(),
                error: now.error,
            };
            sinks.insert(name, summary);
        }
        let streams = reports.into_iter().map(|(stream, report)| (stream.name().to_owned(), summarised(report)));
        let streams = streams.collect();
        let exit = exit_code(troubles);
        let elapsed_seconds = started.elapsed().as_secs_f64();
        Ok(PassSummary { schema: 1, ok: exit == 0, exit, elapsed_seconds, streams, sinks })
    }
}

/// Runs one pass and notes how it ended.
pub(super) async fn run_pass(
    lane: &Lane,
    timekeeper: &Timekeeper,
    order: PassOrder,
    cancel: &CancellationToken,
) -> Result<PassReport, StoreError> {
    let report = lane.pass(order, cancel).await?;
    let succeeded = report.outcome == StreamOutcome::CaughtUp;
    timekeeper.passed(lane.stream(), succeeded, report.reached_back).await?;
    Ok(report)
}

/// Notes on the board how a pass ended.
pub(super) fn post(board: &Board, stream: Stream, report: &PassReport) {
    board.note(stream, |note| {
        note.outcome = Some(report.outcome);
        note.error = report.error.clone();
        note.needs_person = report.needs_person;
    });
}

/// The report of a pass that could not begin, since Sierra gave no sign of life.
pub(super) async fn without_time(lane: &Lane, error: &SourceError, traffic: Traffic) -> Result<PassReport, StoreError> {
    let stream = lane.stream();
    let rows = lane.store.call(move |store| own_rows(store, stream)).await?;
    let outcome = match error.kind {
        SourceErrorKind::Exhausted | SourceErrorKind::Narrow | SourceErrorKind::Permanent => StreamOutcome::Failed,
        SourceErrorKind::WaitingQuota { .. } => StreamOutcome::WaitingQuota,
        SourceErrorKind::CircuitOpen | SourceErrorKind::Suspended => StreamOutcome::Suspended,
        SourceErrorKind::Credentials | SourceErrorKind::Stopped => StreamOutcome::Stopped,
    };
    let resume_at = match error.kind {
        SourceErrorKind::WaitingQuota { resume_at } => Some(resume_at),
        _ => None,
    };
    let report: ErrorReport = source_report(error);
    Ok(PassReport {
        outcome,
        tally: Tally { traffic, ..Tally::default() },
        gaps: gaps(&rows),
        watermark: coverage(&rows).watermark,
        error: Some(report),
        resume_at,
        reached_back: false,
        needs_person: false,
        troubles: [source_trouble(error.kind).unwrap_or(Trouble::Unavailable)].into(),
    })
}

fn summarised(report: PassReport) -> StreamSummary {
    let (entries, traffic) = (report.tally.entries, report.tally.traffic);
    StreamSummary {
        state: report.outcome,
        windows: report.tally.windows,
        pages: report.tally.pages,
        calls: u64::from(traffic.calls),
        retries: u64::from(traffic.retries),
        quota_wait_seconds: traffic.quota_wait.as_secs_f64(),
        fetched: entries.fetched(),
        changed: entries.changed,
        unchanged: entries.unchanged,
        stale: entries.stale,
        deleted: entries.deleted,
        deleted_unseen: entries.deleted_unseen,
        quarantined: entries.quarantined,
        gaps: report.gaps,
        watermark: report.watermark,
        error: report.error,
    }
}

/// What a task came to; a panic in it goes on in whoever waits for it.
pub(super) fn flatten(joined: Result<Result<(), StoreError>, tokio::task::JoinError>) -> Result<(), StoreError> {
    joined.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // Tasks are only ever cancelled by dropping the engine with them.
        Err(_) => Ok(()),
    })
}
