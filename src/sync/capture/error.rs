//! Why a walk did not come to its end.

use super::absorb::AbsorbError;
use super::tripwire::Tripped;
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::backpressure::Held;
use crate::sync::exit::Trouble;
use crate::sync::ports::{SourceError, SourceErrorKind};
use crate::sync::report::summary::ErrorReport;

/// Why a walk did not come to its end. What was committed stays committed.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// Sierra did not answer, or refused.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Sierra repeats itself: the page does not go past the position. It is failed rather than asked for ever.
    #[error("a page came whose record numbers do not go past those that were asked for")]
    Looped,
    /// No record number of a full page can be read: nothing says how to go on behind it.
    #[error("entries came whose record number cannot be read")]
    Unread,
    /// A full page that is not in order leaves out numbers before its greatest.
    #[error("a full page came out of order, and records with smaller numbers than its last are not on it")]
    Unordered,
    /// Too many entries are bad.
    #[error(transparent)]
    Tripped(#[from] Tripped),
    /// There is no room for more changes.
    #[error(transparent)]
    Held(#[from] Held),
    /// The program is shutting down, or a person pauses the stream.
    #[error("interrupted by a shutdown or a pause")]
    Cancelled,
    /// The store failed: nothing goes on.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AbsorbError> for WalkError {
    fn from(error: AbsorbError) -> Self {
        match error {
            AbsorbError::Tripped(tripped) => Self::Tripped(tripped),
            AbsorbError::Store(error) => Self::Store(error),
        }
    }
}

/// What a pass does after a walk that did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aftermath {
    /// The row failed; the next one may fare better.
    NextRow,
    /// Nothing more can be asked for now: the row failed and the pass ends.
    EndPass,
    /// Quota: the row waits, the pass ends.
    Park(jiff::Timestamp),
    /// The row stays as it is, the pass ends.
    LeaveRow,
    /// The stream stops until a person acts.
    StopStream,
}

impl WalkError {
    /// What the pass does about it.
    #[must_use]
    pub fn aftermath(&self) -> Aftermath {
        match self {
            Self::Source(error) => match error.kind {
                SourceErrorKind::Exhausted | SourceErrorKind::Narrow | SourceErrorKind::Permanent => Aftermath::NextRow,
                SourceErrorKind::AskedToWait { .. } | SourceErrorKind::CircuitOpen | SourceErrorKind::Suspended => {
                    Aftermath::EndPass
                }
                SourceErrorKind::WaitingQuota { resume_at } => Aftermath::Park(resume_at),
                SourceErrorKind::Credentials | SourceErrorKind::Stopped => Aftermath::StopStream,
            },
            Self::Looped | Self::Unread | Self::Unordered => Aftermath::NextRow,
            Self::Tripped(_) => Aftermath::StopStream,
            Self::Held(_) | Self::Cancelled | Self::Store(_) => Aftermath::LeaveRow,
        }
    }

    /// Until when Sierra asked to be left alone.
    #[must_use]
    pub fn asked_to_wait_until(&self) -> Option<jiff::Timestamp> {
        match self {
            Self::Source(SourceError { kind: SourceErrorKind::AskedToWait { resume_at }, .. }) => Some(*resume_at),
            _ => None,
        }
    }

    /// Whether a request was made that failed: what counts as an attempt.
    #[must_use]
    pub fn is_attempt(&self) -> bool {
        match self {
            Self::Source(error) => !matches!(
                error.kind,
                SourceErrorKind::CircuitOpen | SourceErrorKind::Suspended | SourceErrorKind::WaitingQuota { .. }
            ),
            Self::Looped | Self::Unread | Self::Unordered | Self::Tripped(_) => true,
            Self::Held(_) | Self::Cancelled | Self::Store(_) => false,
        }
    }

    /// What it means for the exit code, beyond the gap that it leaves.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Source(error) => source_trouble(error.kind),
            Self::Store(_) => Some(Trouble::StoreIo),
            // Nothing failed and nothing is lost: it goes on once there is room.
            Self::Held(_) => Some(Trouble::TryLater),
            // What was not begun stands in no ledger, and is left all the same.
            Self::Cancelled => Some(Trouble::Gap),
            Self::Looped | Self::Unread | Self::Unordered | Self::Tripped(_) => None,
        }
    }

    /// Whether Sierra did not answer, however often it was asked.
    #[must_use]
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Source(SourceError { kind: SourceErrorKind::Exhausted, .. }))
    }

    /// The error as people and programs see it.
    #[must_use]
    pub fn report(&self, stream: Stream) -> ErrorReport {
        let remedy;
        let (kind, hint) = match self {
            Self::Source(error) => return source_report(error),
            Self::Looped => ("loop", "run `sierra-sync check`; if it goes on, report it to the vendor"),
            Self::Unread => (
                "unread_numbers",
                "nothing to do: the numbers between their neighbours are asked for again by themselves; if it goes on, \
                 report it to the vendor",
            ),
            Self::Unordered => (
                "out_of_order",
                "this Sierra does not list records by their numbers, without which none can be passed by safely: report it \
                 to the vendor; until then nothing of this window is taken",
            ),
            Self::Tripped(_) => (
                "schema_change",
                "nothing was committed; Sierra's answers may have changed: compare one with the API's documentation, and report it",
            ),
            Self::Held(held) => {
                remedy = held.hint();
                (held.kind(), remedy.as_str())
            }
            Self::Cancelled => ("interrupted", "run it again: it goes on where it was"),
            Self::Store(_) => ("store", "check the disk, then start again"),
        };
        ErrorReport {
            kind: kind.into(),
            message: self.to_string(),
            endpoint: Some(stream.name().into()),
            status_code: None,
            code: None,
            correlation_id: None,
            hint: Some(hint.into()),
        }
    }
}

/// A source's error as people and programs see it.
#[must_use]
pub fn source_report(error: &SourceError) -> ErrorReport {
    ErrorReport {
        kind: source_kind(error.kind).into(),
        message: error.message.clone(),
        endpoint: Some(error.endpoint.into()),
        status_code: error.status_code,
        code: error.code,
        correlation_id: Some(error.correlation_id.clone()),
        hint: Some(error.hint.clone()),
    }
}

/// What a source's error means for the exit code, beyond the gap that it leaves.
#[must_use]
pub fn source_trouble(kind: SourceErrorKind) -> Option<Trouble> {
    match kind {
        SourceErrorKind::Credentials => Some(Trouble::Credentials),
        SourceErrorKind::AskedToWait { .. }
        | SourceErrorKind::CircuitOpen
        | SourceErrorKind::Suspended
        | SourceErrorKind::Stopped => Some(Trouble::Unavailable),
        SourceErrorKind::WaitingQuota { .. } => Some(Trouble::TryLater),
        SourceErrorKind::Exhausted | SourceErrorKind::Narrow | SourceErrorKind::Permanent => None,
    }
}

fn source_kind(kind: SourceErrorKind) -> &'static str {
    match kind {
        SourceErrorKind::Exhausted => "exhausted",
        SourceErrorKind::WaitingQuota { .. } => "waiting_quota",
        SourceErrorKind::AskedToWait { .. } => "asked_to_wait",
        SourceErrorKind::CircuitOpen => "circuit_open",
        SourceErrorKind::Suspended => "suspended",
        SourceErrorKind::Credentials => "credentials",
        SourceErrorKind::Stopped => "stopped",
        SourceErrorKind::Narrow => "narrow",
        SourceErrorKind::Permanent => "permanent",
    }
}
