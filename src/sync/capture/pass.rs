//! One pass over one stream: what is owed, then the update pass, then the delete pass, then what was set aside.
//!
//! A row that fails does not keep the next one from being tried (BR-070). Only what no row could get past ends the
//! pass early: an open breaker, a quota wait, a refused credential, a full outbox, a shutdown.

mod rebuild;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::course::Course;
use super::error::Aftermath;
use super::lane::Lane;
use super::tally::Tally;
use crate::record::RecordNumber;
use crate::sync::exit::Trouble;
use crate::sync::ledger::coverage::{Coverage, coverage, gap_of, gaps};
use crate::sync::ledger::{days, own_rows, plan};
use crate::sync::observer::Event;
use crate::sync::report::status::Gap;
use crate::sync::report::summary::{ErrorReport, StreamOutcome};
use crate::sync::{LedgerRow, Pass, RowState, Span, StoreError};

/// What a pass is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassOrder {
    /// Sierra's time at the start of the run, as far as it may be trusted.
    pub now: Timestamp,
    /// How much further the next window reaches back, after a step of Sierra's clock.
    pub reach_back: SignedDuration,
    /// Which owed rows are tried: all, or only those whose rest is over.
    pub owed: Owed,
    /// Whether the update pass runs.
    pub update: bool,
    /// Whether the delete pass runs.
    pub deletes: bool,
    /// Whether long quota waits are sat out.
    pub wait_for_quota: bool,
}

/// Which owed rows a pass tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owed {
    /// All, whatever their schedule.
    All,
    /// Those that have rested.
    Due,
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq)]
pub struct PassReport {
    /// How the stream stands.
    pub outcome: StreamOutcome,
    /// What was done.
    pub tally: Tally,
    /// What is still owed.
    pub gaps: Vec<Gap>,
    /// Everything before this is captured.
    pub watermark: Option<Timestamp>,
    /// The last failure.
    pub error: Option<ErrorReport>,
    /// When a quota wait ends.
    pub resume_at: Option<Timestamp>,
    /// Until when Sierra asked to be left alone: no pass before that, in whatever process.
    pub asked_to_wait_until: Option<Timestamp>,
    /// Whether the extra reach back is behind us.
    pub reached_back: bool,
    /// What Sierra listed.
    pub listed: Listed,
    /// Whether the stream stopped for a reason that repeats until a person acts.
    pub needs_person: bool,
    /// What it means for the exit code.
    pub troubles: BTreeSet<Trouble>,
}

/// Whether Sierra listed anything; `None` where it was not asked, or not to the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listed {
    /// In the windows that the pass opened.
    pub updates: Option<bool>,
    /// Deletions.
    pub deletions: Option<bool>,
}

impl Lane {
    /// Runs one pass.
    ///
    /// # Errors
    /// Only when the store fails; everything else is in the report.
    pub(in crate::sync) async fn pass(
        &self,
        order: PassOrder,
        cancel: &CancellationToken,
    ) -> Result<PassReport, StoreError> {
        let mut running = Running {
            lane: self,
            order,
            cancel,
            course: Course::default(),
            reached_back: false,
            listed: Listed::default(),
        };
        running.run().await?;
        let report = running.report().await?;
        self.observer.observe(&Event::PassEnded { stream: self.stream(), outcome: report.outcome });
        Ok(report)
    }

    async fn rows(&self) -> Result<Vec<LedgerRow>, StoreError> {
        let stream = self.stream();
        self.store.call(move |store| own_rows(store, stream)).await
    }
}

/// A pass under way.
struct Running<'a> {
    lane: &'a Lane,
    order: PassOrder,
    cancel: &'a CancellationToken,
    course: Course,
    reached_back: bool,
    listed: Listed,
}

