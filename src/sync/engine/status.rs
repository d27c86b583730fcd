//! The status document: everything at a glance, from the store and from what the engine remembers of its passes.

mod sentence;
mod under_way;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use self::sentence::{Reload, Told, failed, overall};
use super::{Engine, StreamNote, Supervisor};
use crate::record::Stream;
use crate::sync::deliver::standing::Standing;
use crate::sync::ledger::coverage::{coverage, gap_of, gaps};
use crate::sync::ledger::days::deleted_through;
use crate::sync::ledger::is_own;
use crate::sync::ports::OutboxUsage;
use crate::sync::positions::SinkPlace;
use crate::sync::rebuild::{self, Damage};
use crate::sync::report::StatusReport;
use crate::sync::report::status::{
    BreakerState, BreakerStatus, Gap, OutboxStatus, OverallState, QuotaState, QuotaStatus, SinkState, SinkStatus,
    StoreState, StoreStatus, StreamState, StreamStatus, TokenStatus,
};
use crate::sync::report::summary::{ErrorReport, StreamOutcome};
use crate::sync::schedule::Staleness;
use crate::sync::timekeeper::LastPass;
use crate::sync::{LedgerRow, Pass, RowState, StoreError};

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

/// A stream of which Sierra lists no deletion for so long may be one that keeps none (BR-011, BR-049).
const QUIET_FOR_LONG: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What the status needs from outside.
pub struct StatusInputs<'a> {
    /// The connection to Sierra.
    pub vitals: &'a dyn Vitals,
    /// Version of the program.
    pub version: &'a str,
    /// When the process started; `None` when no service runs.
    pub started: Option<Timestamp>,
    /// From this lag on, beyond what its schedule explains, a stream is stale.
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
        let (mut stuck, mut stale, mut empty, mut quiet) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut failing = Vec::new();
        for (stream, lane) in &self.lanes {
            let stream = *stream;
            let read = move |store: &dyn crate::sync::Store| {
                let all = store.ledger(stream)?;
                let rows: Vec<LedgerRow> = all.iter().filter(|row| is_own(row.pass)).cloned().collect();
                let is_empty = coverage(&rows).loaded && store.remembered_after(stream, None, 1)?.is_empty();
                Ok::<_, StoreError>((rows, all, store.quarantine_count(stream)?, is_empty))
            };
            let (rows, all, quarantined, is_empty) = self.store.call(read).await?;
            let last_success = self.timekeeper.last_success(stream).await;
            let last_pass = self.timekeeper.last_pass(stream).await;
            let note = match (self.board.read(stream), last_pass.clone()) {
                (note @ StreamNote { outcome: Some(_), .. }, _) | (note, None) => note,
                // A quota wait is told by the rows that wait, as long as they do.
                (note, Some(last)) => StreamNote {
                    outcome: Some(last.outcome).filter(|outcome| *outcome != StreamOutcome::WaitingQuota),
                    error: last.error,
                    ..note
                },
            };
            let (note, last_pass) = match inputs.vitals.breaker().state {
                BreakerState::Closed => {
                    (not_held_any_more(note), last_pass.filter(|last| !was_held(last.error.as_ref())))
                }
                BreakerState::Open | BreakerState::HalfOpen => (note, last_pass),
            };
            let is_failing = matches!(note.outcome, Some(StreamOutcome::Failed | StreamOutcome::Suspended));
            let settings = &lane.settings;
            let limit = Staleness::of(&settings.cadence, settings.settle, inputs.stale_after).limit(now);
            let mut status = stream_status(&rows, note, last_success, quarantined, now, limit);
            if is_empty && quarantined == 0 && status.gaps.is_empty() {
                empty.push(stream.name());
            }
            status.silent_since = self.timekeeper.silent_since(stream).await;
            let no_deletions = self.timekeeper.no_deletions_since(stream).await;
            if let Some(since) = no_deletions.filter(|since| now.duration_since(*since) >= QUIET_FOR_LONG) {
                quiet.push((stream.name(), since));
            }
            status.rebuilding = rebuild::is_under_way(&rows);
            status.read_to = read_to(stream, &rows);
            if let Some(sentence) = stuck_load(stream, &rows, &status, last_pass.as_ref(), inputs, now) {
                // It is not under way, whatever the ledger says.
                status.state = if status.state == StreamState::Loading { StreamState::Behind } else { status.state };
                stuck.push(sentence);
            }
            // What became visible late may be missing as long as it was not swept.
            let is_failed = |row: &&LedgerRow| row.pass == Pass::LateSweep && row.state == RowState::Failed;
            status.gaps.extend(all.iter().filter(is_failed).map(gap_of));
            status.backfill = self.backfill_status(stream, &all, inputs.vitals, now).await?;
            status.reconcile = self.reconcile_status(stream, all, inputs.vitals, now).await?;
            status.paused = self.paused(stream);
            if status.paused.is_some() || inputs.started.is_some() {
                // A pause or a stop cut it off, and a service goes on by itself: there is nothing to do about it.
                status.last_error = status.last_error.filter(|error| error.kind != "interrupted");
            }
            if status.paused.is_some() {
                // Whether it has become stale meanwhile is for the sentence on top.
                if status.state == StreamState::Behind {
                    stale.push(stream.name());
                }
                status.state = StreamState::Paused;
            } else if let Some(error) =
                status.last_error.as_ref().filter(|_| is_failing && status.state != StreamState::Loading)
            {
                failing.extend(failed(stream, error));
            }
            streams.insert(stream.name().to_owned(), status);
            quarantine.insert(stream.name().to_owned(), quarantined);
        }
        let (mut sinks, mut reloads) = (BTreeMap::new(), Vec::new());
        for (name, place) in self.positions.places().await? {
            reloads.extend(Reload::of(&name, &place));
            if let Some(lane) = self.sinks.get(&name) {
                let mut status = sink_status(&name, &lane.route.streams, place, lane.standing(), lane.is_paused(), now);
                status.paused = lane.pause();
                sinks.insert(name, status);
            }
        }
        let OutboxUsage { entries, bytes } = self.store.call(|store| store.outbox_usage()).await?;
        let held = self.positions.held().await?.map(|held| format!("{held}; {}", held.hint()));
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
            outbox: OutboxStatus { entries, bytes, max_bytes: self.positions.outbox_max_bytes() },
            store: StoreStatus { state: StoreState::Ok, held },
            restarted: self.supervisor.restarts(),
        };
        let damage = self.store.call(Damage::before).await?;
        let told = Told {
            stuck: &stuck,
            reloads: &reloads,
            stale: &stale,
            empty: &empty,
            quiet: &quiet,
            failing: &failing,
            damage: damage.as_ref(),
        };
        (report.state, report.message) = overall(&report, &told);
        Ok(report)
    }
}

