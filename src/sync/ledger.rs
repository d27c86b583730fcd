//! The ledger of windows: what was asked, how far it came, and what is still owed.

pub mod compact;
pub mod coverage;
pub mod cursor;
pub mod days;
pub mod plan;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::record::{RecordNumber, Stream};
use crate::sync::ports::Slice;
use crate::sync::{Store, StoreError, Window};

/// One row of the ledger. Rows are updated in the same commit as the changes they account for (CUR-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its number, unique within the store and increasing.
    pub id: u64,
    /// The stream.
    pub stream: Stream,
    /// The kind of pass.
    pub pass: Pass,
    /// What it covers.
    pub span: Span,
    /// How it stands.
    pub state: RowState,
    /// The last record number whose data is committed; the next request starts after it. Sealed on disk and never
    /// shown for patrons.
    pub position: Option<RecordNumber>,
    /// How often it was tried and failed.
    pub attempts: u32,
    /// The last failure, as a sentence free of private values.
    pub last_error: Option<String>,
    /// When the row was opened.
    pub opened: Timestamp,
    /// When it last changed.
    pub touched: Timestamp,
    /// Not before this time is it tried again (quota waits and back-off of failed windows).
    pub resume_at: Option<Timestamp>,
    /// It is done, and all that Sierra ever said to it was "nothing". That may have been a lie (BR-054), so the next
    /// pass reads its span once more, until something comes.
    pub found_nothing: bool,
}

/// The kinds of pass that keep rows in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// The first full load: an id sweep with `deleted=false`.
    Load,
    /// The update pass over `updatedDate`.
    Update,
    /// The delete pass over `deletedDate`.
    Deletes,
    /// A backfill.
    Backfill,
    /// The late sweep.
    LateSweep,
    /// Reconciliation.
    Reconcile,
    /// The sweep of a rebuild: every live record once more, by id. In a store without a first load it counts as that.
    Rebuild,
    /// Every deletion from the earliest day on, for a rebuild.
    RebuildDeletes,
}

/// What a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// `updatedDate` in a half-open window.
    Time(Window),
    /// `deletedDate` in a closed range of local days.
    Days {
        /// The first day.
        from: Date,
        /// The last day, inclusive.
        to: Date,
    },
    /// Record numbers from `from`, up to and including `to` where given. `pinned` is Sierra's time when the sweep
    /// began: the update pass follows from there.
    Ids {
        /// The first number.
        from: RecordNumber,
        /// The last number, inclusive; open when absent.
        to: Option<RecordNumber>,
        /// Sierra's time at the start.
        pinned: Timestamp,
    },
}

/// How a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// Opened, nothing committed yet.
    Pending,
    /// Some of it is committed.
    Partial,
    /// It failed and will be tried again; shown as a gap.
    Failed,
    /// All of it is committed.
    Done,
}

/// The rows of a stream's own passes. Those of backfills and sweeps are looked at by these alone: what one of them still
/// owes is no gap of the stream, and a pass beside it has caught up all the same.
///
/// # Errors
/// On any storage error.
pub fn own_rows(store: &dyn Store, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
    let mut rows = store.ledger(stream)?;
    rows.retain(|row| is_own(row.pass));
    Ok(rows)
}

/// Whether rows of `pass` are a stream's own.
#[must_use]
pub fn is_own(pass: Pass) -> bool {
    !matches!(pass, Pass::Backfill | Pass::LateSweep | Pass::Reconcile)
}

/// Lets the rows of `stream` that wait for quota be tried at once, since quota is there again (A18). Only for whoever
/// knows that nobody walks them meanwhile. Tells how many there were.
///
/// # Errors
/// On any storage error.
pub fn lift_quota_waits(
    store: &dyn Store,
    stream: Stream,
    is_mine: impl Fn(&LedgerRow) -> bool,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let waiting = store.ledger(stream)?.into_iter().filter(|row| is_mine(row) && row.waits_for_quota(now));
    let rows: Vec<LedgerRow> = waiting.map(|row| LedgerRow { resume_at: None, ..row }).collect();
    let count = rows.len();
    if count > 0 {
        store.commit(Slice { rows, ..Slice::default() })?;
    }
    Ok(count)
}

impl LedgerRow {
    /// A row that nothing was asked for yet.
    #[must_use]
    pub fn opened(id: u64, stream: Stream, pass: Pass, span: Span, at: Timestamp) -> Self {
        Self {
            id,
            stream,
            pass,
            span,
            state: RowState::Pending,
            position: None,
            attempts: 0,
            last_error: None,
            opened: at,
            touched: at,
            resume_at: None,
            found_nothing: false,
        }
    }

    /// The window of a row over time.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        match self.span {
            Span::Time(window) => Some(window),
            Span::Days { .. } | Span::Ids { .. } => None,
        }
    }

    /// What it covers, for people. Record numbers stay out of it: they may be patrons'.
    #[must_use]
    pub fn span_text(&self) -> String {
        match self.span {
            Span::Time(window) => window.to_string(),
            Span::Days { from, to } => format!("{from} to {to}"),
            Span::Ids { from, to: Some(to), .. } if self.stream != Stream::Patrons => format!("{from} to {to}"),
            Span::Ids { from, to: None, .. } if self.stream != Stream::Patrons && from.value() > 1 => {
                format!("from {from} on")
            }
            Span::Ids { to: Some(_), .. } => "a range of records".into(),
            Span::Ids { .. } => "all records".into(),
        }
    }

    /// Whether something of it is still to be asked for.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.state != RowState::Done
    }

    /// Whether quota alone holds it back at `now`: a row that rests after a failure does not wait for quota.
    #[must_use]
    pub fn waits_for_quota(&self, now: Timestamp) -> bool {
        matches!(self.state, RowState::Pending | RowState::Partial) && self.resume_at.is_some_and(|at| at > now)
    }

    /// Whether it may be tried at `now`.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.is_owed() && self.resume_at.is_none_or(|at| at <= now)
    }
}
