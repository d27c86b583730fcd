//! Settings that are right alone and wrong, or doubtful, together.

use std::time::Duration;

use crate::config::path::KeyPath;
use crate::config::section::Reading;
use crate::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings, Severity};
use crate::sync::settings::WORK_LEASE;

/// Sierra's own refusals ask for up to this long (sierra-api.md §6): a shorter cap asks again too early.
const USUAL_REFUSAL: Duration = Duration::from_secs(15 * 60);

/// Checks what no section can check alone. What the resilience layer refuses or doubts it says itself (C7, C8).
pub(super) fn check(reading: &Reading<'_>, retry: &RetrySettings, breaker: &BreakerSettings, quota: &QuotaSettings) {
    let own = [retry.problems(), breaker.problems(), quota.problems()].concat();
    for problem in own.into_iter().chain(retry.conflicts(breaker, WORK_LEASE, None)) {
        let key = KeyPath::dotted(problem.key);
        // What is wrong by itself was reported, and its default stands in: comparing that would only be noise.
        if reading.is_refused(&key) {
            continue;
        }
        match problem.severity {
            Severity::Refused => reading.refuse(&key, problem.message, "change it, or the setting it is compared with"),
            Severity::Warning => reading.warn(&key, problem.message, "change it unless that is meant"),
        }
    }
    let key = KeyPath::dotted;
    if retry.total_budget < retry.cap {
        let message = "is shorter than retry.cap, so the last waits can never be served";
        reading.warn(&key("retry.total_budget"), message, "make retry.total_budget longer than retry.cap");
    }
    if retry.retry_after_cap < USUAL_REFUSAL {
        let message = "is shorter than the 15m that Sierra asks for when its own quota is used up, so it is asked again too early";
        reading.warn(&key("retry.retry_after_cap"), message, "make it at least 15m");
    }
    if retry.attempt_timeout >= retry.total_budget {
        let message = "is not shorter than retry.total_budget, so one slow call leaves no time for a retry";
        reading.warn(&key("sierra.request_timeout"), message, "make it shorter than retry.total_budget");
    }
}
