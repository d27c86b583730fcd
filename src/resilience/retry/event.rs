//! What the retry loop tells about each attempt, as flat fields for a log line (A13, C9). Never a body, a URL or a
//! token: there is no field that could hold one.

use std::time::Duration;

use super::outcome::{Budget, ParkReason};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryEventKind {
    /// The attempt failed and is to be repeated after `delay`.
    Scheduled,
    /// The attempt was throttled and is to be repeated once the quota allows it, after `delay` at the earliest.
    WaitingForQuota,
    /// The attempt got a 401; it is repeated at once with a new token (A8).
    Reauthenticating,
    /// The call succeeded after at least one repeat.
    Succeeded,
    /// The call failed for good.
    AbandonedTerminal,
    /// A budget ran out.
    BudgetExhausted(Budget),
    /// The wait is too long for a worker; the call is parked.
    Parked(ParkReason),
    /// The breaker is open.
    CircuitOpen,
    /// So many calls failed for good within ten minutes, where there is normally next to none: somebody should look
    /// (B12). Told beside the end of the last of them.
    ErrorSpike {
        /// Calls that failed for good within ten minutes.
        errors: u32,
    },
}

impl RetryEventKind {
    /// The value of the log field `event`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "retry_scheduled",
            Self::WaitingForQuota => "retry_waiting_for_quota",
            Self::Reauthenticating => "retry_reauthenticating",
            Self::Succeeded => "retry_succeeded",
            Self::AbandonedTerminal => "retry_abandoned_terminal",
            Self::BudgetExhausted(_) => "retry_budget_exhausted",
            Self::Parked(_) => "retry_parked",
            Self::CircuitOpen => "retry_circuit_open",
            Self::ErrorSpike { .. } => "retry_permanent_error_spike",
        }
    }

    /// The value of the log field `reason`, where there is one.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::BudgetExhausted(budget) => Some(budget.name()),
            Self::Parked(reason) => Some(reason.name()),
            _ => None,
        }
    }
}

/// One step of the loop. The names of the fields are those of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryEvent<'a> {
    /// What happened.
    pub kind: RetryEventKind,
    /// The endpoint's name, or the sink's.
    pub endpoint: &'a str,
    /// Status of the attempt's answer; `None` if none came.
    pub status_code: Option<u16>,
    /// Sends of this call so far, throttled ones included; the first is 1.
    pub attempt: u32,
    /// What the loop sleeps before the next attempt, exactly. Zero where it does not sleep.
    pub delay: Duration,
    /// What the jitter drew, whether or not it was used; `None` where nothing was drawn.
    pub computed_jitter: Option<Duration>,
    /// The server's `Retry-After` replaced the jitter.
    pub honored_retry_after: bool,
    /// Since the call began.
    pub elapsed: Duration,
    /// Calls that the server said are left, if it did.
    pub rate_limit_remaining: Option<u32>,
    /// Ties the attempts of one call together.
    pub correlation_id: &'a str,
}

/// Hears of every step of a retry loop. Must not block.
pub trait RetryObserver: Send + Sync {
    /// A step was taken.
    fn on_retry_event(&self, event: &RetryEvent<'_>);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentRetryObserver;

impl RetryObserver for SilentRetryObserver {
    fn on_retry_event(&self, _event: &RetryEvent<'_>) {}
}
