//! The summary of a pass, for people.

use crate::cli::table::{aligned, counted, grouped};
use crate::record::Stream;
use crate::sync::report::PassSummary;
use crate::sync::report::status::SinkState;
use crate::sync::report::summary::{ErrorReport, StreamOutcome};

/// A table of streams, a table of sinks, then what went wrong and what to do.
pub(super) fn of(summary: &PassSummary) -> String {
    page(summary, if summary.ok { "Up to date" } else { "Not up to date" }).join("\n")
}

/// The same of a backfill, and what is left of it.
pub(in crate::cli) fn of_backfill(summary: &PassSummary, stream: Stream) -> String {
    let ended = summary.streams.get(stream.name());
    let left = ended.map(|stream| stream.gaps.as_slice()).unwrap_or_default();
    let verdict = match ended.map(|stream| stream.state) {
        Some(StreamOutcome::WaitingQuota) => "The backfill waits for quota",
        Some(StreamOutcome::Suspended) => "The backfill is held back",
        Some(StreamOutcome::Stopped | StreamOutcome::Failed) => "The backfill did not get on",
        Some(StreamOutcome::Partial) => "Something is left",
        Some(StreamOutcome::CaughtUp) | None if left.is_empty() => "The backfill has ended",
        Some(StreamOutcome::CaughtUp) | None => "Something is left",
    };
    let mut lines = page(summary, verdict);
    for gap in left {
        let why = gap.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
        lines.push(match stream {
            Stream::Patrons => format!("left: a range of patrons{why}"),
            Stream::Bibs | Stream::Items => format!("left: {stream} from {} up to {}{why}", gap.from, gap.to),
        });
    }
    if !left.is_empty() || ended.is_some_and(|stream| stream.state != StreamOutcome::CaughtUp) {
        lines.push("The same command goes on with what is left.".to_owned());
    }
    lines.join("\n")
}

fn page(summary: &PassSummary, verdict: &str) -> Vec<String> {
    if let Some(error) = &summary.error {
        return vec![format!("{verdict} after {:.1} s: {}.", summary.elapsed_seconds, error.message)];
    }
    let mut rows = vec![heading(&["stream", "state", "read", "changed", "deleted", "set aside", "gaps", "through"])];
    for (name, stream) in &summary.streams {
        rows.push(vec![
            name.clone(),
            outcome(stream.state).to_owned(),
            grouped(stream.fetched),
            grouped(stream.changed),
            grouped(stream.deleted),
            grouped(stream.quarantined),
            grouped(stream.gaps.len() as u64),
            stream.watermark.map_or_else(|| "-".to_owned(), |watermark| watermark.to_string()),
        ]);
    }
    rows.push(Vec::new());
    rows.push(heading(&["sink", "state", "delivered", "waiting", "refused"]));
    for (name, sink) in &summary.sinks {
        rows.push(vec![
            name.clone(),
            sink_state(sink.state).to_owned(),
            grouped(sink.delivered),
            grouped(sink.pending),
            grouped(sink.quarantined),
        ]);
    }
    let calls: u64 = summary.streams.values().map(|stream| stream.calls).sum();
    let effort = match calls {
        0 => "; Sierra was not asked".to_owned(),
        calls => format!(" after {:.1} s and {}", summary.elapsed_seconds, counted(calls, "call", "calls")),
    };
    let mut lines = vec![format!("{verdict}{effort}."), aligned(&rows)];
    if let Some(place) = &summary.set_aside {
        lines.push(format!("The state was damaged: it was set aside in {place}, and everything was read again."));
    }
    let streams = summary.streams.iter().map(|(name, stream)| (name, &stream.error));
    let sinks = summary.sinks.iter().map(|(name, sink)| (name, &sink.error));
    for (name, error) in streams.chain(sinks) {
        lines.extend(error.as_ref().map(|error| failure(name, error)));
    }
    lines
}

