//! The reconciliations that are under way, as they are kept across restarts: one a stream at most.
//!
//! Where one stands is in its row of the ledger; here is what was found so far, and how it began. Both are written after
//! each page, the row first: a crash in between counts one page twice.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::compare::Beginning;
use super::order::{ReconcileOrder, ReconcileReport};
use crate::record::Stream;
use crate::sync::backfill::Progress;
use crate::sync::ports::{Slice, Snapshot, StoreErrorKind};
use crate::sync::{LedgerRow, Pass, RequestNumber, Store, StoreError};

/// One that nobody went on with for so long begins anew: what it compared is too old.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(3 * 24);

/// One reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// What was ordered.
    pub(super) order: ReconcileOrder,
    /// The number of its row in the ledger.
    pub(super) row: u64,
    /// The stream's watermark when it began.
    watermark: Timestamp,
    /// The number of its first request, once that was sent.
    request: Option<u64>,
    /// What was found so far.
    pub(super) found: ReconcileReport,
    /// Records that were known alive when it began; `None` where an older version did not count them.
    #[serde(default)]
    known: Option<u64>,
    /// When it was last worked on.
    touched: Timestamp,
}

impl Job {
    pub(super) fn new(order: ReconcileOrder, row: u64, watermark: Timestamp, known: u64, now: Timestamp) -> Self {
        let found = ReconcileReport::default();
        Self { order, row, watermark, request: None, found, known: Some(known), touched: now }
    }

    /// When it began; the first request that is named here counts from then on.
    pub(super) fn beginning(&mut self, sent: RequestNumber) -> Beginning {
        let request = *self.request.get_or_insert(sent.0);
        Beginning { watermark: self.watermark, request: RequestNumber(request) }
    }

    /// When it began; `None` before its first request.
    pub(super) fn began(&self) -> Option<Beginning> {
        let request = RequestNumber(self.request?);
        Some(Beginning { watermark: self.watermark, request })
    }

    /// Whether it may be gone on with for `order`.
    pub(super) fn serves(&self, order: &ReconcileOrder, now: Timestamp) -> bool {
        self.order.is_like(order) && self.is_remembered(now)
    }

    fn is_remembered(&self, now: Timestamp) -> bool {
        now.duration_since(self.touched) < FORGOTTEN_AFTER
    }

    /// How far it is: records compared, of those that were known, and the calls that the rest takes in pages of
    /// `page_size`, with two to hear that there is nothing behind them.
    fn progress(&self, page_size: u32) -> Progress {
        let (done, total) = (self.found.checked, self.known.filter(|known| *known > 0));
        let left = total.map(|total| total.saturating_sub(done).div_ceil(u64::from(page_size.max(1))));
        Progress { done, total, calls_left: left.map(|calls| calls + 2) }
    }
}

/// The job of `stream`.
pub(super) fn find(store: &dyn Store, stream: Stream) -> Result<Option<Job>, StoreError> {
    Ok(read(store)?.into_iter().find(|job| job.order.stream == stream))
}

/// A reconciliation that is under way or waits to be gone on with.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::sync) struct Sweeping {
    /// What was ordered.
    pub(in crate::sync) order: ReconcileOrder,
    /// What was found so far.
    pub(in crate::sync) found: ReconcileReport,
    /// How far it is.
    pub(in crate::sync) progress: Progress,
}

/// The reconciliation of `stream` that is under way, with its row among `rows`; none when it was given up.
pub(in crate::sync) fn sweeping<'a>(
    store: &dyn Store,
    stream: Stream,
    rows: &'a [LedgerRow],
    page_size: u32,
    now: Timestamp,
) -> Result<Option<(Sweeping, &'a LedgerRow)>, StoreError> {
    let Some(job) = find(store, stream)?.filter(|job| job.is_remembered(now)) else { return Ok(None) };
    let Some(row) = rows.iter().find(|row| row.id == job.row && row.is_owed()) else { return Ok(None) };
    let progress = job.progress(page_size);
    Ok(Some((Sweeping { order: job.order, found: job.found, progress }, row)))
}

/// Opens a job with its row, in the place of any other of the stream; rows that nobody names go.
pub(super) fn open(store: &dyn Store, job: Job, row: LedgerRow) -> Result<(), StoreError> {
    let stream = job.order.stream;
    let rows = store.ledger(stream)?.into_iter();
    let nobodys = rows.filter(|row| row.pass == Pass::Reconcile && row.is_owed());
    let removed_rows = nobodys.map(|row| (stream, row.id)).collect();
    store.commit(Slice { rows: vec![row], removed_rows, ..Slice::default() })?;
    replace(store, stream, Some(job))
}

/// Keeps how a job stands.
pub(super) fn keep(store: &dyn Store, mut job: Job, now: Timestamp) -> Result<(), StoreError> {
    job.touched = now;
    replace(store, job.order.stream, Some(job))
}

/// Forgets the job of `stream`.
pub(super) fn forget(store: &dyn Store, stream: Stream) -> Result<(), StoreError> {
    replace(store, stream, None)
}

fn replace(store: &dyn Store, stream: Stream, job: Option<Job>) -> Result<(), StoreError> {
    let mut jobs = read(store)?;
    jobs.retain(|job| job.order.stream != stream);
    jobs.extend(job);
    let value = serde_json::to_vec(&jobs).expect("jobs hold nothing that JSON cannot");
    store.save_snapshot(Snapshot::Reconciles, &value)
}

fn read(store: &dyn Store) -> Result<Vec<Job>, StoreError> {
    let Some(bytes) = store.snapshot(Snapshot::Reconciles)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).map_err(|error| {
        StoreError::new(StoreErrorKind::Corrupt, "read which reconciliations are under way").caused_by(error)
    })
}
