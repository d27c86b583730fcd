//! The status, for people: one sentence on top, then tables, then what to do.

use jiff::Timestamp;

use crate::cli::sync::page::{failure, sink_state};
use crate::cli::table::{aligned, counted, grouped, spoken_seconds};
use crate::sync::report::StatusReport;
use crate::sync::report::status::{
    BackfillStatus, BreakerState, BreakerStatus, OverallState, Pause, QuotaState, QuotaStatus, ReconcileStatus,
    SinkStatus, StoreState, StreamState, StreamStatus, TokenState,
};

/// The whole page.
pub(super) fn of(report: &StatusReport) -> String {
    let now = report.now;
    let mut lines = vec![headline(report), String::new()];
    let mut rows = vec![heading(&["stream", "state", "lag", "last success", "next run", "gaps", "set aside"])];
    rows.extend(report.streams.iter().map(|(name, stream)| stream_row(name, stream, &report.breaker, now)));
    rows.push(Vec::new());
    rows.push(heading(&["sink", "state", "waiting", "oldest"]));
    rows.extend(report.sinks.iter().map(|(name, sink)| sink_row(name, sink, now)));
    lines.push(aligned(&rows));
    lines.push(String::new());
    lines.push(aligned(&[
        vec!["quota".to_owned(), quota(&report.quota, now)],
        vec!["breaker".to_owned(), breaker(&report.breaker, now)],
        vec!["token".to_owned(), token(report)],
        vec!["outbox".to_owned(), outbox(report)],
    ]));
    let sweeps = report.streams.iter().filter_map(|(name, stream)| Some((name, stream.read_to.as_ref()?)));
    let sweeps: Vec<String> = sweeps.map(|(name, to)| format!("{name}: read up to record {to} so far")).collect();
    if !sweeps.is_empty() {
        lines.push(String::new());
        lines.extend(sweeps);
    }
    let backfills = report.streams.iter().filter_map(|(name, stream)| Some((name, stream.backfill.as_ref()?)));
    let backfills = backfills.map(|(name, backfill)| backfill_line(name, backfill, now));
    let sweeps = report.streams.iter().filter_map(|(name, stream)| Some((name, stream.reconcile.as_ref()?)));
    let under_way: Vec<String> = backfills.chain(sweeps.map(|(name, it)| reconcile_line(name, it, now))).collect();
    if !under_way.is_empty() {
        lines.push(String::new());
        lines.extend(under_way);
    }
    let troubles = troubles(report);
    if !troubles.is_empty() {
        lines.push(String::new());
        lines.extend(troubles);
    }
    lines.join("\n")
}

fn heading(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn overall(state: OverallState) -> &'static str {
    match state {
        OverallState::Ok => "ok",
        OverallState::Degraded => "degraded",
        OverallState::Failing => "failing",
    }
}

/// Whether all is well, in one sentence.
pub(super) fn headline(report: &StatusReport) -> String {
    format!("{}: {}", overall(report.state), report.message)
}

fn stream_row(name: &str, stream: &StreamStatus, breaker: &BreakerStatus, now: Timestamp) -> Vec<String> {
    let state = match stream.state {
        StreamState::Ok => "ok",
        StreamState::Loading => "loading",
        StreamState::Behind => "behind",
        StreamState::WaitingQuota => "waits for quota",
        StreamState::Suspended => "suspended",
        StreamState::Stopped => "stopped",
        StreamState::Paused => "paused",
    };
    let state = state.to_owned();
    vec![
        name.to_owned(),
        state,
        lag(stream),
        stream.last_success.map_or_else(|| "never".to_owned(), |then| ago(then, now)),
        next_run(stream, breaker, now),
        grouped(stream.gaps.len() as u64),
        grouped(stream.quarantined),
    ]
}

fn lag(stream: &StreamStatus) -> String {
    match (stream.ahead_seconds, stream.lag_seconds) {
        (Some(ahead), _) => format!("none, the stamps are {} ahead", spoken_seconds(ahead)),
        (None, Some(lag)) => spoken_seconds(lag),
        (None, None) => "-".to_owned(),
    }
}

