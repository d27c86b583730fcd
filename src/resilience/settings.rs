//! The settings that this layer obeys, with their defaults, and everything that can be wrong with them.
//!
//! The config layer fills these in and shows the problems with their key paths; it may add the file and line.

use std::time::Duration;

use super::backoff::{Backoff, Jitter};
use super::endpoint::{Endpoint, PerEndpoint};

/// `[retry]`, and the time of one attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetrySettings {
    /// Ceiling of the first wait (A1).
    pub base: Duration,
    /// Ceiling of any wait (A1).
    pub cap: Duration,
    /// Attempts in all, the first included (A1). Throttled ones that came with a usable wait are not counted.
    pub max_attempts: u32,
    /// Wall time of a call, on the monotonic clock, waits for quota excused (B2).
    pub total_budget: Duration,
    /// How chance enters the wait (C1).
    pub jitter: Jitter,
    /// No stated wait is believed beyond this (C4).
    pub retry_after_cap: Duration,
    /// Time of one attempt (`sierra.request_timeout`).
    pub attempt_timeout: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(30),
            max_attempts: 5,
            total_budget: Duration::from_secs(90),
            jitter: Jitter::Full,
            retry_after_cap: Duration::from_secs(3600),
            attempt_timeout: Duration::from_secs(60),
        }
    }
}

/// `[breaker]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakerSettings {
    /// Consecutive failures that open it (A10).
    pub failure_threshold: u32,
    /// The first open time; later ones double.
    pub open_for: Duration,
    /// The longest open time.
    pub open_cap: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failure_threshold: 10, open_for: Duration::from_secs(30), open_cap: Duration::from_secs(60) }
    }
}

/// `[quota]`, and the calls allowed at once on each endpoint (A19).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaSettings {
    /// The part of the server's grant that is ours, above 0 and at most 1.
    pub share: f64,
    /// Calls that we leave in every window: with fewer left we wait for the reset (A3).
    pub reserve: u32,
    /// Our own ceiling, in calls per second; positive and finite.
    pub rate: f64,
    /// Calls at once on each endpoint, at least 1 each (`streams.*.concurrency`).
    pub concurrency: PerEndpoint<u32>,
}

impl Default for QuotaSettings {
    fn default() -> Self {
        let concurrency = PerEndpoint::from_fn(|endpoint| match endpoint {
            Endpoint::Token | Endpoint::TokenInfo => 1,
            _ => 2,
        });
        Self { share: 0.9, reserve: 5, rate: 10.0, concurrency }
    }
}

/// What is wrong with a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// Key path in the config file, such as `retry.base`.
    pub key: &'static str,
    /// A lowercase fragment that reads after the key: what it must be, and why.
    pub message: String,
    /// Whether the service refuses to start with it.
    pub severity: Severity,
}

/// Whether a problem stops the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The service does not start.
    Refused,
    /// The service starts and says so.
    Warning,
}

impl RetrySettings {
    /// The schedule of waits, unless `base` and `cap` contradict each other.
    #[must_use]
    pub fn backoff(&self) -> Option<Backoff> {
        Backoff::new(self.base, self.cap, self.jitter)
    }

    /// Everything wrong with these settings by themselves.
    #[must_use]
    pub fn problems(&self) -> Vec<SettingsProblem> {
        let mut problems = Vec::new();
        let mut refuse = |condition: bool, key, message: String| {
            if condition {
                problems.push(SettingsProblem { key, message, severity: Severity::Refused });
            }
        };
        refuse(self.base.is_zero(), "retry.base", "must be longer than zero".into());
        let short = format!("must be at least retry.base ({:?})", self.base);
        refuse(self.cap < self.base, "retry.cap", short);
        refuse(self.max_attempts == 0, "retry.max_attempts", "must be at least 1".into());
        refuse(self.total_budget.is_zero(), "retry.total_budget", "must be longer than zero".into());
        refuse(self.retry_after_cap.is_zero(), "retry.retry_after_cap", "must be longer than zero".into());
        refuse(self.attempt_timeout.is_zero(), "sierra.request_timeout", "must be longer than zero".into());
        problems
    }

    /// What is wrong between these settings and the rest of the service. `lease` is the time after which another
    /// worker may take the work over; `window` is the quota window, when one is known.
    #[must_use]
    pub fn conflicts(
        &self,
        breaker: &BreakerSettings,
        lease: Duration,
        window: Option<Duration>,
    ) -> Vec<SettingsProblem> {
        let mut problems = Vec::new();
        if self.cap < breaker.open_for {
            problems.push(SettingsProblem {
                key: "retry.cap",
                message: format!(
                    "is {:?}, shorter than one recovery cycle (breaker.open_for = {:?}): every retry of a call may \
                     fall into the same outage",
                    self.cap, breaker.open_for
                ),
                severity: Severity::Warning,
            });
        }
        if self.total_budget >= lease {
            problems.push(SettingsProblem {
                key: "retry.total_budget",
                message: format!(
                    "is {:?}, must be shorter than the lease on the work ({lease:?}): a second worker would take it \
                     while the first still backs off",
                    self.total_budget
                ),
                severity: Severity::Refused,
            });
        }
        if let Some(window) = window.filter(|window| *window > self.total_budget) {
            problems.push(SettingsProblem {
                key: "retry.total_budget",
                message: format!(
                    "is {:?}, shorter than the quota window of {window:?}: a call that meets an exhausted quota is \
                     parked until the window ends instead of being retried",
                    self.total_budget
                ),
                severity: Severity::Warning,
            });
        }
        problems
    }
}

