//! The metrics that follow from the status: set whenever it is made, so that a scrape sees what `status` says.

use std::time::Duration;

use crate::record::Stream;
use crate::sync::report::StatusReport;
use crate::sync::report::status::BreakerState;
use crate::telemetry::metric::{self, BreakerLabel};

/// Shows `report` in the metrics.
pub(super) fn show(report: &StatusReport) {
    for stream in Stream::ALL {
        let name = stream.name();
        let Some(status) = report.streams.get(name) else { continue };
        if let Some(lag) = status.lag_seconds {
            metric::stream_lag(name, Duration::from_secs(lag));
        }
        if let Some(at) = status.last_success {
            metric::stream_last_success(name, at.as_second());
        }
        metric::stream_gaps(name, status.gaps.len());
        metric::quarantine(name, status.quarantined);
    }
    metric::quota(report.quota.limit, report.quota.remaining);
    metric::breaker("sierra", label(report.breaker.state));
    for (name, sink) in &report.sinks {
        metric::breaker(name, label(sink.breaker));
        metric::outbox(name, sink.pending, sink.oldest_age_seconds.map(Duration::from_secs));
    }
}

fn label(state: BreakerState) -> BreakerLabel {
    match state {
        BreakerState::Closed => BreakerLabel::Closed,
        BreakerState::Open => BreakerLabel::Open,
        BreakerState::HalfOpen => BreakerLabel::HalfOpen,
    }
}