impl Engine {
    /// Who starts tasks of this process again that panic; for those, too, that are not the engine's own.
    #[must_use]
    pub fn supervisor(&self) -> Arc<Supervisor> {
        Arc::clone(&self.supervisor)
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
    let ahead = covered.watermark.map_or(0, |watermark| watermark.duration_since(now).as_secs());
    let limit = stale_after.as_secs();
    let is_parked = rows.iter().any(|row| row.waits_for_quota(now));
    let state = match note.outcome {
        _ if note.needs_person => StreamState::Stopped,
        Some(StreamOutcome::Stopped) => StreamState::Stopped,
        Some(StreamOutcome::Suspended) => StreamState::Suspended,
        Some(StreamOutcome::WaitingQuota) => StreamState::WaitingQuota,
        None if is_parked => StreamState::WaitingQuota,
        _ if !covered.loaded => StreamState::Loading,
        _ if lag_seconds.is_none_or(|lag| lag > limit) => StreamState::Behind,
        _ => StreamState::Ok,
    };
    StreamStatus {
        state,
        lag_seconds,
        ahead_seconds: u64::try_from(ahead).ok().filter(|ahead| *ahead > 0),
        stale_after_seconds: limit,
        watermark: covered.watermark,
        deleted_through: deleted_through(rows),
        last_success,
        silent_since: None,
        next_run: note.next_run,
        gaps: gaps(rows),
        rebuilding: false,
        read_to: None,
        backfill: None,
        reconcile: None,
        last_error: note.error,
        quarantined,
        paused: None,
    }
}

/// How far a sweep of the whole stream is that is under way. How much there is Sierra does not tell.
fn read_to(stream: Stream, rows: &[LedgerRow]) -> Option<String> {
    let is_whole = |row: &&LedgerRow| matches!(row.pass, Pass::Load | Pass::Rebuild) && row.is_owed();
    let position = rows.iter().filter(is_whole).filter_map(|row| row.position).max()?;
    (stream != Stream::Patrons).then(|| position.to_string())
}

/// What keeps the first load of `stream` from getting on, and what to do; `None` once it is done, while it does get on,
/// and while it waits for quota or for a person.
/// Whether something ended because the breaker was open.
fn was_held(error: Option<&ErrorReport>) -> bool {
    error.is_some_and(|error| error.kind == "circuit_open")
}

/// What was said of a stream that was not asked while the breaker was open, now that calls go again: it would tell of a
/// hold that is none, and of a command that was given.
fn not_held_any_more(note: StreamNote) -> StreamNote {
    match note.error {
        Some(error) if was_held(Some(&error)) => {
            let endpoint = error.endpoint.as_deref().map(|endpoint| format!("{endpoint}: ")).unwrap_or_default();
            let error = ErrorReport {
                message: format!("{endpoint}not asked while the breaker was open; it is closed now"),
                hint: Some("the next pass asks again; without a service `sierra-sync sync` does so at once".into()),
                ..error
            };
            StreamNote { outcome: None, error: Some(error), ..note }
        }
        _ => note,
    }
}

fn stuck_load(
    stream: Stream,
    rows: &[LedgerRow],
    status: &StreamStatus,
    last_pass: Option<&LastPass>,
    inputs: &StatusInputs<'_>,
    now: Timestamp,
) -> Option<String> {
    let may_be = matches!(status.state, StreamState::Loading | StreamState::Suspended);
    if status.watermark.is_some() || !may_be || inputs.vitals.quota().state == QuotaState::WaitingQuota {
        return None;
    }
    let under_way = rows.iter().filter(|row| row.is_owed() && row.state != RowState::Failed);
    let got_on = under_way.map(|row| row.touched).max();
    let has_failed = |last: &&LastPass| match last.outcome {
        StreamOutcome::Failed | StreamOutcome::Partial | StreamOutcome::Suspended => {
            // One that was interrupted says nothing of the next, nor does one that was followed by pages.
            last.error.as_ref().is_none_or(|error| error.kind != "interrupted")
                && got_on.is_none_or(|got_on| last.at.is_none_or(|at| at >= got_on))
        }
        StreamOutcome::CaughtUp | StreamOutcome::WaitingQuota | StreamOutcome::Stopped => false,
    };
    if let Some(failed) = last_pass.filter(has_failed) {
        let error = failed.error.as_ref();
        let why = error.map_or_else(String::new, |error| format!(": {}", error.message_under(stream.name())));
        let hint = error.and_then(|error| error.hint.as_deref()).unwrap_or("run `sierra-sync check`");
        return Some(format!("The first load of {stream} fails{why}; {hint}."));
    }
    let since = got_on.max(inputs.started)?;
    let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    (age > inputs.stale_after).then(|| {
        let hint = match inputs.started {
            Some(_) => "run `sierra-sync check`, and see the log",
            None => "`sierra-sync sync` goes on with it",
        };
        format!("The first load of {stream} has not got on since {}; {hint}.", since.strftime("%Y-%m-%dT%H:%M:%SZ"))
    })
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
        paused: None,
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
