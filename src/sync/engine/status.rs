//! The status document: everything at a glance, from the store and from what the engine remembers of its passes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Engine, StreamNote};
use crate::record::Stream;
use crate::sync::deliver::lane::Standing;
use crate::sync::ledger::coverage::{coverage, gaps};
use crate::sync::ledger::days::deleted_through;
use crate::sync::ledger::own_rows;
use crate::sync::ports::OutboxUsage;
use crate::sync::positions::SinkPlace;
use crate::sync::rebuild;
use crate::sync::report::StatusReport;
use crate::sync::report::status::{
    BackfillStatus, BreakerState, BreakerStatus, Gap, OutboxStatus, OverallState, QuotaStatus, SinkState, SinkStatus,
    StoreState, StoreStatus, StreamState, StreamStatus, TokenState, TokenStatus,
};
use crate::sync::report::summary::{ErrorReport, StreamOutcome};
use crate::sync::{LedgerRow, StoreError};

/// What the engine cannot know: the state of the connection to Sierra.
pub trait Vitals: Send + Sync {
    /// The quota ledger.
    fn quota(&self) -> QuotaStatus;
    /// The key's breaker.
    fn breaker(&self) -> BreakerStatus;
    /// The session token.
    fn token(&self) -> TokenStatus;
    /// About how many seconds so many paced calls take, when that can be told.
    fn seconds_for(&self, _calls: u64) -> Option<f64> {
        None
    }
}

/// What the status needs from outside.
pub struct StatusInputs<'a> {
    /// The connection to Sierra.
    pub vitals: &'a dyn Vitals,
    /// Version of the program.
    pub version: &'a str,
    /// When the process started; `None` when no service runs.
    pub started: Option<Timestamp>,
    /// From this lag on a stream is stale.
    pub stale_after: Duration,
}

impl Engine {
    /// The status as of now.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn status(&self, inputs: &StatusInputs<'_>) -> Result<StatusReport, StoreError> {
        let now = self.clock.now();
        let mut streams = BTreeMap::new();
        let mut quarantine = BTreeMap::new();
        let mut rebuilding = Vec::new();
        for stream in self.lanes.keys().copied() {
            let read = move |store: &dyn crate::sync::Store| {
                Ok::<_, StoreError>((own_rows(store, stream)?, store.quarantine_count(stream)?))
            };
            let (rows, quarantined) = self.store.call(read).await?;
            if rebuild::is_under_way(&rows) {
                rebuilding.push(stream.name());
            }
            let last_success = self.timekeeper.last_success(stream).await;
            let note = match (self.board.read(stream), self.timekeeper.last_pass(stream).await) {
                (note @ StreamNote { outcome: Some(_), .. }, _) | (note, None) => note,
                // A quota wait is told by the rows that wait, as long as they do.
                (note, Some(last)) => StreamNote {
                    outcome: Some(last.outcome).filter(|outcome| *outcome != StreamOutcome::WaitingQuota),
                    error: last.error,
                    ..note
                },
            };
            let mut status = stream_status(&rows, note, last_success, quarantined, now, inputs.stale_after);
            status.backfill = self.backfill_status(stream, inputs.vitals, now).await?;
            streams.insert(stream.name().to_owned(), status);
            quarantine.insert(stream.name().to_owned(), quarantined);
        }
        let (mut sinks, mut reloads) = (BTreeMap::new(), Vec::new());
        for (name, place) in self.positions.places().await? {
            reloads.extend(Reload::of(&name, &place));
            if let Some(lane) = self.sinks.get(&name) {
                let status = sink_status(&name, &lane.route.streams, place, lane.standing(), lane.is_paused(), now);
                sinks.insert(name, status);
            }
        }
        let OutboxUsage { entries, bytes } = self.store.call(|store| store.outbox_usage()).await?;
        let mut report = StatusReport {
            schema: 1,
            version: inputs.version.to_owned(),
            state: OverallState::Ok,
            message: String::new(),
            now,
            started: inputs.started,
            streams,
            quota: inputs.vitals.quota(),
            breaker: inputs.vitals.breaker(),
            token: inputs.vitals.token(),
            sinks,
            quarantine,
            outbox: OutboxStatus { entries, bytes },
            store: StoreStatus { state: StoreState::Ok },
        };
        (report.state, report.message) = overall(&report, &reloads, &rebuilding);
        Ok(report)
    }
}

