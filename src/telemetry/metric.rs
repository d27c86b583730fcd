//! The metrics that others may alert on: names, units, labels and help in one table, and the only functions that
//! write them.
//!
//! Labels come from closed sets, so that a metric never grows a series for each record or error. Names of sinks are
//! chosen by people, and are few.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

/// A metric as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its whole name.
    pub name: &'static str,
    /// What it counts or shows.
    pub kind: Kind,
    /// The unit of its value.
    pub unit: Unit,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// One sentence for people.
    pub help: &'static str,
}

/// Kinds of metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Now minus watermark.
pub const STREAM_LAG: &str = "sierra_sync_stream_lag_seconds";
/// The lag from which on a stream is stale.
pub const STREAM_STALE_AFTER: &str = "sierra_sync_stream_stale_after_seconds";
/// When the last pass without failure ended.
pub const STREAM_LAST_SUCCESS: &str = "sierra_sync_stream_last_success_timestamp_seconds";
/// Windows that are owed.
pub const STREAM_GAPS: &str = "sierra_sync_stream_gaps";
/// Calls left in the quota window.
pub const QUOTA_REMAINING: &str = "sierra_sync_quota_remaining";
/// Calls granted per quota window.
pub const QUOTA_LIMIT: &str = "sierra_sync_quota_limit";
/// Time spent waiting for quota.
pub const QUOTA_WAIT: &str = "sierra_sync_quota_wait_seconds_total";
/// Requests sent.
pub const REQUESTS: &str = "sierra_sync_requests_total";
/// Requests repeated.
pub const RETRIES: &str = "sierra_sync_retries_total";
/// Breaker states.
pub const BREAKER_STATE: &str = "sierra_sync_breaker_state";
/// Changes that wait.
pub const OUTBOX_ENTRIES: &str = "sierra_sync_outbox_entries";
/// Age of the oldest change that waits.
pub const OUTBOX_OLDEST_AGE: &str = "sierra_sync_outbox_oldest_age_seconds";
/// Records set aside.
pub const QUARANTINE_ENTRIES: &str = "sierra_sync_quarantine_entries";
/// Records read.
pub const RECORDS: &str = "sierra_sync_records_total";
/// Repairs and omissions in the MARC of emitted bibs.
pub const MARC_LOSSES: &str = "sierra_sync_marc_losses_total";

/// Tasks of the service that were started again after a defect.
pub const TASK_RESTARTS: &str = "sierra_sync_task_restarts_total";

/// Alerts that people were told of.
pub const ALERT_ACTIVE: &str = "sierra_sync_alert_active";

/// Every metric.
pub const METRICS: [Metric; 17] = [
    gauge_of(STREAM_LAG, Unit::Seconds, &["stream"], "Seconds between now and the stream's watermark."),
    gauge_of(
        STREAM_STALE_AFTER,
        Unit::Seconds,
        &["stream"],
        "A greater lag is stale: alerts.stale_after, and what the stream's own schedule explains.",
    ),
    gauge_of(STREAM_LAST_SUCCESS, Unit::Seconds, &["stream"], "Unix time of the stream's last pass without failure."),
    gauge_of(STREAM_GAPS, Unit::Count, &["stream"], "Windows of the stream that are owed."),
    gauge_of(QUOTA_REMAINING, Unit::Count, &[], "Calls left in the current quota window."),
    gauge_of(QUOTA_LIMIT, Unit::Count, &[], "Calls that Sierra grants per quota window."),
    counter_of(QUOTA_WAIT, Unit::Seconds, &[], "Seconds spent waiting for quota."),
    counter_of(REQUESTS, Unit::Count, &["endpoint", "outcome"], "HTTP requests sent to Sierra."),
    counter_of(RETRIES, Unit::Count, &["class"], "HTTP requests that repeated an earlier one."),
    gauge_of(BREAKER_STATE, Unit::Count, &["breaker", "state"], "1 for the state the breaker is in, 0 for the others."),
    gauge_of(OUTBOX_ENTRIES, Unit::Count, &["sink"], "Changes that wait for the sink."),
    gauge_of(OUTBOX_OLDEST_AGE, Unit::Seconds, &["sink"], "Age of the oldest change that waits for the sink."),
    gauge_of(QUARANTINE_ENTRIES, Unit::Count, &["stream"], "Records of the stream that are set aside."),
    counter_of(RECORDS, Unit::Count, &["stream", "result"], "Records read, by what came of them."),
    gauge_of(
        ALERT_ACTIVE,
        Unit::Count,
        &["cause", "subject"],
        "1 while people know of it and it is not over; absent else.",
    ),
    counter_of(MARC_LOSSES, Unit::Count, &["kind"], "Repairs and omissions in the MARC of emitted bibs."),
    counter_of(TASK_RESTARTS, Unit::Count, &["task"], "Tasks that met a defect and were started again."),
];

