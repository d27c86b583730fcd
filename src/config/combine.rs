//! Settings that are right alone and wrong, or doubtful, together.

use std::time::Duration;

use crate::config::path::KeyPath;
use crate::config::section::Reading;
use crate::resilience::{BreakerSettings, RetrySettings};
use crate::sierra::SierraSettings;
use crate::sync::settings::WORK_LEASE;

/// Sierra's own refusals ask for up to this long (sierra-api.md §6): a shorter cap asks again too early.
const USUAL_REFUSAL: Duration = Duration::from_secs(15 * 60);

/// Checks what no section can check alone.
pub(super) fn check(
    reading: &Reading<'_>,
    sierra: &Option<SierraSettings>,
    retry: &RetrySettings,
    breaker: &BreakerSettings,
) {
    let key = KeyPath::dotted;
    // C8: work whose lease runs out while its first owner still backs off is taken by a second one.
    if retry.total_budget >= WORK_LEASE {
        let lease = WORK_LEASE.as_secs() / 60;
        let message =
            format!("is not shorter than the lease on a piece of work ({lease}m), which would then be done twice");
        reading.refuse(&key("retry.total_budget"), message, format!("make it shorter than {lease}m"));
    }
    // C7: a backed-off call must be able to outlast one recovery of what it waits for.
    if retry.cap < breaker.open_for {
        let message = "is shorter than breaker.open_for, so retries end before the breaker has looked for a recovery";
        reading.warn(&key("retry.cap"), message, "make retry.cap at least breaker.open_for");
    }
    if retry.total_budget < retry.cap {
        let message = "is shorter than retry.cap, so the last waits can never be served";
        reading.warn(&key("retry.total_budget"), message, "make retry.total_budget longer than retry.cap");
    }
    if retry.retry_after_cap < USUAL_REFUSAL {
        let message = "is shorter than the 15m that Sierra asks for when its own quota is used up, so it is asked again too early";
        reading.warn(&key("retry.retry_after_cap"), message, "make it at least 15m");
    }
    if sierra.as_ref().is_some_and(|sierra| sierra.request_timeout >= retry.total_budget) {
        let message = "is not shorter than retry.total_budget, so one slow call leaves no time for a retry";
        reading.warn(&key("sierra.request_timeout"), message, "make it shorter than retry.total_budget");
    }
}
