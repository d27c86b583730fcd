//! What the resilience parts obey; the configuration layer fills it in.

use std::time::Duration;

/// How much of Sierra's grant is used.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaSettings {
    /// The share of the grant.
    pub share: f64,
    /// Calls left in reserve.
    pub reserve: u32,
    /// Our own ceiling, in calls per hour.
    pub rate: u64,
}

/// How calls are retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySettings {
    /// The first delay's ceiling.
    pub base: Duration,
    /// Every delay's ceiling.
    pub cap: Duration,
    /// Sends of one call, the first included.
    pub max_attempts: u32,
    /// Time for one call with its retries.
    pub total_budget: Duration,
    /// How delays are drawn.
    pub jitter: Jitter,
    /// The longest wait taken from a server.
    pub retry_after_cap: Duration,
}

/// How delays are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// From 0 to the ceiling.
    Full,
    /// Half fixed, half random.
    Equal,
    /// From the previous delay.
    Decorrelated,
}

/// When calls are halted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it.
    pub failure_threshold: u32,
    /// Time until the first health check.
    pub open_for: Duration,
    /// The longest such time.
    pub open_cap: Duration,
}
