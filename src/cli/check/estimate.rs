//! What the configuration will cost: calls a day and room on disk.

use std::time::Duration;

use super::ProbeLine;
use crate::cli::table::grouped;
use crate::config::Config;
use crate::sync::schedule::CronSchedule;
use crate::sync::settings::{Cadence, Repeat, StreamSettings};

/// A sign of life, one page, and the "nothing" after it that proves the end.
const CALLS_PER_UPDATE_PASS: f64 = 3.0;

/// A day without deletions answers with "nothing" at once; it is not asked twice.
const CALLS_PER_DELETE_PASS: f64 = 1.0;

/// One page, and the "nothing" after it.
const CALLS_PER_LATE_SWEEP: f64 = 2.0;

/// What is remembered of a record for good, on disk.
const STATE_BYTES_PER_RECORD: u64 = 200;

/// One line on the least that quiet days cost. Busy days cost a call more per page of changes.
pub(super) fn line(config: &Config) -> ProbeLine {
    let calls: f64 = config.streams.iter().map(calls_per_day).sum();
    let state = STATE_BYTES_PER_RECORD * 1_000_000 / (1 << 20);
    let outbox = config.store.outbox_max_size / (1 << 20);
    let each = |settings: &StreamSettings| {
        let times = match settings.reconcile {
            Some(Repeat::Daily) => 7,
            Some(Repeat::Weekly) => 1,
            None => 0,
        };
        times * 1_000_000_u64.div_ceil(u64::from(settings.page_size.max(1)))
    };
    let compared = match config.streams.iter().map(each).max().unwrap_or(0) {
        0 => String::new(),
        calls => format!(", and {} a week to compare a million records of one stream", grouped(calls)),
    };
    let message = format!(
        "about {} calls on a quiet day, plus one a page of changes{compared}; about {state} MiB of state a million records, \
         plus at most {} MiB of outbox",
        grouped(calls.round() as u64),
        grouped(outbox),
    );
    ProbeLine::good("estimate", message)
}

fn calls_per_day(settings: &StreamSettings) -> f64 {
    let per_day = |interval: Duration| 86_400.0 / interval.as_secs_f64();
    let updates = match &settings.cadence {
        Cadence::Every(interval) => per_day(*interval) * CALLS_PER_UPDATE_PASS,
        Cadence::Cron { expression, zone } => {
            CronSchedule::new(expression, zone).map_or(0.0, |schedule| schedule.times_per_day() * CALLS_PER_UPDATE_PASS)
        }
    };
    let sweeps = settings.late_sweep.map_or(0.0, |_| CALLS_PER_LATE_SWEEP);
    sweeps + updates + per_day(settings.deleted_interval) * CALLS_PER_DELETE_PASS
}
