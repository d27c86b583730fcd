//! One pass over everything, for cron: capture what is owed and what is new, deliver until the sinks are drained.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::not_begun::{interrupted, still_asked_to_wait, without_time};
use super::status::needs_reload;
use super::{Board, Engine};
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::capture::Lane;
use crate::sync::capture::pass::{Owed, PassOrder, PassReport};
use crate::sync::clock_guard::SierraTime;
use crate::sync::deliver::Ending;
use crate::sync::deliver::standing::Standing;
use crate::sync::exit::{Trouble, exit_code};
use crate::sync::ports::{SourceError, SourceErrorKind, Traffic};
use crate::sync::report::status::SinkState;
use crate::sync::report::summary::{PassSummary, SinkSummary, StreamOutcome, StreamSummary};
use crate::sync::runs::{Run, RunKind};
use crate::sync::signal;
use crate::sync::timekeeper::{TimeError, Timekeeper};

/// After a shutdown was asked for, what is captured is still delivered for so long: a page in flight has its moment
/// first, and all of it is over within five seconds.
const LAST_DELIVERIES: Duration = Duration::from_secs(4);
/// How long the question for the time may still take by then.
const LAST_CALL: Duration = Duration::from_secs(3);

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
    /// deliveries. A shutdown ends it early, without a page that would have to be fetched again: what is captured by
    /// then is delivered to the sinks that are well, as far as a few seconds allow, and the rest stays queued.
    ///
    /// # Errors
    /// Only when the store fails (exit 74): everything else is in the summary.
    pub async fn sync_once(
        &self,
        options: &SyncOptions,
        cancel: &CancellationToken,
    ) -> Result<PassSummary, StoreError> {
        // A failing store ends everything that still runs.
        let stop = Stop::on(cancel);
        self.beside_deliveries(&stop, async {
            let mut reports = self.capture(options, &stop.asked).await?;
            self.load_sinks(&mut reports, options.wait_for_quota, &stop.asked).await?;
            self.sweep(&mut reports, options.wait_for_quota, &stop.asked).await?;
            Ok(reports)
        })
        .await
    }

    /// Runs `capture` while every sink delivers, until all of them are drained or do not take deliveries.
    pub(super) async fn beside_deliveries(
        &self,
        stop: &Stop,
        capture: impl Future<Output = Result<BTreeMap<Stream, PassReport>, StoreError>>,
    ) -> Result<PassSummary, StoreError> {
        let started = Instant::now();
        let before = self.standings();
        let whole_before = self.whole().await?;
        self.positions.expire().await?;
        let (captured, capture_ended) = signal::channel(false);
        // Said before the first of them begins: capture must not take one for idle that has not had its turn.
        self.positions.are_at_work(self.sinks.keys().cloned());
        let mut deliveries = JoinSet::new();
        for lane in self.sinks.values().map(Arc::clone) {
            let (ending, positions) = (stop.ending(true, &capture_ended), Arc::clone(&self.positions));
            deliveries.spawn(async move {
                let ended = lane.run(ending).await;
                positions.rests(lane.name());
                ended
            });
        }
        let reports = capture.await;
        self.positions.all_rest();
        if reports.is_err() {
            stop.at_once();
        }
        captured.set(true);
        let delivered = joined(&mut deliveries, stop).await;
        let reports = reports?;
        delivered?;
        // A store that failed has ended this above: whoever asked for the stop now was somebody else.
        self.summary(reports, &before, &whole_before, stop.asked.is_cancelled(), started).await
    }

    async fn capture(
        &self,
        options: &SyncOptions,
        cancel: &CancellationToken,
    ) -> Result<BTreeMap<Stream, PassReport>, StoreError> {
        // What a person paused waits for that person.
        let wanted = |stream: &Stream| {
            (options.streams.is_empty() || options.streams.contains(stream)) && self.paused(*stream).is_none()
        };
        let began = self.clock.now();
        let mut lanes: Vec<Arc<Lane>> =
            self.lanes.iter().filter(|(stream, _)| wanted(stream)).map(|(_, lane)| Arc::clone(lane)).collect();
        let mut reports = BTreeMap::new();
        for lane in &lanes {
            if let Some(report) = still_asked_to_wait(lane, &self.timekeeper, self.clock.now()).await? {
                reports.insert(lane.stream(), report);
            }
        }
        lanes.retain(|lane| !reports.contains_key(&lane.stream()));
        if lanes.is_empty() {
            return Ok(reports);
        }
        let streams: Vec<Stream> = lanes.iter().map(|lane| lane.stream()).collect();
        let (time, mut traffic) = match self.sierra_time(&streams, options.wait_for_quota, cancel).await? {
            Some(Ok(time)) => time,
            None => {
                for lane in lanes {
                    reports.insert(lane.stream(), interrupted(&lane).await?);
                }
                return Ok(reports);
            }
            Some(Err(error)) => {
                let mut traffic = error.traffic;
                for lane in lanes {
                    let report = without_time(&lane, &error, std::mem::take(&mut traffic)).await?;
                    reports.insert(lane.stream(), report);
                }
                self.post(&reports).await?;
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
        match failed {
            Some(error) => Err(error),
            None => {
                for (stream, report) in &reports {
                    self.runs.note(Run::of(*stream, RunKind::Pass, began, self.clock.now(), report));
                }
                self.note_missed(&mut reports).await?;
                self.post(&reports).await.map(|()| reports)
            }
        }
    }

    /// What is captured while a sink has no place never waits for it: that is a gap, of this run as of the one in which
    /// the sink lost its place.
    async fn note_missed(&self, reports: &mut BTreeMap<Stream, PassReport>) -> Result<(), StoreError> {
        let places = self.positions.places().await?;
        let detached = places.iter().filter(|(_, place)| !place.position.attached);
        let missing: BTreeSet<Stream> = detached
            .filter_map(|(name, _)| self.sinks.get(name))
            .flat_map(|lane| lane.route.streams.iter().copied())
            .collect();
        for (stream, report) in reports {
            if missing.contains(stream) && report.tally.entries.changed + report.tally.entries.deleted > 0 {
                report.troubles.insert(Trouble::Gap);
            }
        }
        Ok(())
    }

    /// Asks for the time, sitting out quota waits if that is wanted; `None` when a shutdown came first.
    pub(super) async fn sierra_time(
        &self,
        streams: &[Stream],
        wait_for_quota: bool,
        cancel: &CancellationToken,
    ) -> Result<Option<Result<(SierraTime, Traffic), SourceError>>, StoreError> {
        loop {
            let error = match ask_for_time(&self.timekeeper, streams, cancel).await? {
                Some(Err(error)) => error,
                time => return Ok(time),
            };
            match error.kind {
                SourceErrorKind::WaitingQuota { resume_at } if wait_for_quota && !cancel.is_cancelled() => {
                    let left: SignedDuration = resume_at.duration_since(self.clock.now());
                    let mut lifts = self.quota_lifts.subscribe();
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep(left.try_into().unwrap_or_default()) => {}
                        () = lifts.changed() => {}
                        () = cancel.cancelled() => return Ok(None),
                    }
                }
                _ => return Ok(Some(Err(error))),
            }
        }
    }

    async fn post(&self, reports: &BTreeMap<Stream, PassReport>) -> Result<(), StoreError> {
        for (stream, report) in reports {
            post(&self.board, &self.timekeeper, *stream, report).await?;
        }
        Ok(())
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
        was_interrupted: bool,
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
            // Left for the next run, as a window would be.
            if was_interrupted && state == SinkState::Ok && place.position.pending > 0 {
                troubles.insert(Trouble::Gap);
            }
            let lost = (!place.position.attached).then(|| needs_reload(&name, &lane.route.streams, &place.note.gaps));
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
                error: lost.or(now.error),
            };
            sinks.insert(name, summary);
        }
        let streams = reports.into_iter().map(|(stream, report)| (stream.name().to_owned(), summarised(report)));
        let streams = streams.collect();
        let exit = exit_code(troubles);
        let elapsed_seconds = started.elapsed().as_secs_f64();
        Ok(PassSummary {
            schema: 1,
            ok: exit == 0,
            exit,
            elapsed_seconds,
            streams,
            sinks,
            set_aside: None,
            error: None,
        })
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
    timekeeper.passed(lane.stream(), succeeded, report.reached_back, report.listed).await?;
    Ok(report)
}

