//! The ledger of windows: what was asked, how far it came, and what is still owed.

pub mod compact;
pub mod coverage;
pub mod days;
pub mod plan;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::record::{RecordNumber, Stream};
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

/// The rows of a stream's own passes. Those of backfills are looked at by `backfill` alone: what one of them still owes
/// is no gap of the stream.
///
/// # Errors
/// On any storage error.
pub fn own_rows(store: &dyn Store, stream: Stream) -> Result<Vec<LedgerRow>, StoreError> {
    let mut rows = store.ledger(stream)?;
    rows.retain(|row| row.pass != Pass::Backfill);
    Ok(rows)
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

    /// Whether something of it is still to be asked for.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.state != RowState::Done
    }

    /// Whether it may be tried at `now`.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.is_owed() && self.resume_at.is_none_or(|at| at <= now)
    }
}
