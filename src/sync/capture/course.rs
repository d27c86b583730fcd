//! How walk after walk is going: what they came to so far, and what ended them early. A pass and a backfill have one each.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::error::{Aftermath, WalkError};
use super::lane::Lane;
use super::tally::Tally;
use crate::sync::exit::Trouble;
use crate::sync::report::summary::{ErrorReport, StreamOutcome};
use crate::sync::{LedgerRow, StoreError};

/// What was done so far.
#[derive(Debug, Default)]
pub(in crate::sync) struct Course {
    pub(in crate::sync) tally: Tally,
    /// The last failure.
    pub(in crate::sync) error: Option<ErrorReport>,
    /// What ended it before its end.
    pub(in crate::sync) ended_by: Option<Aftermath>,
    /// Until when Sierra asked to be left alone.
    pub(in crate::sync) asked_to_wait_until: Option<Timestamp>,
    pub(in crate::sync) rows_done: u64,
    /// The last walk ended since Sierra did not answer any more.
    is_unanswered: bool,
    pub(in crate::sync) needs_person: bool,
    pub(in crate::sync) troubles: BTreeSet<Trouble>,
}

impl Course {
    /// Closes, fails or parks `row` after a walk over it, as `walked` asks for. Gives it back when it is to be walked
    /// again at once, since a wait for quota was sat out.
    ///
    /// # Errors
    /// Only when the store fails.
    pub(in crate::sync) async fn conclude(
        &mut self,
        lane: &Lane,
        row: LedgerRow,
        walked: Result<(), WalkError>,
        waits_for_quota: bool,
        cancel: &CancellationToken,
    ) -> Result<Option<LedgerRow>, StoreError> {
        let error = match walked {
            Ok(()) => {
                self.rows_done += 1;
                self.is_unanswered = false;
                return lane.close_row(row).await.map(|()| None);
            }
            Err(WalkError::Store(error)) => return Err(error),
            Err(error) => error,
        };
        self.note(&error, lane);
        self.is_unanswered = error.is_silence();
        let aftermath = error.aftermath();
        match aftermath {
            Aftermath::Park(resume_at) if waits_for_quota => {
                if !lane.sit_out(resume_at, cancel).await {
                    self.ended_by = Some(Aftermath::LeaveRow);
                    return Ok(None);
                }
                self.troubles.remove(&Trouble::TryLater);
                return Ok(Some(row));
            }
            Aftermath::Park(resume_at) => lane.park_row(row, resume_at).await?,
            Aftermath::LeaveRow => {}
            Aftermath::NextRow | Aftermath::EndPass | Aftermath::StopStream => lane.fail_row(row, &error).await?,
        }
        self.needs_person |= matches!(error, WalkError::Tripped(_));
        if aftermath != Aftermath::NextRow {
            self.ended_by = Some(aftermath);
        }
        Ok(None)
    }

    /// Notes a failure, and what it means for the exit code.
    pub(in crate::sync) fn note(&mut self, error: &WalkError, lane: &Lane) {
        self.error = Some(error.report(lane.stream()));
        self.asked_to_wait_until = error.asked_to_wait_until().or(self.asked_to_wait_until);
        self.troubles.extend(error.trouble());
    }

    /// How the stream stands after it. `is_whole` is whether nothing is owed any more.
    pub(in crate::sync) fn outcome(&self, is_whole: bool) -> StreamOutcome {
        match self.ended_by {
            Some(Aftermath::Park(_)) => StreamOutcome::WaitingQuota,
            Some(Aftermath::EndPass) => StreamOutcome::Suspended,
            Some(Aftermath::StopStream) => StreamOutcome::Stopped,
            None if is_whole => StreamOutcome::CaughtUp,
            _ if self.tally.pages > 0 || self.rows_done > 0 => StreamOutcome::Partial,
            _ => StreamOutcome::Failed,
        }
    }

    /// What it means for the exit code that walks are left: a gap. When the last of them met nobody who answers, Sierra
    /// is unavailable besides; when a later one came to its end, it was a matter of that row.
    pub(in crate::sync) fn leaves_something(&mut self) {
        self.troubles.insert(Trouble::Gap);
        if self.is_unanswered {
            self.troubles.insert(Trouble::Unavailable);
        }
    }

    /// When the wait for quota that ended it is over.
    pub(in crate::sync) fn resume_at(&self) -> Option<Timestamp> {
        match self.ended_by {
            Some(Aftermath::Park(resume_at)) => Some(resume_at),
            _ => None,
        }
    }
}
