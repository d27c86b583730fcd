//! A day of samples for the dashboard's lines.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use crate::sync::report::StatusReport;
use crate::sync::report::status::BreakerState;

/// How many samples are kept: a day at one every ten seconds.
const CAPACITY: usize = 8_640;

/// What one sample holds. Short names: the whole day travels to the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// Lag per stream, in seconds.
    pub lag: BTreeMap<String, Option<u64>>,
    /// Calls left in the quota window.
    pub quota: Option<u64>,
    /// The breaker's state.
    pub breaker: BreakerState,
    /// Entries in the durable queue.
    pub queue: u64,
}

/// The samples of the last day, oldest first; shared between the sampler and the server.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<VecDeque<Sample>>>);

impl History {
    /// Keeps a sample of `report`, dropping the oldest when a day is full.
    pub fn record(&self, report: &StatusReport) {
        let sample = Sample {
            at: report.now,
            lag: report.streams.iter().map(|(name, stream)| (name.clone(), stream.lag_seconds)).collect(),
            quota: report.quota.remaining,
            breaker: report.breaker.state,
            queue: report.outbox.entries,
        };
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == CAPACITY {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The samples, thinned evenly to at most `limit`; the newest is always among them.
    #[must_use]
    pub fn samples(&self, limit: usize) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stride = samples.len().div_ceil(limit.max(1)).max(1);
        let newest_first = samples.iter().rev().step_by(stride).cloned();
        let mut thinned: Vec<Sample> = newest_first.collect();
        thinned.reverse();
        thinned
    }
}
