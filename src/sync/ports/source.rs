//! Where records come from.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::value::RawValue;

use crate::failure::{Classify, Disposition};
use crate::record::{Entry, RecordNumber, Stream, VarField};
use crate::sync::{RequestNumber, Window};

/// A Sierra, as the engine sees it. Retries, quota, breaker and tokens are the source's business: what comes back is
/// final for this call.
pub trait Source: Send + Sync {
    /// Asks Sierra for a sign of life and the time (`/info/token`).
    ///
    /// # Errors
    /// When no answer came within the retry budget.
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>>;

    /// Asks for one page. Entries come in ascending order of record number, all after `query.after`; a page that
    /// breaks this is an error, not a page.
    ///
    /// # Errors
    /// Whenever the answer is not a whole, valid page and not Sierra's own "nothing".
    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>>;

    /// Asks for the MARC of live bibs by Sierra's export. Whatever of a record cannot be told by it is left out: the
    /// lists have the last word.
    ///
    /// # Errors
    /// Whenever the file that was made is not a whole file of MARC records; [`SourceErrorKind::Narrow`] when the range
    /// must be asked for in parts. A source without exports refuses.
    fn marc<'a>(&'a self, query: &'a MarcQuery) -> BoxFuture<'a, Result<MarcExport, SourceError>> {
        let _ = query;
        Box::pin(std::future::ready(Err(SourceError {
            kind: SourceErrorKind::Permanent,
            message: "this source has no exports".to_owned(),
            endpoint: "bibs/marc",
            status_code: None,
            code: None,
            correlation_id: String::new(),
            hint: "use --via list".to_owned(),
            traffic: Traffic::default(),
        })))
    }
}

/// A range of bibs to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarcQuery {
    /// The first number.
    pub from: RecordNumber,
    /// The last number, inclusive.
    pub to: RecordNumber,
    /// The quota class.
    pub class: CallClass,
}

/// What an export brought.
#[derive(Debug)]
pub struct MarcExport {
    /// The stored MARC fields of each record that could be told by its number, the leader among them.
    pub records: Vec<(RecordNumber, Vec<VarField>)>,
    /// When the answer was complete.
    pub answered: RequestNumber,
    /// What it cost.
    pub traffic: Traffic,
}

/// Sierra's sign of life.
#[derive(Debug, Clone)]
pub struct Pulse {
    /// The `Date` of the answer, when it had one.
    pub date: Option<Timestamp>,
    /// What it cost.
    pub traffic: Traffic,
}

/// One request for records. `limit` is always sent; `offset` never exists.
#[derive(Debug, Clone)]
pub struct PageQuery {
    /// The stream.
    pub stream: Stream,
    /// Which records.
    pub filter: PageFilter,
    /// Only numbers greater than this.
    pub after: Option<RecordNumber>,
    /// Only numbers up to and including this.
    pub until: Option<RecordNumber>,
    /// At most so many entries, 1 to 2000.
    pub limit: u32,
    /// What to ask of each record.
    pub fields: FieldSet,
    /// Ask over a connection no earlier request used.
    pub fresh_connection: bool,
    /// The quota class.
    pub class: CallClass,
}

/// Which records a page is drawn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageFilter {
    /// `updatedDate` inside the window; live, suppressed and, where Sierra sends them, deleted.
    Updated(Window),
    /// Tombstones whose `deletedDate` lies in the closed range of days.
    Deleted {
        /// First day.
        from: Date,
        /// Last day, inclusive.
        to: Date,
    },
    /// Every live record (`deleted=false`).
    Live,
    /// Every record of the range, dead or alive.
    Any,
    /// Exactly these, dead or alive, ascending; at most `limit` of them.
    Ids(Vec<RecordNumber>),
}

/// What to ask of each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldSet {
    /// The configured fields plus those the engine always needs.
    Configured,
    /// The configured fields without `varFields` and `marc`: what an export of MARC does not tell.
    BesideMarc,
    /// `id,updatedDate,suppressed,deleted` (items also `bibIds`): sweeps.
    Identity,
    /// `id,deletedDate,deleted`: the delete pass.
    Tombstones,
    /// `id` alone: taking a poisoned page apart.
    IdOnly,
}

/// The quota classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallClass {
    /// Live streams: may burst.
    Incremental,
    /// Loads, backfills, sweeps, replays: spread over the quota window.
    Paced,
}

