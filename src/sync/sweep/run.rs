//! Running sweeps: those that are due, one after the other; and what becomes of a row that fails.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::due::is_due;
use super::order::ReconcileOrder;
use crate::sync::capture::Lane;
use crate::sync::capture::error::{Aftermath, WalkError};
use crate::sync::capture::pass::{Listed, Owed, PassReport};
use crate::sync::capture::tally::Tally;
use crate::sync::exit::Trouble;
use crate::sync::ledger::coverage::{coverage, gap_of};
use crate::sync::ledger::{own_rows, plan};
use crate::sync::observer::Event;
use crate::sync::ports::SourceErrorKind;
use crate::sync::rebuild;
use crate::sync::report::summary::{ErrorReport, StreamOutcome};
use crate::sync::{LedgerRow, Pass, StoreError};

/// What is done about what goes wrong in the middle of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) enum Patience {
    /// The sweep ends there, and goes on when it is asked for again.
    None,
    /// The same, but long quota waits are sat out.
    Quota,
    /// Everything that passes by itself is sat out: a service has time, and a sweep that goes through in one piece may
    /// conclude from absence.
    Endless,
}

/// The sweeps of one stream.
pub(in crate::sync) struct Sweeps<'a> {
    pub(in crate::sync) lane: &'a Lane,
    /// Which owed sweeps are gone on with.
    pub(in crate::sync) owed: Owed,
    pub(in crate::sync) patience: Patience,
    pub(in crate::sync) cancel: &'a CancellationToken,
}

/// What was done so far, and what ended it early.
#[derive(Default)]
pub(super) struct Running {
    pub(super) tally: Tally,
    pub(super) error: Option<ErrorReport>,
    pub(super) ended_by: Option<Aftermath>,
    pub(super) needs_person: bool,
    pub(super) troubles: BTreeSet<Trouble>,
}

