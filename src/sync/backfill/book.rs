//! The backfills that are under way or parked, as they are kept across restarts.
//!
//! A job names its rows of the ledger; these hold what is private and what moves. Rows are written before the job that
//! names them and removed after it, so a crash in between leaves rows that nobody names, which the next backfill of
//! that stream removes.

use std::collections::BTreeSet;
use std::sync::{self, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, MutexGuard};

use crate::record::{RecordNumber, Stream};
use crate::sync::ledger::{Pass, RowState};
use crate::sync::ports::{Slice, Snapshot, StoreErrorKind};
use crate::sync::store_handle::StoreHandle;
use crate::sync::{LedgerRow, Seq, Store, StoreError};

/// A job that nobody went on with for so long is forgotten.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// One backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id: the same order has the same id, and no other has it.
    pub id: String,
    /// The stream.
    pub stream: Stream,
    /// The sink that is loaded, if it is for one.
    pub sink: Option<String>,
    /// For the load of a sink: where the sink's place was when it began. With another place it begins anew.
    #[serde(default)]
    pub fixed_at: Seq,
    /// Its ranges, in order.
    pub ranges: Vec<JobRange>,
    /// Whether the records are known that it will read, so that progress can be told.
    pub is_measured: bool,
    /// Whether the sink that is loaded was told of what is gone.
    #[serde(default)]
    pub dead_are_told: bool,
    /// What the stream's events mean once it is complete, if they do not yet.
    #[serde(default)]
    pub meaning: Option<String>,
    /// How it stands.
    pub state: JobState,
    /// When a quota wait ends.
    pub resume_at: Option<Timestamp>,
    /// When it was last worked on.
    pub touched: Timestamp,
}

/// One range of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRange {
    /// The number of its row in the ledger.
    pub row: u64,
    /// Records that the store knew in it when the job began.
    pub records: u64,
    /// Calls that these take.
    pub calls: u64,
    /// The first and the last number that the store knew in it. Never kept of patrons.
    #[serde(default)]
    pub known: Option<(RecordNumber, RecordNumber)>,
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Somebody works on it, or was stopped while they did.
    Running,
    /// It waits for quota.
    WaitingQuota,
    /// It ended with something left: it goes on when it is asked for again.
    Parked,
}

impl JobState {
    /// The word in `status`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingQuota => "waiting_quota",
            Self::Parked => "parked",
        }
    }
}

/// The one owner of the jobs of an open engine.
pub struct Book {
    store: StoreHandle,
    /// One backfill of a stream at a time.
    turns: [Mutex<()>; Stream::ALL.len()],
    writing: Mutex<()>,
    /// The jobs that this process works on.
    in_hand: sync::Mutex<BTreeSet<String>>,
}