impl Engine {
    /// The backfill of `stream` that is under way or parked; of several the one that was worked on last.
    async fn backfill_status(
        &self,
        stream: Stream,
        vitals: &dyn Vitals,
        now: Timestamp,
    ) -> Result<Option<BackfillStatus>, StoreError> {
        let Some(job) = self.book.latest(stream).await? else { return Ok(None) };
        let rows = self.store.call(move |store| store.ledger(stream)).await?;
        let progress = job.progress(&rows);
        let seconds = progress.calls_left.and_then(|calls| vitals.seconds_for(calls));
        let left = seconds.and_then(|seconds| SignedDuration::try_from_secs_f64(seconds).ok());
        let eta = left.and_then(|left| job.resume_at.unwrap_or(now).max(now).checked_add(left).ok());
        Ok(Some(BackfillStatus {
            id: job.id,
            done: progress.done,
            total: progress.total,
            percent: progress.percent(),
            eta,
            calls_left: progress.calls_left,
            state: job.state.name().to_owned(),
        }))
    }
}

fn stream_status(
    rows: &[LedgerRow],
    note: StreamNote,
    last_success: Option<Timestamp>,
    quarantined: u64,
    now: Timestamp,
    stale_after: Duration,
) -> StreamStatus {
    let covered = coverage(rows);
    let lag_seconds =
        covered.watermark.map(|watermark| u64::try_from(now.duration_since(watermark).as_secs()).unwrap_or(0));
    let is_parked =
        rows.iter().any(|row| row.is_owed() && row.attempts == 0 && row.resume_at.is_some_and(|at| at > now));
    let state = match note.outcome {
        _ if note.needs_person => StreamState::Stopped,
        Some(StreamOutcome::Stopped) => StreamState::Stopped,
        Some(StreamOutcome::Suspended) => StreamState::Suspended,
        Some(StreamOutcome::WaitingQuota) => StreamState::WaitingQuota,
        None if is_parked => StreamState::WaitingQuota,
        _ if !covered.loaded => StreamState::Loading,
        _ if lag_seconds.is_none_or(|lag| lag > stale_after.as_secs()) => StreamState::Behind,
        _ => StreamState::Ok,
    };
    StreamStatus {
        state,
        lag_seconds,
        watermark: covered.watermark,
        deleted_through: deleted_through(rows),
        last_success,
        next_run: note.next_run,
        gaps: gaps(rows),
        backfill: None,
        last_error: note.error,
        quarantined,
    }
}

fn sink_status(
    name: &str,
    streams: &[Stream],
    place: SinkPlace,
    standing: Standing,
    is_paused: bool,
    now: Timestamp,
) -> SinkStatus {
    let lacks_something = place.needs_reload();
    let SinkPlace { position, note } = place;
    // What an earlier process met stands until this one has delivered, or failed to.
    let (noted, since) = note.trouble.map(|trouble| ((trouble.state, trouble.error), trouble.since)).unzip();
    let (noted_state, noted_error) = noted.unzip();
    let trouble = standing.trouble.or(noted_state);
    let state = match (lacks_something, is_paused) {
        (true, _) => SinkState::NeedsReload,
        (_, true) => SinkState::Paused,
        _ => trouble.unwrap_or(SinkState::Ok),
    };
    let lost = (!position.attached).then(|| needs_reload(name, streams, &note.gaps));
    let age = |captured: Timestamp| u64::try_from(now.duration_since(captured).as_secs()).unwrap_or(0);
    SinkStatus {
        state,
        pending: position.pending,
        oldest_age_seconds: position.oldest_pending.map(age),
        since,
        breaker: if trouble == Some(SinkState::Open) { BreakerState::Open } else { BreakerState::Closed },
        published: streams
            .iter()
            .map(|stream| (stream.name().to_owned(), note.published.get(stream).copied()))
            .collect(),
        gaps: note.gaps,
        error: lost.or(standing.error).or(noted_error),
    }
}

