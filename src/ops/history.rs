//! A day of samples for the dashboard's charts: every ten seconds of the last half hour, every minute before that.
//!
//! Whole minutes are appended to a file beside the state, one line each, so that the day outlives a restart. The file
//! decides nothing: lines that are torn or damaged are passed over, and one that cannot be written is done without.

mod file;
mod sample;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::sync::report::StatusReport;

use file::HistoryFile;
pub use sample::{Halt, Sample};

/// Seconds of a fine sample, and how many are kept: half an hour.
const FINE: i64 = 10;
const FINE_KEPT: usize = 180;
/// Seconds of a coarse sample, and how many are kept: a day.
const COARSE: i64 = 60;
const COARSE_KEPT: usize = 1_440;

/// The samples of the last day; shared between the sampler and the server.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    coarse: VecDeque<Sample>,
    fine: VecDeque<Sample>,
    /// The sample that is being made.
    open: Option<Sample>,
    /// The minute that is being made.
    minute: Option<Sample>,
    /// Whole minutes that are not in the file yet.
    unwritten: Vec<Sample>,
    file: Option<HistoryFile>,
}

impl History {
    /// Goes on with the day that is kept in `file`, and keeps it there.
    #[must_use]
    pub fn kept_in(file: &Path, now: Timestamp) -> Self {
        let file = HistoryFile::at(file);
        let until = now.as_second();
        let from = until - COARSE * i64::try_from(COARSE_KEPT).unwrap_or(i64::MAX / COARSE);
        let coarse: VecDeque<Sample> =
            file.read().into_iter().filter(|sample| (from..=until).contains(&sample.at)).collect();
        Self(Arc::new(Mutex::new(Inner { coarse, file: Some(file), ..Inner::default() })))
    }

    /// Takes `report` into account.
    pub fn record(&self, report: &StatusReport) {
        let sample = Sample::of(report);
        let mut inner = self.lock();
        match inner.open.take() {
            Some(open) if open.at.div_euclid(FINE) == sample.at.div_euclid(FINE) => {
                inner.open = Some(open.join(sample))
            }
            Some(open) => {
                inner.close(open);
                inner.open = Some(sample);
            }
            None => inner.open = Some(sample),
        }
    }

    /// Ends the minute that is being made: nothing more will be recorded for now.
    pub fn pause(&self) {
        let mut inner = self.lock();
        if let Some(open) = inner.open.take() {
            inner.close(open);
        }
        if let Some(minute) = inner.minute.take() {
            inner.keep(minute);
        }
    }

    /// Writes what is whole. Blocks on the disk.
    pub fn save(&self) {
        let (file, unwritten, whole) = {
            let mut inner = self.lock();
            let Some(file) = inner.file.take() else {
                inner.unwritten.clear();
                return;
            };
            let unwritten = std::mem::take(&mut inner.unwritten);
            // Copied only when the file is written anew.
            let whole = file.is_long().then(|| inner.coarse.iter().cloned().collect::<Vec<_>>());
            (file, unwritten, whole)
        };
        let file = match whole {
            Some(whole) => file.rewrite(&whole),
            None => file.append(&unwritten),
        };
        self.lock().file = Some(file);
    }

    /// The samples after a moment, the oldest first: all of them without one.
    #[must_use]
    pub fn samples(&self, after: Option<i64>) -> Vec<Sample> {
        let inner = self.lock();
        let first_fine = inner.fine.front().map_or(i64::MAX, |sample| sample.at);
        let coarse = inner.coarse.iter().filter(|sample| sample.at < first_fine);
        let is_newer = |sample: &&Sample| after.is_none_or(|after| sample.at > after);
        coarse.chain(&inner.fine).filter(is_newer).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn close(&mut self, sample: Sample) {
        match self.minute.take() {
            Some(minute) if minute.at.div_euclid(COARSE) == sample.at.div_euclid(COARSE) => {
                self.minute = Some(minute.join(sample.clone()));
            }
            Some(minute) => {
                self.keep(minute);
                self.minute = Some(sample.clone());
            }
            None => self.minute = Some(sample.clone()),
        }
        push(&mut self.fine, sample, FINE_KEPT);
    }

    fn keep(&mut self, minute: Sample) {
        self.unwritten.push(minute.clone());
        push(&mut self.coarse, minute, COARSE_KEPT);
    }
}

fn push(samples: &mut VecDeque<Sample>, sample: Sample, kept: usize) {
    if samples.len() >= kept {
        samples.pop_front();
    }
    samples.push_back(sample);
}