impl Sweeps<'_> {
    /// Runs what is due; `None` when nothing is.
    ///
    /// # Errors
    /// Only when the store fails; everything else is in the report.
    pub(in crate::sync) async fn run_due(&self) -> Result<Option<PassReport>, StoreError> {
        let (rows, now) = (self.rows().await?, self.lane.clock.now());
        let settings = &self.lane.settings;
        if !coverage(&rows).loaded || rebuild::is_under_way(&rows) {
            return Ok(None);
        }
        let owed_late = rows.iter().any(|row| row.pass == Pass::LateSweep && self.is_tried(row, now));
        let late = owed_late
            || (is_due(&rows, Pass::LateSweep, settings.late_sweep, now) && !is_resting(&rows, Pass::LateSweep));
        let reconcile = is_due(&rows, Pass::Reconcile, settings.reconcile, now)
            && (self.owed == Owed::All || !is_resting(&rows, Pass::Reconcile) || self.is_rested(&rows, now));
        if !late && !reconcile {
            return Ok(None);
        }
        // Somebody sweeps already: what is due then is looked at again.
        let Ok(_alone) = self.lane.sweeping.try_acquire() else { return Ok(None) };
        let mut running = Running::default();
        if late {
            self.late(&mut running).await?;
        }
        if reconcile && running.ended_by.is_none() && !self.cancel.is_cancelled() {
            let order = ReconcileOrder::scheduled(self.lane.stream(), self.patience != Patience::None);
            let (_, found) = self.reconcile(&order, &mut running).await?;
            if found.stopped.is_some() {
                running.troubles.insert(Trouble::Gap);
            }
        }
        self.report(running).await.map(Some)
    }

    /// What to do after `error`: whether the same row is gone on with at once. Whatever is left of it is in the ledger.
    pub(super) async fn goes_on_after(
        &self,
        error: &WalkError,
        row: &mut LedgerRow,
        running: &mut Running,
    ) -> Result<bool, StoreError> {
        running.error = Some(error.report(self.lane.stream()));
        running.troubles.extend(error.trouble());
        running.needs_person |= matches!(error, WalkError::Tripped(_));
        let aftermath = error.aftermath();
        let sits_out = match (aftermath, self.patience) {
            (Aftermath::Park(resume_at), Patience::Quota | Patience::Endless) => Some(self.until(resume_at)),
            (_, Patience::Endless) if passes_by_itself(error) => {
                row.attempts = row.attempts.saturating_add(1);
                Some(plan::rest_after(row.attempts))
            }
            _ => None,
        };
        if let Some(wait) = sits_out {
            self.lane.observer.observe(&Event::RowFailed {
                stream: row.stream,
                pass: row.pass,
                span: row.span_text(),
                attempts: row.attempts,
                error: error.report(row.stream),
            });
            if self.lane.pause(wait, self.cancel).await.is_ok() {
                running.error = None;
                running.troubles.clear();
                return Ok(true);
            }
            running.ended_by = Some(Aftermath::LeaveRow);
            return Ok(false);
        }
        match aftermath {
            Aftermath::Park(resume_at) => self.lane.park_row(row.clone(), resume_at).await?,
            Aftermath::LeaveRow => {}
            Aftermath::NextRow | Aftermath::EndPass | Aftermath::StopStream => {
                self.lane.fail_row(row.clone(), error).await?;
            }
        }
        running.ended_by = Some(aftermath);
        Ok(false)
    }

    pub(super) async fn rows(&self) -> Result<Vec<LedgerRow>, StoreError> {
        let stream = self.lane.stream();
        self.lane.store.call(move |store| store.ledger(stream)).await
    }

    /// Whether an owed row is gone on with now.
    pub(super) fn is_tried(&self, row: &LedgerRow, now: Timestamp) -> bool {
        match self.owed {
            Owed::All => row.is_owed(),
            Owed::Due => row.is_due(now),
        }
    }

    fn is_rested(&self, rows: &[LedgerRow], now: Timestamp) -> bool {
        rows.iter().any(|row| row.pass == Pass::Reconcile && row.is_due(now))
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.lane.clock.now())).unwrap_or_default()
    }

    /// What it came to, as the report of a pass is.
    pub(super) async fn report(&self, mut running: Running) -> Result<PassReport, StoreError> {
        let stream = self.lane.stream();
        let (own, all) = self
            .lane
            .store
            .call(move |store| Ok::<_, StoreError>((own_rows(store, stream)?, store.ledger(stream)?)))
            .await?;
        let left = all.iter().filter(|row| row.pass == Pass::LateSweep && row.is_owed());
        let gaps: Vec<_> = left.map(gap_of).collect();
        if !gaps.is_empty() || running.ended_by.is_some() {
            running.troubles.insert(Trouble::Gap);
        }
        if running.tally.entries.newly_quarantined > 0 {
            running.troubles.insert(Trouble::NewlyQuarantined);
        }
        let outcome = match running.ended_by {
            Some(Aftermath::Park(_)) => StreamOutcome::WaitingQuota,
            Some(Aftermath::EndPass) => StreamOutcome::Suspended,
            Some(Aftermath::StopStream) => StreamOutcome::Stopped,
            Some(Aftermath::LeaveRow | Aftermath::NextRow) => StreamOutcome::Partial,
            None => StreamOutcome::CaughtUp,
        };
        let resume_at = match running.ended_by {
            Some(Aftermath::Park(resume_at)) => Some(resume_at),
            _ => None,
        };
        Ok(PassReport {
            outcome,
            tally: running.tally,
            gaps,
            watermark: coverage(&own).watermark,
            error: running.error,
            resume_at,
            asked_to_wait_until: None,
            reached_back: false,
            listed: Listed::default(),
            needs_person: running.needs_person,
            troubles: running.troubles,
        })
    }
}

/// Whether waiting is likely to help.
fn passes_by_itself(error: &WalkError) -> bool {
    use SourceErrorKind::{CircuitOpen, Exhausted, Suspended};
    matches!(error, WalkError::Source(error) if matches!(error.kind, Exhausted | CircuitOpen | Suspended))
}

/// Whether a sweep of this kind was begun and waits for its next try.
fn is_resting(rows: &[LedgerRow], pass: Pass) -> bool {
    rows.iter().any(|row| row.pass == pass && row.is_owed())
}