/// Notes how a pass ended, here and for the next process.
pub(super) async fn post(
    board: &Board,
    timekeeper: &Timekeeper,
    stream: Stream,
    report: &PassReport,
) -> Result<(), StoreError> {
    board.note(stream, |note| {
        note.outcome = Some(report.outcome);
        note.error = report.error.clone();
        note.needs_person = report.needs_person;
    });
    timekeeper.ended(stream, report.outcome, report.error.clone(), report.asked_to_wait_until).await
}

/// Asks for the time; `None` when a shutdown did not leave an answer its moment.
pub(super) async fn ask_for_time(
    timekeeper: &Timekeeper,
    streams: &[Stream],
    cancel: &CancellationToken,
) -> Result<Option<Result<(SierraTime, Traffic), SourceError>>, StoreError> {
    let too_late = async {
        cancel.cancelled().await;
        tokio::time::sleep(LAST_CALL).await;
    };
    tokio::select! {
        biased;
        time = timekeeper.ask(streams) => match time {
            Ok(time) => Ok(Some(Ok(time))),
            Err(TimeError::Store(error)) => Err(error),
            Err(TimeError::Source(error)) => Ok(Some(Err(error))),
        },
        () = too_late => Ok(None),
    }
}

/// How everything that runs is told to stop.
pub(super) struct Stop {
    /// The shutdown is asked for, or the store has failed.
    pub(super) asked: CancellationToken,
    too_late: CancellationToken,
    /// Ends with this.
    _timer: JoinSet<()>,
}

impl Stop {
    /// Stops when `cancel` says so.
    pub(super) fn on(cancel: &CancellationToken) -> Self {
        let (asked, too_late) = (cancel.child_token(), CancellationToken::new());
        let mut timer = JoinSet::new();
        let (begun, over) = (asked.clone(), too_late.clone());
        timer.spawn(async move {
            begun.cancelled().await;
            tokio::time::sleep(LAST_DELIVERIES).await;
            over.cancel();
        });
        Self { asked, too_late, _timer: timer }
    }

    /// The store has failed: nothing may go on.
    pub(super) fn at_once(&self) {
        self.asked.cancel();
        self.too_late.cancel();
    }

    /// When the deliveries of one sink end.
    pub(super) fn ending(&self, when_drained: bool, captured: &signal::Receiver<bool>) -> Ending {
        let (asked, too_late) = (self.asked.clone(), self.too_late.clone());
        Ending { when_drained, captured: captured.clone(), asked, too_late }
    }
}

/// Waits for all `tasks`; the first that fails stops everything.
pub(super) async fn joined(tasks: &mut JoinSet<Result<(), StoreError>>, stop: &Stop) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    while let Some(joined) = tasks.join_next().await {
        if let Err(error) = flatten(joined) {
            stop.at_once();
            outcome = Err(error);
        }
    }
    outcome
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
fn flatten(joined: Result<Result<(), StoreError>, tokio::task::JoinError>) -> Result<(), StoreError> {
    joined.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // Tasks are only ever cancelled by dropping the engine with them.
        Err(_) => Ok(()),
    })
}
