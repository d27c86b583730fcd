//! The summary of a pass: the last line of `sync --json` (schema `schemas/summary.json`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::{Gap, SinkState};
use crate::record::Stream;

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
    /// By sink; nothing where nothing is known of them.
    pub sinks: BTreeMap<String, SinkSummary>,
    /// Where the state was set aside because it was damaged, if this run did that: a rebuild followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// Why there was no pass, or why it could not be brought to its end; null where there was one. What went wrong with
    /// single streams and sinks stands with them.
    pub error: Option<ErrorReport>,
}

impl PassSummary {
    /// The summary of a pass that came to nothing. `streams` are those that were asked for, as far as that is known.
    #[must_use]
    pub fn failed(exit: u8, elapsed_seconds: f64, streams: &[Stream], error: ErrorReport) -> Self {
        let failed = |stream: &Stream| (stream.name().to_owned(), StreamSummary::failed(error.clone()));
        let streams = streams.iter().map(failed).collect();
        Self {
            schema: 1,
            ok: false,
            exit,
            elapsed_seconds,
            streams,
            sinks: BTreeMap::new(),
            set_aside: None,
            error: Some(error),
        }
    }

    /// Whether the pass did what it should: everything was read and delivered, though a record may have been set aside.
    #[must_use]
    pub fn did_its_work(&self) -> bool {
        let is_whole = |stream: &StreamSummary| stream.state == StreamOutcome::CaughtUp && stream.gaps.is_empty();
        let is_served = |sink: &SinkSummary| matches!(sink.state, SinkState::Ok | SinkState::Paused);
        let only_set_aside = self.exit == 3
            && self.error.is_none()
            && self.streams.values().all(is_whole)
            && self.sinks.values().all(is_served);
        self.exit == 0 || only_set_aside
    }
}

impl PassSummary {
    /// The summary of what began with `earlier` and ended with this: what both did, and how it stands now.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.elapsed_seconds += earlier.elapsed_seconds;
        for (name, before) in &earlier.streams {
            if let Some(stream) = self.streams.get_mut(name) {
                stream.add(before);
            }
        }
        for (name, before) in &earlier.sinks {
            if let Some(sink) = self.sinks.get_mut(name) {
                sink.delivered += before.delivered;
                sink.quarantined += before.quarantined;
            }
        }
        self
    }
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

impl StreamSummary {
    /// Adds what was done before; how it stands is told by the last.
    fn add(&mut self, before: &Self) {
        self.windows += before.windows;
        self.pages += before.pages;
        self.calls += before.calls;
        self.retries += before.retries;
        self.quota_wait_seconds += before.quota_wait_seconds;
        self.fetched += before.fetched;
        self.changed += before.changed;
        self.unchanged += before.unchanged;
        self.stale += before.stale;
        self.deleted += before.deleted;
        self.deleted_unseen += before.deleted_unseen;
        self.quarantined += before.quarantined;
    }

    /// Nothing is known but that nothing could be done.
    fn failed(error: ErrorReport) -> Self {
        Self {
            state: StreamOutcome::Failed,
            windows: 0,
            pages: 0,
            calls: 0,
            retries: 0,
            quota_wait_seconds: 0.0,
            fetched: 0,
            changed: 0,
            unchanged: 0,
            stale: 0,
            deleted: 0,
            deleted_unseen: 0,
            quarantined: 0,
            gaps: Vec::new(),
            watermark: None,
            error: Some(error),
        }
    }
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
    pub state: SinkState,
    /// By stream: every change captured before this is confirmed.
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub published: BTreeMap<String, Option<Timestamp>>,
    /// The last failure, as a sentence.
    pub error: Option<ErrorReport>,
}

impl ErrorReport {
    /// The message for whoever reads it under `name`, which is not said twice.
    #[must_use]
    pub fn message_under(&self, name: &str) -> &str {
        self.message.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&self.message)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_did_its_work_unless_something_was_not_read_or_not_delivered() {
        let error = ErrorReport {
            kind: "unavailable".to_owned(),
            message: "no answer".to_owned(),
            endpoint: None,
            status_code: None,
            code: None,
            correlation_id: None,
            hint: None,
        };
        let failed = PassSummary::failed(3, 1.0, &[Stream::Bibs], error);
        let of = |exit, state, owes: bool| {
            let mut summary = PassSummary { exit, ok: exit == 0, error: None, ..failed.clone() };
            let gap = Gap { from: "1".to_owned(), to: "2".to_owned(), attempts: 1, error: None };
            for stream in summary.streams.values_mut() {
                stream.state = state;
                stream.gaps = owes.then(|| gap.clone()).into_iter().collect();
            }
            summary.did_its_work()
        };
        assert!(of(0, StreamOutcome::CaughtUp, false) && of(3, StreamOutcome::CaughtUp, false), "set aside");
        assert!(!of(3, StreamOutcome::Partial, false) && !of(3, StreamOutcome::CaughtUp, true), "a gap");
        for exit in [69, 74, 75, 77] {
            assert!(!of(exit, StreamOutcome::CaughtUp, false), "{exit}");
        }
        assert!(!failed.did_its_work());
    }
}