/// A job that is worked on, until this is dropped.
pub(super) struct InHand<'a> {
    book: &'a Book,
    id: String,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.book.in_hand.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Book {
    /// A book over `store`.
    #[must_use]
    pub fn new(store: StoreHandle) -> Self {
        let turns = std::array::from_fn(|_| Mutex::new(()));
        Self { store, turns, writing: Mutex::new(()), in_hand: sync::Mutex::default() }
    }

    /// Says that the job with this id is worked on.
    pub(super) fn take_in_hand(&self, id: &str) -> InHand<'_> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        InHand { book: self, id: id.to_owned() }
    }

    /// How a job stands: one that runs as far as the store knows, but that nobody works on, was cut off by a death.
    #[must_use]
    pub fn standing(&self, job: &Job) -> JobState {
        let is_in_hand = || self.in_hand.lock().unwrap_or_else(PoisonError::into_inner).contains(&job.id);
        if job.state == JobState::Running && !is_in_hand() { JobState::Parked } else { job.state }
    }

    /// Waits until no other backfill of `stream` runs.
    pub(super) async fn turn(&self, stream: Stream) -> Option<MutexGuard<'_, ()>> {
        let place = Stream::ALL.iter().position(|known| *known == stream)?;
        Some(self.turns.get(place)?.lock().await)
    }

    /// The job with this id.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn find(&self, id: &str) -> Result<Option<Job>, StoreError> {
        let jobs = self.store.call(read).await?;
        Ok(jobs.into_iter().find(|job| job.id == id))
    }

    /// The job of `stream` that was worked on last.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn latest(&self, stream: Stream) -> Result<Option<Job>, StoreError> {
        let jobs = self.store.call(read).await?;
        Ok(jobs.into_iter().filter(|job| job.stream == stream).max_by_key(|job| job.touched))
    }

    /// Opens a job with its rows. Rows that no job names, and jobs that nobody went on with for a month, go.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) async fn open(&self, job: Job, rows: Vec<LedgerRow>) -> Result<(), StoreError> {
        let _alone = self.writing.lock().await;
        let (stream, now) = (job.stream, job.touched);
        self.store
            .call(move |store| {
                let mut jobs = read(store)?;
                let is_alive = |other: &Job| now.duration_since(other.touched) < FORGOTTEN_AFTER;
                jobs.retain(|other| other.id != job.id && is_alive(other));
                let named: BTreeSet<u64> =
                    jobs.iter().flat_map(|job| job.ranges.iter().map(|range| range.row)).collect();
                let rows_there = store.ledger(stream)?.into_iter();
                let nobodys = rows_there.filter(|row| row.pass == Pass::Backfill && !named.contains(&row.id));
                let removed_rows = nobodys.map(|row| (stream, row.id)).collect();
                store.commit(Slice { rows, removed_rows, ..Slice::default() })?;
                jobs.push(job);
                write(store, &jobs)
            })
            .await
    }

    /// Keeps how a job stands.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) async fn keep(&self, job: Job) -> Result<(), StoreError> {
        let _alone = self.writing.lock().await;
        self.store
            .call(move |store| {
                let mut jobs = read(store)?;
                if let Some(kept) = jobs.iter_mut().find(|other| other.id == job.id) {
                    *kept = job;
                }
                write(store, &jobs)
            })
            .await
    }

    /// Closes the jobs that `ends` names, and removes their rows.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn close(&self, ends: impl Fn(&Job) -> bool + Send + 'static) -> Result<(), StoreError> {
        let _alone = self.writing.lock().await;
        self.store
            .call(move |store| {
                let (ended, left): (Vec<Job>, Vec<Job>) = read(store)?.into_iter().partition(ends);
                if ended.is_empty() {
                    return Ok(());
                }
                write(store, &left)?;
                let rows = |job: &Job| job.ranges.iter().map(|range| (job.stream, range.row)).collect::<Vec<_>>();
                let removed_rows = ended.iter().flat_map(rows).collect();
                store.commit(Slice { removed_rows, ..Slice::default() }).map(drop)
            })
            .await
    }
}

impl Job {
    /// How far it is, by its rows.
    #[must_use]
    pub fn progress(&self, rows: &[LedgerRow]) -> super::Progress {
        let (mut done, mut total, mut calls_left) = (0, 0, 0);
        for range in &self.ranges {
            let row = rows.iter().find(|row| row.id == range.row);
            let behind = row.map_or(0.0, |row| share_behind(row, range.known));
            done += scaled(range.records, behind);
            calls_left += range.calls - scaled(range.calls, behind);
            total += range.records;
        }
        let known = |value: u64| self.is_measured.then_some(value);
        super::Progress { done, total: known(total), calls_left: known(calls_left) }
    }
}

/// The share of a row that is behind its position. Numbers are spread about evenly between the first and the last one
/// that is `known`; where none is, over the whole range.
#[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
fn share_behind(row: &LedgerRow, known: Option<(RecordNumber, RecordNumber)>) -> f64 {
    use crate::sync::Span;
    let whole = match row.span {
        Span::Ids { from, to, .. } => to.map(|to| (from, to)),
        _ => None,
    };
    let ends = known.or(whole);
    match (row.state, row.position, ends) {
        (RowState::Done, ..) => 1.0,
        (_, Some(position), Some((from, to))) => {
            let width = (to.value().saturating_sub(from.value()) + 1) as f64;
            ((position.value() + 1).saturating_sub(from.value()) as f64 / width).min(1.0)
        }
        // It is somewhere in the middle, and nothing says where.
        (_, Some(_), None) => 0.5,
        (_, None, _) => 0.0,
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn scaled(count: u64, share: f64) -> u64 {
    ((count as f64 * share) as u64).min(count)
}

/// Every job, in the order in which they were opened.
fn read(store: &dyn Store) -> Result<Vec<Job>, StoreError> {
    let Some(bytes) = store.snapshot(Snapshot::Backfills)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).map_err(|error| {
        StoreError::new(StoreErrorKind::Corrupt, "read which backfills are under way").caused_by(error)
    })
}

fn write(store: &dyn Store, jobs: &[Job]) -> Result<(), StoreError> {
    let value = serde_json::to_vec(jobs).expect("jobs hold nothing that JSON cannot");
    store.save_snapshot(Snapshot::Backfills, &value)
}