/// A failure, and below it what to do about it.
pub(in crate::cli) fn failure(name: &str, error: &ErrorReport) -> String {
    let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!("\n  {hint}"));
    format!("{name}: {}{hint}", error.message_under(name))
}

/// The word for how a sink stands.
pub(in crate::cli) fn sink_state(state: SinkState) -> &'static str {
    match state {
        SinkState::Ok => "ok",
        SinkState::Retrying => "retrying",
        SinkState::Open => "breaker open",
        SinkState::Paused => "paused",
        SinkState::NeedsReload => "needs reload",
    }
}

fn heading(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn outcome(outcome: StreamOutcome) -> &'static str {
    match outcome {
        StreamOutcome::CaughtUp => "caught up",
        StreamOutcome::Partial => "partial",
        StreamOutcome::WaitingQuota => "waits for quota",
        StreamOutcome::Suspended => "suspended",
        StreamOutcome::Failed => "failed",
        StreamOutcome::Stopped => "stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backfill_that_could_not_begin_does_not_say_that_it_ended() {
        let mut summary = summary();
        summary.elapsed_seconds = 0.01;
        let bibs = summary.streams.get_mut("bibs").expect("it is there");
        (bibs.state, bibs.calls, bibs.gaps) = (StreamOutcome::Suspended, 0, Vec::new());
        let page = of_backfill(&summary, Stream::Bibs);
        assert!(page.starts_with("The backfill is held back; Sierra was not asked.\n"), "{page}");
        assert!(page.ends_with("The same command goes on with what is left."), "{page}");
        let verdict = |state| {
            let mut summary = summary.clone();
            summary.streams.get_mut("bibs").expect("it is there").state = state;
            of_backfill(&summary, Stream::Bibs).lines().next().map(str::to_owned)
        };
        assert_eq!(verdict(StreamOutcome::CaughtUp).as_deref(), Some("The backfill has ended; Sierra was not asked."));
        assert_eq!(
            verdict(StreamOutcome::WaitingQuota).as_deref(),
            Some("The backfill waits for quota; Sierra was not asked.")
        );
    }

    #[test]
    fn the_name_that_a_message_begins_with_is_not_said_twice() {
        let mut error = summary().streams["bibs"].error.clone().expect("one");
        error.hint = None;
        for (message, told) in [
            ("bibs: no good answer", "bibs: no good answer"),
            ("token: no good answer", "bibs: token: no good answer"),
            ("bibsome", "bibs: bibsome"),
        ] {
            error.message = message.to_owned();
            assert_eq!(failure("bibs", &error), told);
        }
    }

    fn summary() -> PassSummary {
        let summary = serde_json::json!({
            "schema": 1, "ok": false, "exit": 3, "elapsed_seconds": 12.4,
            "streams": {"bibs": {
                "state": "partial", "windows": 1, "pages": 3, "calls": 5, "retries": 1, "quota_wait_seconds": 0.0,
                "fetched": 3000, "changed": 2881, "unchanged": 0, "stale": 0, "deleted": 0, "deleted_unseen": 119,
                "quarantined": 0, "gaps": [{"from": "a", "to": "b", "attempts": 1, "error": null}],
                "watermark": "2026-01-05T10:00:00Z",
                "error": {"kind": "unavailable", "message": "Sierra does not answer", "endpoint": "bibs",
                    "status_code": 503, "code": null, "correlation_id": "c", "hint": "run it again later"},
            }},
            "sinks": {"archive": {
                "delivered": 2881, "pending": 0, "quarantined": 0, "state": "ok", "published": {}, "error": null,
            }},
        });
        serde_json::from_value(summary).expect("the shape of the contract")
    }

    #[test]
    fn the_summary_tells_what_was_done_and_what_is_owed() {
        let summary = summary();
        insta::assert_snapshot!(of(&summary));
        insta::assert_snapshot!(of_backfill(&summary, Stream::Bibs));
        let withheld = of_backfill(&summary, Stream::Patrons);
        assert!(!withheld.contains("left: "), "there is none in the summary: {withheld}");
    }
}
