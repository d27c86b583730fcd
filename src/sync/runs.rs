//! What was done lately: the passes and backfills of each stream, the oldest first. Passes in a row that found nothing
//! are one entry, so that what did find something is kept for long.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::capture::pass::PassReport;
use super::ports::Snapshot;
use super::report::summary::StreamOutcome;
use super::{Store, StoreError};
use crate::record::Stream;

/// So many entries are kept.
const KEPT: usize = 120;

/// What a run was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A pass: what changed, and what was deleted.
    Pass,
    /// Records read once more, by order or because a sink lacks them.
    Backfill,
}

/// One run, or several in a row that found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The stream.
    pub stream: Stream,
    /// What it was for.
    pub kind: RunKind,
    /// When the first of them began.
    pub began: Timestamp,
    /// When the last of them ended.
    pub ended: Timestamp,
    /// How many they were.
    pub times: u64,
    /// How the last of them ended.
    pub outcome: StreamOutcome,
    /// HTTP requests sent.
    pub calls: u64,
    /// Entries read.
    pub fetched: u64,
    /// Emitted as upserts.
    pub changed: u64,
    /// Emitted as deletes.
    pub deleted: u64,
    /// Set aside.
    pub quarantined: u64,
    /// Why it was no success; free of private values.
    pub error: Option<String>,
}

impl Run {
    /// The entry of a run that ended with `report`.
    pub(super) fn of(stream: Stream, kind: RunKind, began: Timestamp, ended: Timestamp, report: &PassReport) -> Self {
        let entries = report.tally.entries;
        Self {
            stream,
            kind,
            began,
            ended,
            times: 1,
            outcome: report.outcome,
            calls: u64::from(report.tally.traffic.calls),
            fetched: entries.fetched(),
            changed: entries.changed,
            deleted: entries.deleted,
            quarantined: entries.quarantined,
            error: report.error.as_ref().map(|error| error.message.clone()),
        }
    }

    fn found_nothing(&self) -> bool {
        self.changed + self.deleted + self.quarantined == 0
    }

    /// Whether `next` tells nothing that this does not.
    fn says_the_same(&self, next: &Self) -> bool {
        self.kind == next.kind
            && self.outcome == next.outcome
            && self.error == next.error
            && self.found_nothing()
            && next.found_nothing()
    }
}

/// The runs that are kept.
#[derive(Debug, Default)]
pub(super) struct Runs(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    runs: Vec<Run>,
    is_saved: bool,
}

impl Runs {
    /// Goes on from what is kept. What cannot be read is passed over: it decides nothing.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) fn open(store: &dyn Store) -> Result<Self, StoreError> {
        let bytes = store.snapshot(Snapshot::History)?;
        let runs = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Ok(Self(Mutex::new(Kept { runs, is_saved: true })))
    }

    /// Notes a run that has ended.
    pub(super) fn note(&self, run: Run) {
        let mut kept = self.lock();
        kept.is_saved = false;
        let last = kept.runs.iter_mut().rev().find(|last| last.stream == run.stream);
        if let Some(last) = last.filter(|last| last.says_the_same(&run)) {
            last.ended = run.ended;
            last.times += run.times;
            last.calls += run.calls;
            last.fetched += run.fetched;
            return;
        }
        kept.runs.push(run);
        let surplus = kept.runs.len().saturating_sub(KEPT);
        kept.runs.drain(..surplus);
    }

    /// Those that are kept, the oldest first.
    pub(super) fn all(&self) -> Vec<Run> {
        self.lock().runs.clone()
    }

    /// Writes them, if there is something new.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) fn save(&self, store: &dyn Store) -> Result<(), StoreError> {
        let value = {
            let mut kept = self.lock();
            if std::mem::replace(&mut kept.is_saved, true) {
                return Ok(());
            }
            serde_json::to_vec(&kept.runs).expect("a run holds nothing that JSON cannot")
        };
        store.save_snapshot(Snapshot::History, &value)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::store::MemoryStore;

    fn run(stream: Stream, second: i64, changed: u64) -> Run {
        let at = |second| Timestamp::from_second(second).expect("a time");
        Run {
            stream,
            kind: RunKind::Pass,
            began: at(second),
            ended: at(second + 1),
            times: 1,
            outcome: StreamOutcome::CaughtUp,
            calls: 2,
            fetched: changed,
            changed,
            deleted: 0,
            quarantined: 0,
            error: None,
        }
    }

    #[test]
    fn runs_that_found_nothing_are_one_entry_and_survive_a_restart() {
        let store = MemoryStore::new(Arc::new(SystemClock));
        let runs = Runs::open(&store).expect("empty");
        runs.note(run(Stream::Bibs, 0, 5));
        for second in [10, 20, 30] {
            runs.note(run(Stream::Bibs, second, 0));
            runs.note(run(Stream::Items, second, 0));
        }
        runs.note(run(Stream::Bibs, 40, 1));
        let told: Vec<(Stream, u64, u64)> = runs.all().iter().map(|run| (run.stream, run.times, run.changed)).collect();
        let expected = [(Stream::Bibs, 1, 5), (Stream::Bibs, 3, 0), (Stream::Items, 3, 0), (Stream::Bibs, 1, 1)];
        assert_eq!(told, expected);
        assert_eq!((runs.all()[1].calls, runs.all()[1].ended.as_second()), (6, 31));
        runs.save(&store).expect("written");
        assert_eq!(Runs::open(&store).expect("read").all(), runs.all());
        store.save_snapshot(Snapshot::History, b"[{\"torn\":").expect("written");
        assert!(Runs::open(&store).expect("passed over").all().is_empty());
    }

    #[test]
    fn the_oldest_give_way() {
        let runs = Runs::default();
        for second in 0..500 {
            runs.note(run(Stream::Bibs, second, 1));
        }
        let all = runs.all();
        assert_eq!((all.len(), all[0].began.as_second()), (KEPT, 500 - 120));
    }
}
