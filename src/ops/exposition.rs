//! `/metrics`: the counters of the process, and everything that the status shows, made anew at each reading. So nothing
//! is left of a sink that was configured once, and the number of series follows from the configuration alone.

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::record::Stream;
use crate::sync::report::StatusReport;
use crate::sync::report::status::BreakerState;
use crate::telemetry::metric::{self, BreakerLabel};

use super::alert::ActiveAlerts;

/// The label of the API key's breaker. A sink of that name has one that no sink can have.
const SIERRA: &str = "sierra";

/// The Prometheus text format of `counters`, of what `report` shows and of the alerts that stand.
pub(super) fn exposition(counters: &PrometheusHandle, report: &StatusReport, alerts: &ActiveAlerts) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        metric::describe();
        show(report);
        for (cause, subject) in alerts.all() {
            metric::alert(cause.name(), &subject);
        }
    });
    counters.render() + &recorder.handle().render()
}

fn show(report: &StatusReport) {
    for stream in Stream::ALL {
        let name = stream.name();
        let Some(status) = report.streams.get(name) else { continue };
        if let Some(lag) = status.lag_seconds {
            metric::stream_lag(name, Duration::from_secs(lag));
        }
        metric::stream_stale_after(name, Duration::from_secs(status.stale_after_seconds));
        if let Some(at) = status.last_success {
            metric::stream_last_success(name, at.as_second());
        }
        metric::stream_gaps(name, status.gaps.len());
        metric::quarantine(name, status.quarantined);
    }
    metric::quota(report.quota.limit, report.quota.remaining);
    metric::breaker(SIERRA, label(report.breaker.state));
    for (name, sink) in &report.sinks {
        let breaker = if name == SIERRA { "sink sierra" } else { name };
        metric::breaker(breaker, label(sink.breaker));
        metric::outbox(name, sink.pending, sink.oldest_age_seconds.map(Duration::from_secs));
    }
    for (task, restarts) in &report.restarted {
        metric::task_restarts(task, u64::from(restarts.times));
    }
}

fn label(state: BreakerState) -> BreakerLabel {
    match state {
        BreakerState::Closed => BreakerLabel::Closed,
        BreakerState::Open => BreakerLabel::Open,
        BreakerState::HalfOpen => BreakerLabel::HalfOpen,
    }
}
