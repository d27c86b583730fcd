//! The status document: `status --json` and `/status` (schema `schemas/status.json`).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::ErrorReport;

/// Everything there is to see at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReport {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Overall.
    pub state: OverallState,
    /// One sentence: whether all is well and, if not, what to do.
    pub message: String,
    /// When this was said.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub now: Timestamp,
    /// When the process started; `None` when no service runs.
    #[schemars(with = "Option<String>")]
    pub started: Option<Timestamp>,
    /// By stream.
    pub streams: BTreeMap<String, StreamStatus>,
    /// The quota ledger.
    pub quota: QuotaStatus,
    /// The key's breaker.
    pub breaker: BreakerStatus,
    /// The session token.
    pub token: TokenStatus,
    /// By sink.
    pub sinks: BTreeMap<String, SinkStatus>,
    /// Open quarantine entries by stream.
    pub quarantine: BTreeMap<String, u64>,
    /// The durable queue.
    pub outbox: OutboxStatus,
    /// The store.
    pub store: StoreStatus,
    /// Tasks of this process that met a defect and were started again, by name; empty while none did.
    #[serde(default)]
    pub restarted: BTreeMap<String, TaskRestarts>,
}

/// Overall states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverallState {
    /// All is well; a quota wait alone is well.
    Ok,
    /// A gap, an open breaker, a suspended endpoint, a sink that needs a reload, or a stale stream.
    Degraded,
    /// A stopped stream, a closed credential latch, or a failed store.
    Failing,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamStatus {
    /// How it stands.
    pub state: StreamState,
    /// Now minus watermark, in seconds; `None` before the first load is done.
    pub lag_seconds: Option<u64>,
    /// By how many seconds the watermark is ahead of our own clock; the lag is 0 then. `None` while it is not.
    #[serde(default)]
    pub ahead_seconds: Option<u64>,
    /// A greater lag is stale: `alerts.stale_after`, and the lag that the stream's own schedule explains.
    #[serde(default)]
    pub stale_after_seconds: u64,
    /// Everything before this is captured.
    #[schemars(with = "Option<String>")]
    pub watermark: Option<Timestamp>,
    /// Every deletion up to here is captured.
    #[schemars(with = "Option<String>")]
    pub deleted_through: Option<Timestamp>,
    /// The last pass without failure.
    #[schemars(with = "Option<String>")]
    pub last_success: Option<Timestamp>,
    /// Since when no window has brought a record, once that is unlikely at these hours of the week; `None` otherwise.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub silent_since: Option<Timestamp>,
    /// The next pass, when a service runs.
    #[schemars(with = "Option<String>")]
    pub next_run: Option<Timestamp>,
    /// What is owed.
    pub gaps: Vec<Gap>,
    /// Whether the stream is being rebuilt: read and delivered as a whole, since the state did not know what a sink held.
    #[serde(default)]
    pub rebuilding: bool,
    /// While all of it is read, in a first load or a rebuild: the number of the last record that was. Never of patrons.
    #[serde(default)]
    pub read_to: Option<String>,
    /// A running backfill.
    pub backfill: Option<BackfillStatus>,
    /// A reconciliation that is under way.
    #[serde(default)]
    pub reconcile: Option<ReconcileStatus>,
    /// The last failure.
    pub last_error: Option<ErrorReport>,
    /// Open quarantine entries.
    pub quarantined: u64,
    /// Who paused it, and why; `None` while nobody has.
    #[serde(default)]
    pub paused: Option<Pause>,
}

/// Stream states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    /// Fresh.
    Ok,
    /// The first load is under way.
    Loading,
    /// Late.
    Behind,
    /// Waits for quota.
    WaitingQuota,
    /// Its endpoint is suspended.
    Suspended,
    /// Stopped until a person acts.
    Stopped,
    /// Paused by a person.
    Paused,
}

/// Something that a person paused by command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// Since when.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// A span that is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Start, inclusive: a time, or for id ranges a record number (never of patrons).
    pub from: String,
    /// End, exclusive: a time, or a record number.
    pub to: String,
    /// Failed attempts.
    pub attempts: u32,
    /// The last failure.
    pub error: Option<String>,
}

/// A backfill's progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackfillStatus {
    /// Its id.
    pub id: String,
    /// Records done.
    pub done: u64,
    /// Records in all, when known.
    pub total: Option<u64>,
    /// Percent done, when known.
    pub percent: Option<f64>,
    /// When it should end, when known.
    #[schemars(with = "Option<String>")]
    pub eta: Option<Timestamp>,
    /// Calls still to make, when known.
    pub calls_left: Option<u64>,
    /// `running`, `paused`, …
    pub state: String,
}