/// When it is asked for next. What is due while the breaker is open waits for the breaker.
fn next_run(stream: &StreamStatus, breaker: &BreakerStatus, now: Timestamp) -> String {
    let Some(then) = stream.next_run else { return "-".to_owned() };
    let may_close = breaker.next_probe.filter(|probe| *probe > now);
    match breaker.state {
        BreakerState::Closed => until(then, now),
        _ if may_close.is_some_and(|close| then >= close) => until(then, now),
        _ => match may_close {
            Some(close) => format!("once the breaker closes, {} at the earliest", until(close, now)),
            None => "once the breaker closes".to_owned(),
        },
    }
}

/// How far a backfill is, and how it goes on if nobody works on it.
fn backfill_line(name: &str, backfill: &BackfillStatus, now: Timestamp) -> String {
    let BackfillStatus { id, done, total, percent, eta, calls_left, state } = backfill;
    let far = match (total, percent) {
        (Some(total), Some(percent)) => format!("{percent:.0} %, {} of {} records", grouped(*done), grouped(*total)),
        _ => "of a length that is not known".to_owned(),
    };
    let left = left(*calls_left, *eta, now);
    let state = match state.as_str() {
        "waiting_quota" => "waits for quota; the same command goes on with it",
        "parked" => "is parked; the same command goes on with it",
        _ => "is under way",
    };
    format!("{name}: backfill {id} {state} ({far}{left})")
}

/// How far a reconciliation is, and what it has found so far.
fn reconcile_line(name: &str, sweep: &ReconcileStatus, now: Timestamp) -> String {
    let ReconcileStatus { deep, repair, checked, total, percent, drift, repaired, eta, calls_left, state } = sweep;
    let kind = if *deep { "deep reconciliation" } else { "reconciliation" };
    let far = match (total, percent) {
        (Some(total), Some(percent)) => {
            format!("{percent:.0} %, {} of {} records", grouped(*checked), grouped(*total))
        }
        _ => format!("{} so far", counted(*checked, "record", "records")),
    };
    let found = match (drift, repair) {
        (0, _) => String::new(),
        (_, true) => format!(", {} that differ, {} put right", grouped(*drift), grouped(*repaired)),
        (_, false) => format!(", {} that differ", grouped(*drift)),
    };
    let left = left(*calls_left, *eta, now);
    let state = match state.as_str() {
        "waiting_quota" => "waits for quota",
        "parked" => "is parked until it is due or ordered again",
        _ => "is under way",
    };
    format!("{name}: {kind} {state} ({far}{found}{left})")
}

/// What is left to be done, as the end of a list.
fn left(calls: Option<u64>, eta: Option<Timestamp>, now: Timestamp) -> String {
    let calls = calls.map_or_else(String::new, |calls| format!(", {} left", counted(calls, "call", "calls")));
    let eta = eta.map_or_else(String::new, |eta| format!(", ETA {}", until(eta, now)));
    format!("{calls}{eta}")
}

fn sink_row(name: &str, sink: &SinkStatus, now: Timestamp) -> Vec<String> {
    let since = sink.since.map_or_else(String::new, |then| format!(", since {}", ago(then, now)));
    vec![
        name.to_owned(),
        format!("{}{since}", sink_state(sink.state)),
        grouped(sink.pending),
        sink.oldest_age_seconds.map_or_else(|| "-".to_owned(), spoken_seconds),
    ]
}

