//! Passes that do not begin: why, and what they report.

use jiff::Timestamp;

use crate::sync::capture::Lane;
use crate::sync::capture::error::{WalkError, source_report, source_trouble};
use crate::sync::capture::pass::{Listed, PassReport};
use crate::sync::capture::tally::Tally;
use crate::sync::exit::Trouble;
use crate::sync::ledger::coverage::{coverage, gaps};
use crate::sync::ledger::own_rows;
use crate::sync::ports::{SourceError, SourceErrorKind, Traffic};
use crate::sync::report::summary::{ErrorReport, StreamOutcome};
use crate::sync::timekeeper::{LastPass, Timekeeper};
use crate::sync::{LedgerRow, StoreError};

/// The report of a pass that could not begin, since Sierra gave no sign of life.
pub(super) async fn without_time(lane: &Lane, error: &SourceError, traffic: Traffic) -> Result<PassReport, StoreError> {
    let stream = lane.stream();
    let rows = lane.store.call(move |store| own_rows(store, stream)).await?;
    let outcome = match error.kind {
        SourceErrorKind::Exhausted | SourceErrorKind::Narrow | SourceErrorKind::Permanent => StreamOutcome::Failed,
        SourceErrorKind::WaitingQuota { .. } => StreamOutcome::WaitingQuota,
        SourceErrorKind::AskedToWait { .. } | SourceErrorKind::CircuitOpen | SourceErrorKind::Suspended => {
            StreamOutcome::Suspended
        }
        SourceErrorKind::Credentials | SourceErrorKind::Stopped => StreamOutcome::Stopped,
    };
    let resume_at = match error.kind {
        SourceErrorKind::WaitingQuota { resume_at } | SourceErrorKind::AskedToWait { resume_at } => Some(resume_at),
        _ => None,
    };
    let trouble = source_trouble(error.kind).unwrap_or(Trouble::Unavailable);
    let report = not_begun(&rows, outcome, source_report(error), trouble);
    let asked_to_wait_until = resume_at.filter(|_| matches!(error.kind, SourceErrorKind::AskedToWait { .. }));
    Ok(PassReport { tally: Tally { traffic, ..Tally::default() }, resume_at, asked_to_wait_until, ..report })
}

/// The report of a pass that does not begin, since Sierra has asked the last one, in whatever process, to wait until
/// later than `now`; `None` when it may begin.
pub(super) async fn still_asked_to_wait(
    lane: &Lane,
    timekeeper: &Timekeeper,
    now: Timestamp,
) -> Result<Option<PassReport>, StoreError> {
    let stream = lane.stream();
    let Some(LastPass { error: Some(error), wait_until: Some(until), .. }) = timekeeper.last_pass(stream).await else {
        return Ok(None);
    };
    if until <= now {
        return Ok(None);
    }
    let rows = lane.store.call(move |store| own_rows(store, stream)).await?;
    let report = not_begun(&rows, StreamOutcome::Suspended, error, Trouble::Unavailable);
    Ok(Some(PassReport { resume_at: Some(until), asked_to_wait_until: Some(until), ..report }))
}

/// The report of a pass that could not begin, since a shutdown came first.
pub(super) async fn interrupted(lane: &Lane) -> Result<PassReport, StoreError> {
    let stream = lane.stream();
    let rows = lane.store.call(move |store| store.ledger(stream)).await?;
    Ok(not_begun(&rows, StreamOutcome::Failed, WalkError::Cancelled.report(stream), Trouble::Gap))
}

fn not_begun(rows: &[LedgerRow], outcome: StreamOutcome, error: ErrorReport, trouble: Trouble) -> PassReport {
    PassReport {
        outcome,
        tally: Tally::default(),
        gaps: gaps(rows),
        watermark: coverage(rows).watermark,
        error: Some(error),
        resume_at: None,
        asked_to_wait_until: None,
        reached_back: false,
        listed: Listed::default(),
        needs_person: false,
        troubles: [trouble].into(),
    }
}
