//! Retry, breaker and quota.

pub mod settings;

pub use settings::{BreakerSettings, Jitter, QuotaSettings, RetrySettings};
