//! What runs beside a stream's own passes, and how far it is.

use jiff::{SignedDuration, Timestamp};

use super::Vitals;
use crate::record::Stream;
use crate::sync::backfill::{JobState, Progress};
use crate::sync::engine::Engine;
use crate::sync::report::status::{BackfillStatus, ReconcileStatus};
use crate::sync::sweep::{Sweeping, sweeping};
use crate::sync::{LedgerRow, StoreError};

impl Engine {
    /// The backfill of `stream` that is under way or parked; of several the one that was worked on last.
    pub(super) async fn backfill_status(
        &self,
        stream: Stream,
        rows: &[LedgerRow],
        vitals: &dyn Vitals,
        now: Timestamp,
    ) -> Result<Option<BackfillStatus>, StoreError> {
        let Some(job) = self.book.latest(stream).await? else { return Ok(None) };
        let progress = job.progress(rows);
        let state = self.book.standing(&job);
        Ok(Some(BackfillStatus {
            id: job.id,
            done: progress.done,
            total: progress.total,
            percent: progress.percent(),
            eta: eta(progress, vitals, job.resume_at, now),
            calls_left: progress.calls_left,
            state: state.name().to_owned(),
        }))
    }

    /// The reconciliation of `stream` that is under way, or that waits to be gone on with.
    pub(super) async fn reconcile_status(
        &self,
        stream: Stream,
        rows: Vec<LedgerRow>,
        vitals: &dyn Vitals,
        now: Timestamp,
    ) -> Result<Option<ReconcileStatus>, StoreError> {
        let Some(lane) = self.lanes.get(&stream) else { return Ok(None) };
        let page_size = lane.settings.page_size;
        let find = move |store: &dyn crate::sync::Store| {
            let found = sweeping(store, stream, &rows, page_size, now)?;
            Ok::<_, StoreError>(found.map(|(sweeping, row)| (sweeping, row.resume_at, row.waits_for_quota(now))))
        };
        let Some((sweeping, resume_at, waits)) = self.store.call(find).await? else { return Ok(None) };
        let state = match (lane.sweeping.available_permits() == 0, waits) {
            (true, _) => JobState::Running,
            (false, true) => JobState::WaitingQuota,
            (false, false) => JobState::Parked,
        };
        let Sweeping { order, found, progress } = sweeping;
        Ok(Some(ReconcileStatus {
            deep: order.deep,
            repair: order.repair,
            checked: found.checked,
            total: progress.total,
            percent: progress.percent(),
            drift: found.drift,
            repaired: found.repaired,
            eta: eta(progress, vitals, resume_at, now),
            calls_left: progress.calls_left,
            state: state.name().to_owned(),
        }))
    }
}

/// When what is so far should end, if it goes on at `resume_at`.
fn eta(progress: Progress, vitals: &dyn Vitals, resume_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let seconds = progress.calls_left.and_then(|calls| vitals.seconds_for(calls))?;
    let left = SignedDuration::try_from_secs_f64(seconds).ok()?;
    resume_at.unwrap_or(now).max(now).checked_add(left).ok()
}
