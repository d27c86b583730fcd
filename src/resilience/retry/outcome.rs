//! How a call can end (B9). Every ending but success keeps the last status, the last error and the tally, so that the
//! work can be replayed and the message can say how hard we tried.

use std::time::Duration;

use tokio::time::Instant;

use crate::resilience::breaker::Rejection;
use crate::resilience::taxonomy::Decision;

/// The outcome of a call: its value, or how it ended instead.
pub type Outcome<T, E> = Result<Success<T>, Box<Ended<E>>>;

/// A call that brought what it was to bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Success<T> {
    /// What it brought.
    pub value: T,
    /// What it took.
    pub tally: Tally,
}

/// What a call took, however it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests sent, throttled and repeated ones included.
    pub sends: u32,
    /// Attempts charged to the budget; refusals with a usable wait and the repeat after a 401 are not.
    pub attempts: u32,
    /// Since the call began, all waits included.
    pub elapsed: Duration,
    /// Of that, time spent waiting for quota.
    pub quota_waited: Duration,
}

/// A call that ended without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended<E> {
    /// How.
    pub ending: Ending,
    /// Status of the last answer; `None` if none came.
    pub status: Option<u16>,
    /// The last error; `None` if nothing was sent.
    pub error: Option<E>,
    /// What it took.
    pub tally: Tally,
}

/// The ways in which a call ends without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Repeating it will not help: the request is at fault, or a person must act. The other side is healthy (B5).
    Permanent {
        /// What the last answer was taken for.
        decision: Decision,
    },
    /// It might have helped to go on, but a budget ran out (B2). To be escalated (B12).
    BudgetExhausted {
        /// Which budget.
        budget: Budget,
    },
    /// The breaker is open: nothing was charged (B8).
    CircuitOpen {
        /// What is held back, and until when.
        rejection: Rejection,
    },
    /// The wait is too long for a worker: to be taken up again then (B4).
    Parked {
        /// What it waits for.
        reason: ParkReason,
        /// When to take it up again.
        resume_at: Instant,
    },
}

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// The number of attempts.
    Attempts,
    /// The wall clock: the next wait would reach past it.
    WallClock,
    /// The retry tokens that all calls share.
    RetryTokens,
}

impl Budget {
    /// The value of the log field `reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::WallClock => "wall_clock",
            Self::RetryTokens => "retry_tokens",
        }
    }
}

/// What parked work waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParkReason {
    /// The quota of the key, or of the endpoint.
    Quota,
    /// A `Retry-After` that reaches past the budget.
    RetryAfter,
    /// Five refusals in a row.
    Throttled,
}

impl ParkReason {
    /// The value of the log field `reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::RetryAfter => "retry_after",
            Self::Throttled => "throttled",
        }
    }
}

impl<E> Ended<E> {
    /// Turns the error into another, as when a token call ends the call that needed it.
    pub fn map<F>(self, change: impl FnOnce(E) -> F) -> Ended<F> {
        Ended { ending: self.ending, status: self.status, error: self.error.map(change), tally: self.tally }
    }

    /// When it is worth trying again, if the other side or the breaker said so.
    #[must_use]
    pub fn resume_at(&self) -> Option<Instant> {
        match self.ending {
            Ending::Parked { resume_at, .. } => Some(resume_at),
            Ending::CircuitOpen { rejection } => rejection.retry_at,
            Ending::Permanent { .. } | Ending::BudgetExhausted { .. } => None,
        }
    }
}
