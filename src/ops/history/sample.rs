//! How things stood at one moment, or over a short while.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sync::report::StatusReport;
use crate::sync::report::status::{BreakerState, OverallState, QuotaState};

/// One sample. The names are short: a day of samples travels to the page and is kept in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was last looked, in unix seconds.
    #[serde(rename = "t")]
    pub at: i64,
    /// The worst overall state.
    #[serde(rename = "s")]
    pub state: OverallState,
    /// By stream: the most lag in seconds.
    #[serde(rename = "l")]
    pub lag: BTreeMap<String, Option<u64>>,
    /// Calls left, calls granted, and when the window ends in unix seconds.
    #[serde(rename = "q")]
    pub quota: (Option<u64>, Option<u64>, Option<i64>),
    /// Whether calls waited for quota at some moment.
    #[serde(rename = "w")]
    pub waited: bool,
    /// By sink: the most changes that waited.
    #[serde(rename = "p")]
    pub pending: BTreeMap<String, u64>,
    /// The most records set aside.
    #[serde(rename = "z")]
    pub quarantined: u64,
    /// What let no calls or deliveries pass.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub halts: Vec<Halt>,
}

/// A breaker that is not closed, or an endpoint that is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// `sierra`, `endpoint …` or `sink …`.
    pub who: String,
    /// Since when, in unix seconds, where that is known.
    pub since: Option<i64>,
    /// Why, free of private values.
    pub why: Option<String>,
}

impl Sample {
    /// How things stand in `report`.
    #[must_use]
    pub fn of(report: &StatusReport) -> Self {
        let quota = &report.quota;
        Self {
            at: report.now.as_second(),
            state: report.state,
            lag: report.streams.iter().map(|(name, stream)| (name.clone(), stream.lag_seconds)).collect(),
            quota: (quota.remaining, quota.limit, quota.resets_at.map(|at| at.as_second())),
            waited: quota.state == QuotaState::WaitingQuota,
            pending: report.sinks.iter().map(|(name, sink)| (name.clone(), sink.pending)).collect(),
            quarantined: report.quarantine.values().sum(),
            halts: halts(report),
        }
    }

    /// This and a later one as one: the worst of both, and the later quota.
    #[must_use]
    pub fn join(mut self, later: Self) -> Self {
        for (name, lag) in later.lag {
            let before = self.lag.entry(name).or_default();
            *before = (*before).max(lag);
        }
        for (name, pending) in later.pending {
            let before = self.pending.entry(name).or_default();
            *before = (*before).max(pending);
        }
        for halt in later.halts {
            if !self.halts.iter().any(|known| known.who == halt.who && known.since == halt.since) {
                self.halts.push(halt);
            }
        }
        Self {
            at: later.at,
            state: if rank(later.state) > rank(self.state) { later.state } else { self.state },
            quota: later.quota,
            waited: self.waited || later.waited,
            quarantined: self.quarantined.max(later.quarantined),
            ..self
        }
    }
}

fn halts(report: &StatusReport) -> Vec<Halt> {
    let mut halts = Vec::new();
    if report.breaker.state != BreakerState::Closed {
        let since = report.breaker.since.map(|since| since.as_second());
        halts.push(Halt { who: "sierra".to_owned(), since, why: report.breaker.reason.clone() });
    }
    for endpoint in &report.breaker.suspended_endpoints {
        halts.push(Halt { who: format!("endpoint {endpoint}"), since: None, why: None });
    }
    for (name, sink) in &report.sinks {
        if sink.breaker != BreakerState::Closed {
            let since = sink.since.map(|since| since.as_second());
            let why = sink.error.as_ref().map(|error| error.message.clone());
            halts.push(Halt { who: format!("sink {name}"), since, why });
        }
    }
    halts
}

const fn rank(state: OverallState) -> u8 {
    match state {
        OverallState::Ok => 0,
        OverallState::Degraded => 1,
        OverallState::Failing => 2,
    }
}
