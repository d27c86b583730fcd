//! The summary of a pass: the last line of `sync --json` (schema `schemas/summary.json`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::Gap;

/// One pass over every stream and sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassSummary {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Whether the exit code is 0.
    pub ok: bool,
    /// The exit code of the process.
    pub exit: u8,
    /// Wall time in seconds.
    pub elapsed_seconds: f64,
    /// By stream.
    pub streams: BTreeMap<String, StreamSummary>,
    /// By sink.
    pub sinks: BTreeMap<String, SinkSummary>,
}

/// What a pass did to one stream. `fetched` = `changed` + `unchanged` + `stale` + `deleted` + `deleted_unseen` +
/// `quarantined`, always.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamSummary {
    /// How the stream stands.
    pub state: StreamOutcome,
    /// Windows worked on.
    pub windows: u64,
    /// Pages read.
    pub pages: u64,
    /// HTTP requests sent, token calls included.
    pub calls: u64,
    /// Those of them that repeated an earlier one.
    pub retries: u64,
    /// Seconds spent waiting for quota.
    pub quota_wait_seconds: f64,
    /// Entries read.
    pub fetched: u64,
    /// Emitted as upserts (or as deletes for leaving the configured set).
    pub changed: u64,
    /// Read again with the same content.
    pub unchanged: u64,
    /// Refused because a newer version is remembered.
    pub stale: u64,
    /// Emitted as deletes.
    pub deleted: u64,
    /// Tombstones of records never seen: counted and not emitted.
    pub deleted_unseen: u64,
    /// Set aside.
    pub quarantined: u64,
    /// What is still owed.
    pub gaps: Vec<Gap>,
    /// Everything before this is captured.
    #[schemars(with = "Option<String>")]
    pub watermark: Option<Timestamp>,
    /// The last failure.
    pub error: Option<ErrorReport>,
}

/// How a stream ended a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamOutcome {
    /// Everything up to the bound is captured.
    CaughtUp,
    /// Some windows are owed.
    Partial,
    /// Waits for quota.
    WaitingQuota,
    /// Its endpoint is suspended or the breaker is open.
    Suspended,
    /// Nothing could be done.
    Failed,
    /// Stopped until a person acts.
    Stopped,
}

/// What a pass did to one sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SinkSummary {
    /// Changes confirmed in this pass.
    pub delivered: u64,
    /// Changes still waiting.
    pub pending: u64,
    /// Changes the sink refused for good.
    pub quarantined: u64,
    /// How the sink stands.
    pub state: super::status::SinkState,
    /// By stream: every change captured before this is confirmed.
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub published: BTreeMap<String, Option<Timestamp>>,
    /// The last failure, as a sentence.
    pub error: Option<ErrorReport>,
}

/// A failure as shown to people and programs; free of private values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReport {
    /// A closed word for the kind.
    pub kind: String,
    /// One sentence.
    pub message: String,
    /// The endpoint's label.
    pub endpoint: Option<String>,
    /// The HTTP status.
    pub status_code: Option<u16>,
    /// Sierra's code.
    pub code: Option<i64>,
    /// Ties to log lines.
    pub correlation_id: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
}