impl BreakerSettings {
    /// Everything wrong with these settings by themselves.
    #[must_use]
    pub fn problems(&self) -> Vec<SettingsProblem> {
        let mut problems = Vec::new();
        let mut refuse = |condition: bool, key, message: String| {
            if condition {
                problems.push(SettingsProblem { key, message, severity: Severity::Refused });
            }
        };
        refuse(self.failure_threshold == 0, "breaker.failure_threshold", "must be at least 1".into());
        refuse(self.open_for.is_zero(), "breaker.open_for", "must be longer than zero".into());
        let short = format!("must be at least breaker.open_for ({:?})", self.open_for);
        refuse(self.open_cap < self.open_for, "breaker.open_cap", short);
        problems
    }
}

impl QuotaSettings {
    /// Everything wrong with these settings by themselves.
    #[must_use]
    pub fn problems(&self) -> Vec<SettingsProblem> {
        let mut problems = Vec::new();
        let mut refuse = |condition: bool, key, message: &str| {
            if condition {
                problems.push(SettingsProblem { key, message: message.into(), severity: Severity::Refused });
            }
        };
        refuse(!(self.share > 0.0 && self.share <= 1.0), "quota.share", "must be above 0 and at most 1");
        let rate = self.rate.is_finite() && (1e-4..=1e5).contains(&self.rate);
        refuse(!rate, "quota.rate", "must be between one call in three hours and 100000 a second");
        let idle = self.concurrency.iter().any(|(_, calls)| *calls == 0);
        refuse(idle, "streams.*.concurrency", "must be at least 1");
        problems
    }

    /// Calls that we may make in a window of `limit`: max(1, limit × share − reserve).
    #[must_use]
    pub fn grant(&self, limit: u32) -> u32 {
        // The tiny addend undoes binary rounding: 100 × 0.29 is 28.999….
        let ours = (f64::from(limit) * self.share + 1e-9).floor() - f64::from(self.reserve);
        if ours >= 1.0 { ours as u32 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(600);

    #[test]
    fn the_defaults_are_sound() {
        let (retry, breaker) = (RetrySettings::default(), BreakerSettings::default());
        assert!(retry.problems().is_empty() && breaker.problems().is_empty());
        assert!(QuotaSettings::default().problems().is_empty());
        assert!(retry.conflicts(&breaker, LEASE, Some(Duration::from_secs(60))).is_empty());
    }

    #[test]
    fn every_impossible_number_is_named_with_its_key() {
        let zero = Duration::ZERO;
        let retry = RetrySettings {
            base: zero,
            cap: zero,
            max_attempts: 0,
            total_budget: zero,
            retry_after_cap: zero,
            attempt_timeout: zero,
            ..RetrySettings::default()
        };
        let breaker = BreakerSettings { failure_threshold: 0, open_for: zero, open_cap: zero };
        let concurrency = PerEndpoint::from_fn(|_| 0);
        let quota = QuotaSettings { share: 0.0, rate: f64::NAN, concurrency, ..QuotaSettings::default() };
        let problems = [retry.problems(), breaker.problems(), quota.problems()].concat();
        let keys: Vec<_> = problems.iter().map(|problem| problem.key).collect();
        let expected = [
            "retry.base",
            "retry.max_attempts",
            "retry.total_budget",
            "retry.retry_after_cap",
            "sierra.request_timeout",
            "breaker.failure_threshold",
            "breaker.open_for",
            "quota.share",
            "quota.rate",
            "streams.*.concurrency",
        ];
        assert_eq!(keys, expected);
        let crossed = RetrySettings { cap: Duration::from_millis(1), ..RetrySettings::default() };
        assert_eq!(crossed.problems().first().map(|problem| problem.key), Some("retry.cap"));
    }

    /// C7, C8, BR-101
    #[test]
    fn settings_that_work_against_each_other_are_named() {
        let breaker = BreakerSettings::default();
        let severities = |retry: RetrySettings, window| -> Vec<_> {
            retry
                .conflicts(&breaker, LEASE, window)
                .into_iter()
                .map(|problem| (problem.key, problem.severity))
                .collect()
        };
        let impatient = RetrySettings { cap: Duration::from_secs(29), ..RetrySettings::default() };
        assert_eq!(severities(impatient, None), [("retry.cap", Severity::Warning)]);
        let stubborn = RetrySettings { total_budget: LEASE, ..RetrySettings::default() };
        assert_eq!(severities(stubborn, None), [("retry.total_budget", Severity::Refused)]);
        let window = Some(Duration::from_secs(16 * 60));
        assert_eq!(severities(RetrySettings::default(), window), [("retry.total_budget", Severity::Warning)]);
    }

    #[test]
    fn the_grant_leaves_share_and_reserve_and_is_never_zero() {
        let settings = QuotaSettings::default();
        assert_eq!(settings.grant(1000), 895);
        assert_eq!(settings.grant(100), 85);
        assert_eq!(settings.grant(5), 1);
        assert_eq!(settings.grant(0), 1);
    }
}