impl Running<'_> {
    async fn run(&mut self) -> Result<(), StoreError> {
        let began = self.lane.clock.now();
        let rows = self.lane.rows().await?;
        let mut owed = plan::owed_in_order(&rows);
        if coverage(&rows).pinned.is_none() {
            let span = Span::Ids { from: RecordNumber::new(1), to: None, pinned: self.bound() };
            owed.insert(0, self.open(Pass::Load, span).await?);
        } else if self.order.owed == Owed::Due {
            let now = self.lane.clock.now();
            owed.retain(|row| row.is_due(now));
        }
        if self.order.deletes && coverage(&rows).loaded {
            let taken_over = days::to_take_over(&rows).map(|row| row.id);
            owed.retain(|row| Some(row.id) != taken_over);
        }
        owed.retain(|row| !matches!(row.pass, Pass::Rebuild | Pass::RebuildDeletes));
        self.walk_all(owed).await?;
        if !coverage(&self.lane.rows().await?).loaded {
            // A store that holds nothing yet: the sweep of its rebuild is its first load.
            self.rebuild_sweep().await?;
        }

        let rows = self.lane.rows().await?;
        let covered = coverage(&rows);
        if self.order.update && self.goes_on(&covered) {
            self.update(&rows, &covered).await?;
        }
        if self.order.deletes && self.goes_on(&covered) {
            self.deletes(&covered).await?;
        }
        if self.order.update && self.goes_on(&covered) {
            self.lane.replay(began, &mut self.course.tally, self.cancel).await?;
        }
        if covered.loaded {
            // Last, so that what changed does not wait for it.
            self.rebuild_sweep().await?;
            self.rebuild_deletes().await?;
        }
        Ok(())
    }

    fn goes_on(&self, covered: &Coverage) -> bool {
        self.course.ended_by.is_none() && covered.loaded
    }

    async fn update(&mut self, rows: &[LedgerRow], covered: &Coverage) -> Result<(), StoreError> {
        let (bound, reach_back) = (self.bound(), self.order.reach_back);
        let windows = plan::windows_to_open(rows, bound, self.lane.settings.overlap, reach_back);
        let mut opened = Vec::with_capacity(windows.len());
        for window in windows {
            opened.push(self.open(Pass::Update, Span::Time(window)).await?);
        }
        let went_on = covered.newest_end.is_some_and(|newest| bound > newest);
        self.listed.updates = self.walk_counting(opened).await?;
        // Whatever became of the window, it stands in the ledger with its reach, unless the pass was cut off.
        self.reached_back = went_on && !matches!(self.course.ended_by, Some(Aftermath::LeaveRow));
        Ok(())
    }

    async fn deletes(&mut self, covered: &Coverage) -> Result<(), StoreError> {
        let Some(pinned) = covered.pinned else { return Ok(()) };
        let (settings, rows) = (&self.lane.settings, self.lane.rows().await?);
        let span = days::days_to_read(&rows, pinned, self.order.now, settings.deleted_overlap_days, &self.lane.zone);
        let row = match days::to_take_over(&rows) {
            Some(row) => LedgerRow { span: days::joined(row, span), opened: self.order.now, ..row.clone() },
            None => self.open(Pass::Deletes, span).await?,
        };
        self.listed.deletions = self.walk_counting(vec![row]).await?;
        Ok(())
    }

    /// Walks all of `rows` and tells whether they brought anything; `None` when not all of them came to their end.
    async fn walk_counting(&mut self, rows: Vec<LedgerRow>) -> Result<Option<bool>, StoreError> {
        let (count, entries, done) = (rows.len(), self.course.tally.entries.fetched(), self.course.rows_done);
        self.walk_all(rows).await?;
        let are_done = count > 0 && self.course.rows_done - done == count as u64;
        Ok(are_done.then(|| self.course.tally.entries.fetched() > entries))
    }

    /// The end of what this run looks at: late commits need `settle` to become visible.
    fn bound(&self) -> Timestamp {
        let settle = SignedDuration::try_from(self.lane.settings.settle).unwrap_or(SignedDuration::MAX);
        self.order.now.checked_sub(settle).unwrap_or(Timestamp::MIN)
    }

    async fn open(&self, pass: Pass, span: Span) -> Result<LedgerRow, StoreError> {
        let id = self.lane.store.call(|store| store.next_row_id()).await?;
        Ok(LedgerRow::opened(id, self.lane.stream(), pass, span, self.order.now))
    }

    async fn walk_all(&mut self, rows: Vec<LedgerRow>) -> Result<(), StoreError> {
        for row in rows {
            if self.course.ended_by.is_none() {
                self.walk_one(row).await?;
            }
        }
        Ok(())
    }

    async fn walk_one(&mut self, mut row: LedgerRow) -> Result<(), StoreError> {
        loop {
            let walked = self.lane.walk(&mut row, &mut self.course.tally, self.cancel).await;
            let wait = self.order.wait_for_quota;
            match self.course.conclude(self.lane, row, walked, wait, self.cancel).await? {
                Some(again) => row = again,
                None => break,
            }
        }
        if self.course.ended_by == Some(Aftermath::StopStream)
            && let Some(error) = self.course.error.clone()
        {
            self.lane.observer.observe(&Event::StreamStopped { stream: self.lane.stream(), error });
        }
        Ok(())
    }

    async fn report(mut self) -> Result<PassReport, StoreError> {
        let rows = self.lane.rows().await?;
        let is_parked = |row: &&LedgerRow| row.resume_at.is_some();
        let unfinished = rows.iter().filter(|row| row.is_owed() && row.state != RowState::Failed);
        let mut owed = gaps(&rows);
        owed.extend(unfinished.filter(|row| !is_parked(row)).map(gap_of));
        let is_owed = rows.iter().any(LedgerRow::is_owed) || !owed.is_empty();
        let outcome = self.course.outcome(!is_owed);
        if outcome == StreamOutcome::Failed && self.course.ended_by.is_none() {
            self.course.troubles.insert(Trouble::Unavailable);
        }
        if !owed.is_empty() {
            self.course.leaves_something();
        }
        if self.course.tally.entries.newly_quarantined > 0 {
            self.course.troubles.insert(Trouble::NewlyQuarantined);
        }
        let asked_to_wait_until = self.course.asked_to_wait_until;
        let resume_at = self.course.resume_at().or(asked_to_wait_until);
        Ok(PassReport {
            outcome,
            tally: self.course.tally,
            gaps: owed,
            watermark: coverage(&rows).watermark,
            error: self.course.error,
            resume_at,
            asked_to_wait_until,
            reached_back: self.reached_back,
            listed: self.listed,
            needs_person: self.course.needs_person,
            troubles: self.course.troubles,
        })
    }
}

impl PassReport {
    /// Whether more may be asked for after this.
    pub(in crate::sync) fn may_go_on(&self) -> bool {
        matches!(self.outcome, StreamOutcome::CaughtUp | StreamOutcome::Partial)
    }

    /// Adds what a backfill of the same stream came to.
    pub(in crate::sync) fn add(&mut self, backfill: Self) {
        self.tally += backfill.tally;
        self.gaps.extend(backfill.gaps);
        self.error = backfill.error.or(self.error.take());
        self.resume_at = backfill.resume_at.or(self.resume_at);
        self.asked_to_wait_until = backfill.asked_to_wait_until.or(self.asked_to_wait_until);
        self.needs_person |= backfill.needs_person;
        self.troubles.extend(backfill.troubles);
        if backfill.outcome != StreamOutcome::CaughtUp {
            self.outcome = backfill.outcome;
        }
    }
}