const fn gauge_of(name: &'static str, unit: Unit, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, labels, help }
}

const fn counter_of(name: &'static str, unit: Unit, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit, labels, help }
}

/// Gives every metric its unit and help. Call once, after the recorder is installed.
pub fn describe() {
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.unit, metric.help),
            Kind::Gauge => describe_gauge!(metric.name, metric.unit, metric.help),
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestOutcome {
    /// A valid answer.
    Ok,
    /// Sierra's own "nothing".
    Nothing,
    /// A refusal for quota.
    Throttled,
    /// 401.
    Unauthorized,
    /// A status that may pass.
    Transient,
    /// A status that will not.
    Permanent,
    /// A good status with a body that is no answer.
    InvalidBody,
    /// No whole answer: no connection, one that broke, or the time ran out.
    Network,
}

impl RequestOutcome {
    /// Every outcome.
    pub const ALL: [Self; 8] = [
        Self::Ok,
        Self::Nothing,
        Self::Throttled,
        Self::Unauthorized,
        Self::Transient,
        Self::Permanent,
        Self::InvalidBody,
        Self::Network,
    ];

    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Nothing => "nothing",
            Self::Throttled => "throttled",
            Self::Unauthorized => "unauthorized",
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::InvalidBody => "invalid_body",
            Self::Network => "network",
        }
    }
}

/// Why a request was repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// A failure that may pass.
    Transient,
    /// A refusal for quota.
    Throttled,
    /// A token that was stale.
    Reauthenticated,
}

impl RetryClass {
    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Throttled => "throttled",
            Self::Reauthenticated => "reauthenticated",
        }
    }
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerLabel {
    /// Requests pass.
    Closed,
    /// Requests are refused.
    Open,
    /// One health check is out.
    HalfOpen,
}

impl BreakerLabel {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// What came of a record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordResult {
    /// Emitted as an upsert.
    Changed,
    /// Read again with the same content.
    Unchanged,
    /// Refused because a newer version is remembered.
    Stale,
    /// Emitted as a delete.
    Deleted,
    /// A tombstone of a record never seen.
    DeletedUnseen,
    /// Set aside.
    Quarantined,
}