fn quota(quota: &QuotaStatus, now: Timestamp) -> String {
    let left = match (quota.remaining, quota.limit) {
        (Some(remaining), Some(limit)) => format!("{} of {} calls left", grouped(remaining), grouped(limit)),
        (Some(remaining), None) => format!("{} calls left", grouped(remaining)),
        (None, Some(limit)) => format!("{} calls a window", grouped(limit)),
        (None, None) => "not told by the server".to_owned(),
    };
    let resets = quota.resets_at.map_or_else(String::new, |then| format!(", resets {}", until(then, now)));
    let waits = match (quota.state, quota.resume_at) {
        (QuotaState::Ok, _) => String::new(),
        (QuotaState::WaitingQuota, Some(then)) => format!(", waits, goes on {}", until(then, now)),
        (QuotaState::WaitingQuota, None) => ", waits".to_owned(),
    };
    let refused = match quota.refused {
        0 => String::new(),
        refused => format!(", {}", counted(refused, "refusal", "refusals")),
    };
    format!("{left}{resets}{waits}{refused}")
}

fn breaker(breaker: &BreakerStatus, now: Timestamp) -> String {
    let state = match breaker.state {
        BreakerState::Closed => "closed (requests pass)",
        BreakerState::Open => "open (requests are halted)",
        BreakerState::HalfOpen => "half-open (one check is out)",
    };
    let reason = breaker.reason.as_ref().map_or_else(String::new, |reason| format!(", {reason}"));
    let since = breaker.since.map_or_else(String::new, |then| format!(", since {}", ago(then, now)));
    let probe = breaker.next_probe.map_or_else(String::new, |then| format!(", next check {}", until(then, now)));
    let suspended = match breaker.suspended_endpoints.as_slice() {
        [] => String::new(),
        endpoints => format!(", suspended: {}", endpoints.join(", ")),
    };
    format!("{state}{reason}{since}{probe}{suspended}")
}

fn token(report: &StatusReport) -> String {
    let state = match report.token.state {
        TokenState::None => "none needed yet",
        TokenState::Ok => "good",
        TokenState::Refreshing => "being refreshed",
        TokenState::Latched => "refused: the credentials are wrong or disabled",
    };
    let expires =
        report.token.expires_at.map_or_else(String::new, |then| format!(", expires {}", until(then, report.now)));
    format!("{state}{expires}")
}

fn outbox(report: &StatusReport) -> String {
    let megabytes = report.outbox.bytes as f64 / f64::from(1 << 20);
    let store = match report.store.state {
        StoreState::Ok => "",
        StoreState::Failed => ", the store failed",
    };
    format!("{}, {megabytes:.1} MiB{store}", counted(report.outbox.entries, "change waits", "changes wait"))
}

/// One line on each thing that is wrong, with what to do where that is known.
fn troubles(report: &StatusReport) -> Vec<String> {
    let mut troubles = Vec::new();
    let paused = report.streams.iter().map(|(name, stream)| ("--stream", name, &stream.paused));
    let paused = paused.chain(report.sinks.iter().map(|(name, sink)| ("--sink", name, &sink.paused)));
    troubles.extend(
        paused.filter_map(|(option, name, pause)| Some(paused_line(option, name, pause.as_ref()?, report.now))),
    );
    for (name, stream) in &report.streams {
        for gap in &stream.gaps {
            let attempts = counted(u64::from(gap.attempts), "attempt", "attempts");
            let error = gap.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            troubles.push(format!("{name}: gap from {} to {}, {attempts}{error}", gap.told_from(), gap.to));
        }
        troubles.extend(stream.last_error.as_ref().map(|error| failure(name, error)));
    }
    for (task, restarts) in &report.restarted {
        let (times, last) = (counted(u64::from(restarts.times), "time", "times"), ago(restarts.last, report.now));
        let advice = "please report the place that the log names";
        troubles.push(format!("{task}: met a defect and was started again, {times}, last {last}; {advice}"));
    }
    for (name, sink) in &report.sinks {
        for gap in &sink.gaps {
            let error = gap.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            troubles.push(format!("{name}: gap from {} to {}{error}", gap.told_from(), gap.to));
        }
        troubles.extend(sink.error.as_ref().map(|error| failure(name, error)));
    }
    troubles
}