/// A reconciliation's progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReconcileStatus {
    /// Whether whole records are compared.
    pub deep: bool,
    /// Whether what differs is put right.
    pub repair: bool,
    /// Records compared so far.
    pub checked: u64,
    /// Records in all, when known.
    pub total: Option<u64>,
    /// Percent done, when known.
    pub percent: Option<f64>,
    /// Records among them that differ.
    pub drift: u64,
    /// Records that are put right.
    pub repaired: u64,
    /// When it should end, when known.
    #[schemars(with = "Option<String>")]
    pub eta: Option<Timestamp>,
    /// Calls still to make, when known.
    pub calls_left: Option<u64>,
    /// `running`, `waiting_quota`, or `parked`: then it goes on when it is due or ordered again.
    pub state: String,
}

/// The quota ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaStatus {
    /// Calls the server grants per window, when it says so.
    pub limit: Option<u64>,
    /// Calls left in the window, when known.
    pub remaining: Option<u64>,
    /// When the window ends.
    #[schemars(with = "Option<String>")]
    pub resets_at: Option<Timestamp>,
    /// `ok` or `waiting_quota`.
    pub state: QuotaState,
    /// When calls go on.
    #[schemars(with = "Option<String>")]
    pub resume_at: Option<Timestamp>,
    /// Seconds waited for quota since the start.
    pub waited_seconds: f64,
    /// Refusals since the start.
    pub refused: u64,
}

/// Quota states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaState {
    /// Calls may go.
    Ok,
    /// A gate is closed.
    WaitingQuota,
}

/// The key's breaker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakerStatus {
    /// `closed` lets requests pass.
    pub state: BreakerState,
    /// Why it is not closed.
    pub reason: Option<String>,
    /// Since when it is in this state.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// When the next health check is due.
    #[schemars(with = "Option<String>")]
    pub next_probe: Option<Timestamp>,
    /// Whether a person holds it open: until `next_probe`, or without end.
    #[serde(default)]
    pub held: bool,
    /// Endpoints suspended on their own.
    pub suspended_endpoints: Vec<String>,
}

/// Breaker states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Requests pass.
    Closed,
    /// Requests are refused here.
    Open,
    /// One health check is out.
    HalfOpen,
}

/// The session token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenStatus {
    /// `none`, `ok`, `refreshing` or `latched`.
    pub state: TokenState,
    /// When it expires.
    #[schemars(with = "Option<String>")]
    pub expires_at: Option<Timestamp>,
}

/// Token states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// None was needed yet.
    None,
    /// Good.
    Ok,
    /// A new one is being fetched.
    Refreshing,
    /// The credential was refused: a person must act.
    Latched,
}

/// One sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkStatus {
    /// How it stands.
    pub state: SinkState,
    /// Changes that wait.
    pub pending: u64,
    /// Age of the oldest of them, in seconds.
    pub oldest_age_seconds: Option<u64>,
    /// Since when deliveries fail; `None` while they do not.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// The sink's own breaker.
    pub breaker: BreakerState,
    /// By stream: every change captured before this is confirmed.
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub published: BTreeMap<String, Option<Timestamp>>,
    /// Recorded gaps.
    pub gaps: Vec<Gap>,
    /// The last failure.
    pub error: Option<ErrorReport>,
    /// Who paused it by command, and why; `None` for a sink that the configuration pauses.
    #[serde(default)]
    pub paused: Option<Pause>,
}

/// Sink states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SinkState {
    /// Drains.
    Ok,
    /// A delivery failed and is tried again.
    Retrying,
    /// Its breaker is open.
    Open,
    /// Paused by a person or by the configuration.
    Paused,
    /// Lost its place; must be loaded again.
    NeedsReload,
}

/// The durable queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutboxStatus {
    /// Entries.
    pub entries: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes at which `when_full` of the sinks acts: `state.outbox_max_size`. 0 when not known.
    #[serde(default)]
    pub max_bytes: u64,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreStatus {
    /// `ok` or `failed`.
    pub state: StoreState,
    /// Why nothing is captured for want of room, on the disk or in the queue, and what to do; `None` when there is.
    #[serde(default)]
    pub held: Option<String>,
}

/// Store states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreState {
    /// Works.
    Ok,
    /// Failed.
    Failed,
}

/// A task that was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRestarts {
    /// How often, since the process started or took up another configuration.
    pub times: u32,
    /// When it was last.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last: Timestamp,
}

impl Gap {
    /// The start for people: a gap whose start is not known, or of days that Sierra never listed, begins in 1970.
    #[must_use]
    pub fn told_from(&self) -> &str {
        if self.from.starts_with("1970-01-01") { "the beginning" } else { &self.from }
    }
}

impl StreamStatus {
    /// Whether it is older than its schedule and the patience of people explain.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.lag_seconds.is_some_and(|lag| lag > self.stale_after_seconds)
    }
}

impl BreakerStatus {
    /// Whether a person holds it open at `now`: then only a person closes it before its time.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.held && self.state != BreakerState::Closed && self.next_probe.is_none_or(|until| until > now)
    }
}

impl TaskRestarts {
    /// A task that was started again is told of for so long.
    const TOLD_FOR: SignedDuration = SignedDuration::from_hours(1);

    /// Whether it was so lately, before `now`, that somebody should know.
    #[must_use]
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now.duration_since(self.last) < Self::TOLD_FOR
    }
}
