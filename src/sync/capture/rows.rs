//! How rows of the ledger end a walk: closed, failed or parked; and what their neighbours make of it.

use jiff::{SignedDuration, Timestamp};

use super::error::WalkError;
use super::lane::Lane;
use crate::sync::ledger::{compact, coverage, days, plan};
use crate::sync::observer::Event;
use crate::sync::ports::Slice;
use crate::sync::report::summary::ErrorReport;
use crate::sync::{LedgerRow, Pass, RowState, Store, StoreError};

impl Lane {
    /// Closes a row whose walk came to its end: from now on its span is covered (WIN-1).
    pub(in crate::sync) async fn close_row(&self, row: LedgerRow) -> Result<(), StoreError> {
        let (stream, pass, span) = (row.stream, row.pass, row.span_text());
        let found_nothing = row.position.is_none();
        let closed = LedgerRow {
            state: RowState::Done,
            position: None,
            last_error: None,
            resume_at: None,
            touched: self.clock.now(),
            found_nothing,
            ..row
        };
        let watermark = self
            .store
            .call(move |store| {
                write_row(store, closed)?;
                Ok::<_, StoreError>(coverage::coverage(&store.ledger(stream)?).watermark)
            })
            .await?;
        self.observer.observe(&Event::RowDone { stream, pass, span });
        if pass == Pass::Load && found_nothing {
            self.observer.observe(&Event::NothingToLoad { stream });
        }
        if pass == Pass::RebuildDeletes {
            self.observer.observe(&Event::RebuildDone { stream });
        }
        match watermark {
            Some(watermark) => self.positions.captured(stream, watermark).await,
            None => Ok(()),
        }
    }

    /// Leaves a failed row in the ledger: it is a gap until it is done.
    pub(in crate::sync) async fn fail_row(&self, row: LedgerRow, error: &WalkError) -> Result<(), StoreError> {
        let now = self.clock.now();
        let attempts = row.attempts.saturating_add(u32::from(error.is_attempt()));
        let rest = SignedDuration::try_from(plan::rest_after(attempts)).unwrap_or(SignedDuration::MAX);
        let report = error.report(row.stream);
        let failed = LedgerRow {
            state: RowState::Failed,
            attempts,
            last_error: Some(report.message.clone()),
            resume_at: now.checked_add(rest).ok().max(error.asked_to_wait_until()),
            touched: now,
            ..row
        };
        let event = failed_event(&failed, report);
        self.store.call(move |store| write_row(store, failed)).await?;
        self.observer.observe(&event);
        Ok(())
    }

    /// Puts a row off until quota is there again. It is no gap.
    pub(in crate::sync) async fn park_row(&self, row: LedgerRow, resume_at: Timestamp) -> Result<(), StoreError> {
        let state = if row.position.is_some() { RowState::Partial } else { RowState::Pending };
        let parked = LedgerRow { state, resume_at: Some(resume_at), touched: self.clock.now(), ..row };
        let event = Event::RowParked { stream: parked.stream, pass: parked.pass, resume_at };
        self.store.call(move |store| write_row(store, parked)).await?;
        self.observer.observe(&event);
        Ok(())
    }
}

/// What is told of a row that failed.
pub(super) fn failed_event(row: &LedgerRow, mut error: ErrorReport) -> Event {
    let LedgerRow { stream, pass, attempts, .. } = *row;
    if pass == Pass::Backfill && error.hint.as_ref().is_none_or(|hint| hint.starts_with("nothing to do")) {
        // It has no schedule.
        error.hint = Some("the backfill's own command tries it again; its summary names it".to_owned());
    }
    Event::RowFailed { stream, pass, span: row.span_text(), attempts, error }
}

/// Writes `row` and, in the same commit, what its neighbours make of it.
fn write_row(store: &dyn Store, row: LedgerRow) -> Result<(), StoreError> {
    let stream = row.stream;
    let mut rows: Vec<LedgerRow> = store.ledger(stream)?;
    rows.retain(|other| other.id != row.id);
    rows.push(row.clone());
    let (grown, mut removed) = match row.pass {
        // A stretch of numbers that is read by now: nothing refers to it.
        Pass::Update if row.window().is_none() && row.state == RowState::Done => (Vec::new(), vec![row.id]),
        Pass::Update => {
            let compaction = compact::compact(&rows);
            (compaction.rows, compaction.removed)
        }
        Pass::Deletes => (Vec::new(), days::superseded(&rows)),
        // The last one of its kind says when the next is due.
        Pass::LateSweep | Pass::Reconcile if row.state == RowState::Done => {
            let is_older =
                |other: &&LedgerRow| other.pass == row.pass && other.state == RowState::Done && other.id != row.id;
            (Vec::new(), rows.iter().filter(is_older).map(|other| other.id).collect())
        }
        // It is over and nothing refers to it, but for a sweep that was the first load: that stays as such.
        Pass::Rebuild | Pass::RebuildDeletes if row.state == RowState::Done => {
            let is_load = row.pass == Pass::Rebuild && !rows.iter().any(|other| other.pass == Pass::Load);
            if is_load {
                (vec![LedgerRow { pass: Pass::Load, ..row.clone() }], Vec::new())
            } else {
                (Vec::new(), vec![row.id])
            }
        }
        _ => (Vec::new(), Vec::new()),
    };
    let mut written = grown;
    if !removed.contains(&row.id) && !written.iter().any(|other| other.id == row.id) {
        written.push(row);
    }
    removed.sort_unstable();
    let removed_rows = removed.into_iter().map(|id| (stream, id)).collect();
    store.commit(Slice { rows: written, removed_rows, ..Slice::default() })?;
    Ok(())
}