/// Who paused it, and how it goes on.
fn paused_line(option: &str, name: &str, pause: &Pause, now: Timestamp) -> String {
    let by = pause.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
    let reason = pause.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let since = ago(pause.since, now);
    format!("{name}: paused {since}{by}{reason}; `sierra-sync resume {option} {name}` lets it go on")
}

fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    u64::try_from(seconds).map_or_else(|_| "just now".to_owned(), |seconds| format!("{} ago", spoken_seconds(seconds)))
}

fn until(then: Timestamp, now: Timestamp) -> String {
    match u64::try_from(then.duration_since(now).as_secs()) {
        Ok(seconds) if seconds > 0 => format!("in {}", spoken_seconds(seconds)),
        _ => "now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sync::report::status::{Gap, OutboxStatus, SinkState, StoreStatus, TaskRestarts, TokenStatus};
    use crate::sync::report::summary::ErrorReport;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn fresh() -> StreamStatus {
        StreamStatus {
            state: StreamState::Ok,
            lag_seconds: Some(42),
            ahead_seconds: None,
            stale_after_seconds: 2100,
            watermark: Some(at("2026-01-05T09:59:18Z")),
            deleted_through: Some(at("2026-01-05T09:50:00Z")),
            last_success: Some(at("2026-01-05T09:59:48Z")),
            silent_since: None,
            next_run: Some(at("2026-01-05T10:04:48Z")),
            gaps: Vec::new(),
            rebuilding: false,
            read_to: None,
            backfill: None,
            reconcile: None,
            last_error: None,
            quarantined: 0,
            paused: None,
        }
    }

    fn report() -> StatusReport {
        let sink = SinkStatus {
            state: SinkState::Ok,
            pending: 0,
            oldest_age_seconds: None,
            since: None,
            breaker: BreakerState::Closed,
            published: BTreeMap::new(),
            gaps: Vec::new(),
            error: None,
            paused: None,
        };
        StatusReport {
            schema: 1,
            version: "0.1.0".to_owned(),
            state: OverallState::Ok,
            message: "All streams are fresh.".to_owned(),
            now: at("2026-01-05T10:00:00Z"),
            started: None,
            streams: BTreeMap::from([("bibs".to_owned(), fresh())]),
            quota: QuotaStatus {
                limit: Some(1000),
                remaining: Some(640),
                resets_at: Some(at("2026-01-05T10:30:00Z")),
                state: QuotaState::Ok,
                resume_at: None,
                waited_seconds: 0.0,
                refused: 0,
            },
            breaker: BreakerStatus {
                state: BreakerState::Closed,
                reason: None,
                since: None,
                next_probe: None,
                held: false,
                suspended_endpoints: Vec::new(),
            },
            token: TokenStatus { state: TokenState::Ok, expires_at: Some(at("2026-01-05T10:48:00Z")) },
            sinks: BTreeMap::from([("archive".to_owned(), sink)]),
            quarantine: BTreeMap::from([("bibs".to_owned(), 0)]),
            outbox: OutboxStatus { entries: 0, bytes: 0, max_bytes: 2 << 30 },
            store: StoreStatus { state: StoreState::Ok, held: None },
            restarted: BTreeMap::new(),
        }
    }

    #[test]
    fn a_fresh_copy_fits_on_a_small_page() {
        insta::assert_snapshot!(of(&report()));
    }

    /// A lag of 0 would say that all is fresh; what is ahead may hide what comes now.
    #[test]
    fn stamps_that_are_ahead_of_our_clock_are_no_lag_of_nothing() {
        let ahead = StreamStatus { lag_seconds: Some(0), ahead_seconds: Some(7_200), ..fresh() };
        assert_eq!(lag(&ahead), "none, the stamps are 2 h ahead");
        assert_eq!((lag(&fresh()), lag(&StreamStatus { lag_seconds: None, ..fresh() })), ("42 s".into(), "-".into()));
    }

    #[test]
    fn nothing_runs_now_while_the_breaker_is_open() {
        let (now, mut breaker) = (at("2026-01-05T10:00:00Z"), report().breaker);
        let due = StreamStatus { next_run: Some(now), ..fresh() };
        assert_eq!(next_run(&due, &breaker, now), "now");
        (breaker.state, breaker.held) = (BreakerState::Open, true);
        assert_eq!(next_run(&due, &breaker, now), "once the breaker closes");
        breaker.next_probe = Some(at("2026-01-05T10:30:00Z"));
        assert_eq!(next_run(&due, &breaker, now), "once the breaker closes, in 30 min at the earliest");
        let later = StreamStatus { next_run: Some(at("2026-01-05T11:00:00Z")), ..fresh() };
        assert_eq!(next_run(&later, &breaker, now), "in 60 min");
    }

    #[test]
    fn a_gap_without_a_known_start_is_from_the_beginning() {
        let mut report = report();
        let gap = |from: &str| Gap { from: from.to_owned(), to: "2026-01-05".to_owned(), attempts: 0, error: None };
        let sink = report.sinks.get_mut("archive").expect("it is there");
        sink.gaps = vec![gap("1970-01-01T00:00:00Z"), gap("2026-01-04")];
        let told = troubles(&report);
        let expected = ["archive: gap from the beginning to 2026-01-05", "archive: gap from 2026-01-04 to 2026-01-05"];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_under_way_is_told_with_what_is_left() {
        let sweep = ReconcileStatus {
            deep: true,
            repair: true,
            checked: 1_250,
            total: Some(5_000),
            percent: Some(25.0),
            drift: 3,
            repaired: 2,
            eta: Some(at("2026-01-05T10:02:00Z")),
            calls_left: Some(40),
            state: "running".to_owned(),
        };
        let told = reconcile_line("bibs", &sweep, at("2026-01-05T10:00:00Z"));
        let expected = "bibs: deep reconciliation is under way (25 %, 1,250 of 5,000 records, 3 that differ, 2 put right, \
                        40 calls left, ETA in 2 min)";
        assert_eq!(told, expected);
        let parked = ReconcileStatus { total: None, percent: None, eta: None, calls_left: None, ..sweep };
        let parked = ReconcileStatus { deep: false, repair: false, state: "parked".to_owned(), ..parked };
        let told = reconcile_line("bibs", &parked, at("2026-01-05T10:00:00Z"));
        let expected = "bibs: reconciliation is parked until it is due or ordered again (1,250 records so far, 3 that \
                        differ)";
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_wrong_stands_below_with_what_to_do() {
        let mut report = report();
        report.state = OverallState::Degraded;
        report.message = "The breaker is open.".to_owned();
        let gap = Gap {
            from: "2026-01-05T08:00:00Z".to_owned(),
            to: "2026-01-05T09:00:00Z".to_owned(),
            attempts: 2,
            error: Some("no answer in 60 s".to_owned()),
        };
        let error = ErrorReport {
            kind: "unavailable".to_owned(),
            message: "Sierra does not answer".to_owned(),
            endpoint: None,
            status_code: None,
            code: None,
            correlation_id: None,
            hint: Some("it is asked again by itself".to_owned()),
        };
        let bibs = StreamStatus { gaps: vec![gap], last_error: Some(error), lag_seconds: Some(7_500), ..fresh() };
        report.streams.insert("bibs".to_owned(), bibs);
        report.breaker.state = BreakerState::Open;
        report.breaker.reason = Some("10 failures in a row".to_owned());
        report.breaker.next_probe = Some(at("2026-01-05T10:00:30Z"));
        report.quota.state = QuotaState::WaitingQuota;
        let restarts = TaskRestarts { times: 2, last: at("2026-01-05T09:58:00Z") };
        report.restarted.insert("stream bibs".to_owned(), restarts);
        report.quota.resume_at = Some(at("2026-01-05T10:10:00Z"));
        report.outbox = OutboxStatus { entries: 1_234, bytes: 5 << 20, max_bytes: 2 << 30 };
        insta::assert_snapshot!(of(&report));
    }
}