/// A valid answer: records, or Sierra's own "nothing". A failure is neither (rule 2 of the design's promise).
#[derive(Debug)]
pub enum Answer {
    /// At least one entry.
    Page(Page),
    /// 404 with code 107, 204, or a 200 whose `entries` is an empty array.
    Nothing {
        /// When the request was sent.
        sent: RequestNumber,
        /// When its answer was complete.
        answered: RequestNumber,
        /// Sierra's `Date`.
        date: Option<Timestamp>,
        /// What it cost.
        traffic: Traffic,
    },
}

/// A whole, valid page of at least one entry.
#[derive(Debug)]
pub struct Page {
    /// The entries in ascending order; those that could not be decoded stand in their place.
    pub entries: Vec<Result<Entry, BadEntry>>,
    /// The greatest record number on the page, bad entries included.
    pub last_id: RecordNumber,
    /// Whether the entries came in another order, or one of them twice. A full page of that kind may leave out numbers
    /// before [`Page::last_id`].
    pub was_out_of_order: bool,
    /// When the request was sent.
    pub sent: RequestNumber,
    /// When its answer was complete.
    pub answered: RequestNumber,
    /// Sierra's `Date`.
    pub date: Option<Timestamp>,
    /// What it cost.
    pub traffic: Traffic,
}

/// An entry that could not be decoded: quarantined, while the page goes on (BR-020).
#[derive(Debug, Clone)]
pub struct BadEntry {
    /// Its number, if that much could be read.
    pub id: Option<RecordNumber>,
    /// Where and why, e.g. `bibIds[0]: expected a record number`; never a value.
    pub reason: String,
    /// The entry itself; never set for patrons.
    pub payload: Option<Box<RawValue>>,
}

/// What one call of a source cost, retries included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// HTTP requests sent, token calls included.
    pub calls: u32,
    /// Those of them that repeated an earlier one.
    pub retries: u32,
    /// Time spent waiting for quota.
    pub quota_wait: Duration,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.retries = self.retries.saturating_add(other.retries);
        self.quota_wait = self.quota_wait.saturating_add(other.quota_wait);
    }
}

/// Why a call of a source failed for good.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// What it means to the engine.
    pub kind: SourceErrorKind,
    /// One sentence: what happened and where; scrubbed, never a body of a patron call.
    pub message: String,
    /// The endpoint's label, e.g. `bibs`.
    pub endpoint: &'static str,
    /// The last status, if an answer came.
    pub status_code: Option<u16>,
    /// Sierra's own code, if the body had one.
    pub code: Option<i64>,
    /// Ties the error to its log lines.
    pub correlation_id: String,
    /// What to do next.
    pub hint: String,
    /// What the attempts cost.
    pub traffic: Traffic,
}

/// What a failed call means to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceErrorKind {
    /// Attempts or wall budget are used up on something transient. The window stays owed.
    Exhausted,
    /// Quota asks for a longer wait than a call may take in place.
    WaitingQuota {
        /// When to go on.
        resume_at: Timestamp,
    },
    /// Sierra is not well, and asks to be left alone for longer than a call may wait in place.
    AskedToWait {
        /// When to go on.
        resume_at: Timestamp,
    },
    /// The key's breaker is open: nothing was sent.
    CircuitOpen,
    /// This endpoint alone is suspended: nothing was sent.
    Suspended,
    /// The credential is refused; the latch is closed.
    Credentials,
    /// Sierra says the API is off or not allowed for this key (codes 116, 117, 118).
    Stopped,
    /// The same answer would come again: the page must be asked for in a smaller way (code 135, timeouts of one
    /// page, a body that never decodes).
    Narrow,
    /// Sierra refuses the request itself (400 and its kin): a fault of ours or of the configuration.
    Permanent,
}

impl Classify for SourceError {
    fn disposition(&self) -> Disposition {
        match self.kind {
            SourceErrorKind::Exhausted | SourceErrorKind::CircuitOpen | SourceErrorKind::Suspended => {
                Disposition::RetryLater { not_before: None }
            }
            SourceErrorKind::WaitingQuota { .. } | SourceErrorKind::AskedToWait { .. } => {
                Disposition::RetryLater { not_before: None }
            }
            SourceErrorKind::Narrow => Disposition::NarrowWindow,
            SourceErrorKind::Credentials | SourceErrorKind::Stopped | SourceErrorKind::Permanent => Disposition::Halt,
        }
    }
}