impl RecordResult {
    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Stale => "stale",
            Self::Deleted => "deleted",
            Self::DeletedUnseen => "deleted_unseen",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Counts one request to `endpoint`: `bibs`, `items`, `patrons`, `token`, `info`, …
pub fn request(endpoint: &'static str, outcome: RequestOutcome) {
    counter!(REQUESTS, "endpoint" => endpoint, "outcome" => outcome.label()).increment(1);
}

/// Counts one repeated request.
pub fn retry(class: RetryClass) {
    counter!(RETRIES, "class" => class.label()).increment(1);
}

/// Shows the quota window, as far as the server has told.
pub fn quota(limit: Option<u64>, remaining: Option<u64>) {
    if let Some(limit) = limit {
        gauge!(QUOTA_LIMIT).set(float(limit));
    }
    if let Some(remaining) = remaining {
        gauge!(QUOTA_REMAINING).set(float(remaining));
    }
}

/// Shows all the time spent waiting for quota since the start. The sum and not the last wait, because counters hold
/// whole seconds and would lose what is shorter.
pub fn quota_waited(since_start: Duration) {
    counter!(QUOTA_WAIT).absolute(since_start.as_secs());
}

/// Shows the state of `breaker`: `sierra`, or what a sink is called here.
pub fn breaker(breaker: &str, state: BreakerLabel) {
    for each in BreakerLabel::ALL {
        let value = if each == state { 1.0 } else { 0.0 };
        gauge!(BREAKER_STATE, "breaker" => breaker.to_owned(), "state" => each.label()).set(value);
    }
}

/// Shows how far behind a stream is.
pub fn stream_lag(stream: &'static str, lag: Duration) {
    gauge!(STREAM_LAG, "stream" => stream).set(lag.as_secs_f64());
}

/// Shows from what lag on a stream is stale.
pub fn stream_stale_after(stream: &'static str, limit: Duration) {
    gauge!(STREAM_STALE_AFTER, "stream" => stream).set(limit.as_secs_f64());
}

/// Shows when a stream's last pass without failure ended, in unix seconds.
pub fn stream_last_success(stream: &'static str, unix_seconds: i64) {
    gauge!(STREAM_LAST_SUCCESS, "stream" => stream).set(float(u64::try_from(unix_seconds).unwrap_or(0)));
}

/// Shows how many windows a stream owes.
pub fn stream_gaps(stream: &'static str, gaps: usize) {
    gauge!(STREAM_GAPS, "stream" => stream).set(float(gaps as u64));
}

/// Counts records that were read.
pub fn records(stream: &'static str, result: RecordResult, count: u64) {
    counter!(RECORDS, "stream" => stream, "result" => result.label()).increment(count);
}

/// Counts what the mapping to MARC repaired or left out.
pub fn marc_losses(kind: &'static str, count: u64) {
    counter!(MARC_LOSSES, "kind" => kind).increment(count);
}

/// Shows how often a task of the service was started again after a defect.
pub fn task_restarts(task: &str, times: u64) {
    counter!(TASK_RESTARTS, "task" => task.to_owned()).absolute(times);
}

/// Shows what waits for a sink; no age when nothing does.
pub fn outbox(sink: &str, entries: u64, oldest_age: Option<Duration>) {
    gauge!(OUTBOX_ENTRIES, "sink" => sink.to_owned()).set(float(entries));
    gauge!(OUTBOX_OLDEST_AGE, "sink" => sink.to_owned()).set(oldest_age.unwrap_or_default().as_secs_f64());
}

/// Shows how many records of a stream are set aside.
pub fn quarantine(stream: &'static str, entries: u64) {
    gauge!(QUARANTINE_ENTRIES, "stream" => stream).set(float(entries));
}

/// Shows that people were told of `cause` about `subject`, and that it is not over.
pub fn alert(cause: &'static str, subject: &str) {
    gauge!(ALERT_ACTIVE, "cause" => cause, "subject" => subject.to_owned()).set(1.0);
}

/// Exact up to 2⁵³, far beyond anything counted here.
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// What Prometheus reads after every function was called once.
    fn exposition() -> String {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            describe();
            RequestOutcome::ALL.into_iter().for_each(|outcome| request("bibs", outcome));
            retry(RetryClass::Transient);
            quota(Some(1000), Some(640));
            quota_waited(Duration::from_millis(2_700));
            breaker("sierra", BreakerLabel::Open);
            stream_lag("bibs", Duration::from_secs(42));
            stream_stale_after("bibs", Duration::from_secs(2100));
            stream_last_success("bibs", 1_767_607_203);
            stream_gaps("bibs", 1);
            records("bibs", RecordResult::Changed, 7);
            outbox("archive", 3, Some(Duration::from_secs(5)));
            quarantine("bibs", 2);
            marc_losses("tag-repaired", 3);
            task_restarts("sink archive", 1);
            alert("gap", "bibs");
        });
        recorder.handle().render()
    }

    #[test]
    fn every_declared_metric_is_written_with_its_labels_and_help() {
        let text = exposition();
        for metric in METRICS {
            assert!(text.contains(&format!("# HELP {} {}\n", metric.name, metric.help)), "{text}");
            let is_sample =
                |line: &&str| line.strip_prefix(metric.name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let sample = text.lines().find(is_sample).unwrap_or_else(|| panic!("{} is not written", metric.name));
            let labels: Vec<&str> =
                sample.split(['{', ',']).filter_map(|part| part.split_once("=\"")).map(|(name, _)| name).collect();
            assert_eq!(labels, metric.labels, "{sample}");
        }
        let written = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(written, METRICS.len(), "something is written that is not declared:\n{text}");
    }

    #[test]
    fn a_breaker_is_in_one_state_at_a_time() {
        let text = exposition();
        let states: Vec<&str> = text.lines().filter(|line| line.starts_with(BREAKER_STATE)).collect();
        assert_eq!(states.len(), 3, "{states:?}");
        assert!(states.iter().all(|line| line.ends_with(" 1") == line.contains("state=\"open\"")), "{states:?}");
    }

    #[test]
    fn names_tell_unit_and_kind() {
        for metric in METRICS {
            assert!(metric.name.starts_with("sierra_sync_"));
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            assert_eq!(metric.name.contains("_seconds"), metric.unit == Unit::Seconds, "{}", metric.name);
        }
    }
}
