//! Whether the service's loops go on: what feeds the watchdog.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::record::Stream;
use crate::sync::observer::{Event, Observer};
use crate::sync::report::StatusReport;
use crate::sync::report::status::SinkState;

/// A stream whose pass is under way tells something within this time, or it is stuck: one call takes at most its wall
/// budget and two minutes of quota waits, and every call ends in an event. So does a sink that has something to deliver:
/// each attempt ends in one.
const TELLS_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Passes every event on and remembers when each stream and sink told one.
pub(super) struct Progress<O> {
    beneath: O,
    began: Instant,
    told: Mutex<BTreeMap<String, Instant>>,
}

impl<O> Progress<O> {
    pub(super) fn new(beneath: O) -> Self {
        Self { beneath, began: Instant::now(), told: Mutex::default() }
    }

    /// Whether nothing is stuck: whatever is due has told something lately. Waits for quota and suspended endpoints end
    /// a pass, and a sink that takes nothing ends its attempts, so that they look healthy here.
    pub(super) fn goes_on(&self, report: &StatusReport) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = |worker: &str| told.get(worker).copied().unwrap_or(self.began).elapsed() > TELLS_WITHIN;
        let is_stuck_stream = |stream: &Stream| {
            let next_run = report.streams.get(stream.name()).and_then(|stream| stream.next_run);
            let late = next_run.map(|next| report.now.duration_since(next)).unwrap_or_default();
            Duration::try_from(late).is_ok_and(|late| late > TELLS_WITHIN) && is_silent(&of_stream(*stream))
        };
        let has_stuck_sink = report.sinks.iter().any(|(name, sink)| {
            let waits = sink.oldest_age_seconds.is_some_and(|age| Duration::from_secs(age) > TELLS_WITHIN);
            sink.state == SinkState::Ok && sink.pending > 0 && waits && is_silent(&of_sink(name))
        });
        !has_stuck_sink && !Stream::ALL.iter().any(is_stuck_stream)
    }
}

impl<O: Observer> Observer for Progress<O> {
    fn observe(&self, event: &Event) {
        let worker = match event {
            Event::PageCaptured { stream, .. }
            | Event::RowDone { stream, .. }
            | Event::RowFailed { stream, .. }
            | Event::RowParked { stream, .. }
            | Event::PageTakenApart { stream, .. }
            | Event::CaptureHeld { stream, .. }
            | Event::PassEnded { stream, .. } => Some(of_stream(*stream)),
            Event::Delivered { sink, .. }
            | Event::DeliveryRetried { sink, .. }
            | Event::ChangeRefused { sink, .. }
            | Event::SinkDown { sink, .. }
            | Event::SinkUp { sink } => Some(of_sink(sink)),
            _ => None,
        };
        if let Some(worker) = worker {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(worker, Instant::now());
        }
        self.beneath.observe(event);
    }
}

fn of_stream(stream: Stream) -> String {
    format!("stream {stream}")
}

fn of_sink(name: &str) -> String {
    format!("sink {name}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sync::Seq;
    use crate::sync::observer::Unobserved;
    use crate::sync::report::summary::StreamOutcome;

    const LONG: Duration = Duration::from_secs(16 * 60);

    /// A status at ten o'clock, with these streams and sinks.
    fn status(streams: &Value, sinks: &Value) -> StatusReport {
        let document = json!({
            "schema": 1, "version": "0.1.0", "state": "ok", "message": "", "now": "2026-01-05T10:00:00Z", "started": null,
            "streams": streams, "sinks": sinks, "quarantine": {}, "outbox": {"entries": 0, "bytes": 0},
            "quota": {"limit": null, "remaining": null, "resets_at": null, "state": "ok", "resume_at": null,
                      "waited_seconds": 0.0, "refused": 0},
            "breaker": {"state": "closed", "reason": null, "since": null, "next_probe": null, "suspended_endpoints": []},
            "token": {"state": "ok", "expires_at": null}, "store": {"state": "ok"},
        });
        serde_json::from_value(document).expect("a status")
    }

    fn bibs_due_at(next_run: &str) -> StatusReport {
        let bibs = json!({
            "state": "ok", "lag_seconds": 1, "watermark": null, "deleted_through": null, "last_success": null,
            "next_run": next_run, "gaps": [], "backfill": null, "last_error": null, "quarantined": 0,
        });
        status(&json!({ "bibs": bibs }), &json!({}))
    }

    fn archive(state: &str, pending: u64, oldest: Option<u64>) -> StatusReport {
        let archive = json!({
            "state": state, "pending": pending, "oldest_age_seconds": oldest, "since": null, "breaker": "closed",
            "published": {}, "gaps": [], "error": null,
        });
        status(&json!({}), &json!({ "archive": archive }))
    }

    /// BR-063: a stream that is due and says nothing is stuck; one that is not due, or says something, is not.
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_due_and_silent_is_stuck() {
        let progress = Progress::new(Unobserved);
        let (due, later) = (bibs_due_at("2026-01-05T09:40:00Z"), bibs_due_at("2026-01-05T10:05:00Z"));
        assert!(progress.goes_on(&due), "it has just begun");
        tokio::time::advance(LONG).await;
        assert!(progress.goes_on(&later));
        assert!(!progress.goes_on(&due));
        progress.observe(&Event::PassEnded { stream: Stream::Items, outcome: StreamOutcome::CaughtUp });
        assert!(!progress.goes_on(&due), "another stream says nothing of it");
        progress.observe(&Event::PassEnded { stream: Stream::Bibs, outcome: StreamOutcome::Failed });
        assert!(progress.goes_on(&due), "a pass that fails has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_should_deliver_and_is_silent_is_stuck() {
        let progress = Progress::new(Unobserved);
        let waits = archive("ok", 7, Some(1_000));
        assert!(progress.goes_on(&waits), "it has just begun");
        tokio::time::advance(LONG).await;
        assert!(!progress.goes_on(&waits));
        for well in [archive("ok", 0, None), archive("ok", 7, Some(60)), archive("open", 7, Some(1_000))] {
            assert!(progress.goes_on(&well), "{:?}", well.sinks);
        }
        progress.observe(&Event::Delivered { sink: "archive".to_owned(), changes: 1, through: Seq::ZERO });
        assert!(progress.goes_on(&waits));
    }
}
