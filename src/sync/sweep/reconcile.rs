//! One reconciliation: from its order to what it says.

use std::sync::Arc;

use super::job::{self, Job};
use super::missing::Conclusion;
use super::order::{ReconcileOrder, ReconcileReport};
use super::run::{Running, Sweeps};
use super::walk::Walk;
use crate::record::{RecordNumber, Stream};
use crate::sync::backfill::{Selection, Via};
use crate::sync::capture::Known;
use crate::sync::capture::error::WalkError;
use crate::sync::capture::pass::PassReport;
use crate::sync::exit::{Trouble, exit_code};
use crate::sync::ledger::coverage::coverage;
use crate::sync::observer::Event;
use crate::sync::ports::Slice;
use crate::sync::{LedgerRow, Pass, Span, StoreError};

/// What a reconciliation that a person ordered came to.
pub(in crate::sync) struct Reconciled {
    /// What it found and did.
    pub(in crate::sync) found: ReconcileReport,
    /// Whether it came to its end.
    pub(in crate::sync) is_whole: bool,
    /// The exit code.
    pub(in crate::sync) exit: u8,
    /// How the pass fared.
    pub(in crate::sync) report: PassReport,
}

impl Sweeps<'_> {
    /// Runs the reconciliation that a person ordered; `None` when another sweep of the stream is under way, or the
    /// stream is not loaded.
    ///
    /// # Errors
    /// Only when the store fails; everything else is in the report.
    pub(in crate::sync) async fn run_ordered(&self, order: &ReconcileOrder) -> Result<Option<Reconciled>, StoreError> {
        let Ok(_alone) = self.lane.sweeping.try_acquire() else { return Ok(None) };
        let mut running = Running::default();
        let (is_whole, found) = self.reconcile(order, &mut running).await?;
        let is_left = found.stopped.is_some() || (order.repair && found.repaired < found.drift + found.missing);
        if is_left || !is_whole {
            running.troubles.insert(Trouble::Gap);
        }
        let report = self.report(running).await?;
        Ok(Some(Reconciled { found, is_whole, exit: exit_code(report.troubles.iter().copied()), report }))
    }

    /// Goes on with the reconciliation that is under way for `order`, or begins one. Tells whether it came to its end,
    /// and what was found.
    pub(super) async fn reconcile(
        &self,
        order: &ReconcileOrder,
        running: &mut Running,
    ) -> Result<(bool, ReconcileReport), StoreError> {
        let Some((job, mut row, is_resumed)) = self.begin(order).await? else {
            let stopped = Some("the stream has no watermark yet: its first load is not complete".to_owned());
            return Ok((false, ReconcileReport { stopped, ..ReconcileReport::default() }));
        };
        let known = self.known_alive().await?;
        let mut walk = Walk::new(self, job, known);
        loop {
            match walk.run(&mut row, &mut running.tally).await {
                Ok(()) => break,
                Err(WalkError::Store(error)) => return Err(error),
                Err(error) => {
                    if !self.goes_on_after(&error, &mut row, running).await? {
                        let why = error.report(self.lane.stream()).message;
                        let mut found = walk.into_job().found;
                        found.stopped = Some(format!(
                            "the sweep did not come to its end ({why}): the same command goes on where it was"
                        ));
                        self.tell(&found);
                        return Ok((false, found));
                    }
                }
            }
        }
        let (job, conclusion) = loop {
            match walk.conclude(is_resumed, &mut row, &mut running.tally).await {
                Ok(conclusion) => break (walk.into_job(), conclusion),
                Err(WalkError::Store(error)) => return Err(error),
                Err(error) => {
                    if !self.goes_on_after(&error, &mut row, running).await? {
                        let why = error.report(self.lane.stream()).message;
                        let conclusion = Conclusion::stopped(
                            0,
                            format!(
                                "records that did not come could not be asked for again ({why}): nothing was concluded"
                            ),
                        );
                        break (walk.into_job(), conclusion);
                    }
                }
            }
        };
        let Conclusion { missing, repaired, stopped } = conclusion;
        let found = ReconcileReport { missing, stopped, repaired: job.found.repaired + repaired, ..job.found };
        self.end(order, row).await?;
        self.tell(&found);
        Ok((running.ended_by.is_none(), found))
    }

    /// The job and the row to go on with, and whether somebody began it before.
    async fn begin(&self, order: &ReconcileOrder) -> Result<Option<(Job, LedgerRow, bool)>, StoreError> {
        let (stream, now) = (self.lane.stream(), self.lane.clock.now());
        let rows = self.rows().await?;
        let Some(watermark) = coverage(&rows).watermark else { return Ok(None) };
        let kept = self.lane.store.call(move |store| job::find(store, stream)).await?;
        if let Some(job) = kept.filter(|job| job.serves(order, now))
            && let Some(row) = rows.iter().find(|row| row.id == job.row && row.is_owed() && row.position.is_some())
        {
            return Ok(Some((job, row.clone(), true)));
        }
        let known = self.lane.cut(&Selection::default(), Via::List, now).await?.records();
        let id = self.lane.store.call(|store| store.next_row_id()).await?;
        let span = Span::Ids { from: RecordNumber::new(1), to: None, pinned: watermark };
        let row = LedgerRow::opened(id, stream, Pass::Reconcile, span, now);
        let job = Job::new(*order, id, watermark, known, now);
        let (opened, written) = (job.clone(), row.clone());
        self.lane.store.call(move |store| job::open(store, opened, written)).await?;
        Ok(Some((job, row, false)))
    }

    /// The records that the store knows alive: patrons are remembered by pseudonym, so theirs are read once.
    async fn known_alive(&self) -> Result<Known, StoreError> {
        if self.lane.stream() != Stream::Patrons {
            return Ok(Known::Stored);
        }
        let held: Arc<[RecordNumber]> = self.lane.held_numbers(&Selection::default(), None).await?;
        Ok(Known::Held(held))
    }

    /// A sweep that heals stays in the ledger as the last one of its kind; one that only looked leaves nothing.
    async fn end(&self, order: &ReconcileOrder, row: LedgerRow) -> Result<(), StoreError> {
        let stream = self.lane.stream();
        if order.repair {
            self.lane.close_row(row).await?;
        } else {
            let removed_rows = vec![(stream, row.id)];
            self.lane.store.call(move |store| store.commit(Slice { removed_rows, ..Slice::default() })).await?;
        }
        self.lane.store.call(move |store| job::forget(store, stream)).await
    }

    fn tell(&self, found: &ReconcileReport) {
        self.lane.observer.observe(&Event::Reconciled { stream: self.lane.stream(), found: found.clone() });
    }
}