/// Why calls are halted, and what ends that.
fn halted(breaker: &BreakerStatus) -> String {
    let reason = breaker.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    match breaker.next_probe {
        Some(next) => format!(
            "Calls to Sierra are halted{reason} until a health check passes; the next is due at {}.",
            next.strftime("%Y-%m-%dT%H:%M:%SZ")
        ),
        // Only a person can halt them without end.
        None => format!("Calls to Sierra are halted{reason} until you run `sierra-sync breaker close --yes`."),
    }
}

/// Why a sink gets nothing until it is loaded again, and how to load it.
pub(super) fn needs_reload(name: &str, streams: &[Stream], gaps: &[Gap]) -> ErrorReport {
    let why = gaps.last().and_then(|gap| gap.error.as_deref()).unwrap_or("it lost its place");
    let commands: Vec<String> =
        streams.iter().map(|stream| format!("`sierra-sync backfill {stream} --sink {name} --force`")).collect();
    ErrorReport {
        kind: "needs_reload".into(),
        message: format!("gets nothing until it is loaded again: {why}"),
        endpoint: None,
        status_code: None,
        code: None,
        correlation_id: None,
        hint: Some(format!("run {}", commands.join(", then "))),
    }
}

/// A sink that must be loaded.
struct Reload {
    sink: String,
    streams: Vec<&'static str>,
    /// Whether the next `sync` does it unasked: the sink has a place that its load can be relative to.
    by_itself: bool,
}

impl Reload {
    fn of(sink: &str, place: &SinkPlace) -> Option<Self> {
        let streams = place.note.unloaded.iter().map(|stream| stream.name()).collect();
        place.needs_reload().then(|| Self { sink: sink.to_owned(), streams, by_itself: place.position.attached })
    }

    fn sentence(&self) -> String {
        let Self { sink, streams, by_itself } = self;
        if *by_itself {
            let streams = streams.join(", ");
            return format!("Sink {sink} is still to be loaded with {streams}: `sierra-sync sync` does it.");
        }
        let commands: Vec<String> =
            streams.iter().map(|stream| format!("`sierra-sync backfill {stream} --sink {sink} --force`")).collect();
        format!("Sink {sink} must be loaded again: run {}.", commands.join(", then "))
    }
}

/// The overall state and the sentence that explains it, the gravest matter first.
fn overall(report: &StatusReport, reloads: &[Reload], rebuilding: &[&str]) -> (OverallState, String) {
    let streams_in = |wanted: &dyn Fn(&StreamStatus) -> bool| {
        let names = report.streams.iter().filter(|(_, stream)| wanted(stream)).map(|(name, _)| name.as_str());
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    if report.token.state == TokenState::Latched {
        let hint = "Sierra refuses the credential: put a valid secret in place, or have the key enabled; a changed \
                    address, key or secret is tried at once, the same one once an hour, or as soon as you run \
                    `sierra-sync recover`.";
        return (OverallState::Failing, hint.into());
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::Stopped) {
        return (OverallState::Failing, format!("Stopped until you act: {names}; see last_error."));
    }
    if report.breaker.state != BreakerState::Closed {
        return (OverallState::Degraded, halted(&report.breaker));
    }
    if let Some(endpoint) = report.breaker.suspended_endpoints.first() {
        return (OverallState::Degraded, format!("The endpoint {endpoint} is suspended until it recovers."));
    }
    if let Some(reload) = reloads.first() {
        return (OverallState::Degraded, reload.sentence());
    }
    if let Some(names) = streams_in(&|stream| !stream.gaps.is_empty()) {
        return (OverallState::Degraded, format!("Windows are owed and will be tried again: {names}."));
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::Behind) {
        return (OverallState::Degraded, format!("Behind: {names}."));
    }
    if let Some((name, _)) = report.sinks.iter().find(|(_, sink)| sink.state == SinkState::Open) {
        return (OverallState::Degraded, format!("Sink {name} does not take deliveries; they wait in the queue."));
    }
    if !rebuilding.is_empty() {
        let names = rebuilding.join(", ");
        let why = "a sink held more than this state ever issued";
        return (OverallState::Ok, format!("A rebuild is under way, since {why}; it ends by itself: {names}."));
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::Loading) {
        return (OverallState::Ok, format!("The first load is under way: {names}."));
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::WaitingQuota) {
        return (OverallState::Ok, format!("Waiting for quota: {names}."));
    }
    (OverallState::Ok, "All streams are fresh.".into())
}
