//! What a breaker tells the outside: alerts, recovery notices, log lines.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::resilience::endpoint::Endpoint;

/// What a breaker, or a suspension, holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every call of the API key, or of the sink.
    Key,
    /// The calls to one endpoint; the others go on.
    Endpoint(Endpoint),
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => formatter.write_str("key"),
            Self::Endpoint(endpoint) => write!(formatter, "endpoint {endpoint}"),
        }
    }
}

/// Why a circuit is open. Reads after "breaker opened: ".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenReason {
    /// So many failures followed each other (A10).
    ConsecutiveFailures {
        /// Failures in a row.
        failures: u32,
    },
    /// Too many of the calls of the last minute failed.
    FailureRatio {
        /// Failed calls of the last 60 s.
        failures: u32,
        /// All calls of the last 60 s.
        calls: u32,
    },
    /// A call failed before ten had succeeded after the last recovery.
    FailedWhileRecovering,
    /// The health check failed.
    HealthCheckFailed,
    /// The health check was never answered for within its lease (BR-109).
    HealthCheckLost,
    /// A person opened it, and said why.
    Operator {
        /// The words of that person.
        reason: String,
        /// The name of that person, as far as it is known.
        #[serde(default)]
        by: Option<String>,
    },
}

impl OpenReason {
    /// Whether a person said so.
    #[must_use]
    pub const fn is_operators(&self) -> bool {
        matches!(self, Self::Operator { .. })
    }
}

impl fmt::Display for OpenReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConsecutiveFailures { failures } => write!(formatter, "{failures} consecutive failures"),
            Self::FailureRatio { failures, calls } => {
                write!(formatter, "{failures} of {calls} calls failed within a minute")
            }
            Self::FailedWhileRecovering => formatter.write_str("a call failed while recovering"),
            Self::HealthCheckFailed => formatter.write_str("health check failed"),
            Self::HealthCheckLost => formatter.write_str("health check got no answer"),
            Self::Operator { reason, by: None } => write!(formatter, "opened by operator: {reason}"),
            Self::Operator { reason, by: Some(by) } => write!(formatter, "opened by operator {by}: {reason}"),
        }
    }
}

/// What closed a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedBy {
    /// A health check passed.
    HealthCheck,
    /// The time ran out for which a person held it open, and the health check after it passed.
    EndOfHold,
    /// A person.
    Operator,
}

impl fmt::Display for ClosedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::HealthCheck => "health check passed",
            Self::EndOfHold => "the time is over for which an operator held it open, and the health check passed",
            Self::Operator => "closed by an operator",
        })
    }
}

/// A transition worth telling. Events of one outage: one `Opened`, any number of `Reopened` and `Closed`, at most one
/// `Escalated`, one `Recovered`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BreakerEvent {
    /// An outage began: the critical alert of A10, and the log line `breaker_opened`.
    Opened {
        /// What is held back.
        scope: Scope,
        /// Why.
        reason: OpenReason,
        /// Of the call whose failure opened it; `None` when a person did.
        correlation_id: Option<Arc<str>>,
        /// When the health check is due; `None` while held open without end.
        until: Option<Instant>,
    },
    /// The outage goes on.
    Reopened {
        /// What is held back.
        scope: Scope,
        /// Why.
        reason: OpenReason,
        /// When the next health check is due.
        until: Instant,
    },
    /// Still open after two windows: somebody should look (B12).
    Escalated {
        /// What is held back.
        scope: Scope,
        /// How long the outage lasts already.
        open_for: Duration,
    },
    /// Calls go again, carefully (B7).
    Closed {
        /// What was held back.
        scope: Scope,
        /// What closed it.
        by: ClosedBy,
    },
    /// Ten calls succeeded, or a person reset it: the recovery notice.
    Recovered {
        /// What was held back.
        scope: Scope,
        /// How long the outage lasted.
        after: Duration,
    },
}

impl BreakerEvent {
    /// The value of the log field `event`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "breaker_opened",
            Self::Reopened { .. } => "breaker_reopened",
            Self::Escalated { .. } => "breaker_escalated",
            Self::Closed { .. } => "breaker_closed",
            Self::Recovered { .. } => "breaker_recovered",
        }
    }

    /// What it is about.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        match self {
            Self::Opened { scope, .. }
            | Self::Reopened { scope, .. }
            | Self::Escalated { scope, .. }
            | Self::Closed { scope, .. }
            | Self::Recovered { scope, .. } => *scope,
        }
    }
}

/// Hears of every transition, in order. Called without any lock held; must not block.
pub trait BreakerObserver: Send + Sync {
    /// A transition happened.
    fn on_breaker_event(&self, event: &BreakerEvent);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentBreakerObserver;

impl BreakerObserver for SilentBreakerObserver {
    fn on_breaker_event(&self, _event: &BreakerEvent) {}
}
