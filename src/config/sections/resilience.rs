//! `[quota]`, `[retry]` and `[breaker]`: how Sierra is spared, and what happens when it fails.

use std::time::Duration;

use crate::config::kind::{DurationIn, IntegerIn, NumberIn, OneOf, RateIn};
use crate::config::section::Section;
use crate::record::Stream;
use crate::resilience::backoff::Jitter;
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings};
use crate::sync::settings::StreamSettings;

/// Reads `[quota]`; the calls at once on each endpoint are those of its stream (A19).
pub(in crate::config) fn read_quota(root: &mut Section<'_>, streams: &[StreamSettings]) -> QuotaSettings {
    let mut section = root.section("quota", "How much of Sierra's grant is used; one ledger per API key.");
    let share = section.setting(
        "share",
        &NumberIn(0.001..=1.0),
        "0.9",
        "The share of the server's grant that this program may use.",
    );
    let reserve = section.setting(
        "reserve",
        &IntegerIn(0..=10_000),
        "5",
        "Calls left in the window at which it waits for the next.",
    );
    let rate =
        section.setting("rate", &RateIn("1/h"..="100000/s"), "10/s", "Our own ceiling, whatever the server grants.");
    section.finish();
    QuotaSettings { share, reserve, rate: rate as f64 / SECONDS_PER_HOUR, concurrency: concurrency(streams) }
}

/// Reads `[retry]`; the time of one attempt comes from `[sierra]`.
pub(in crate::config) fn read_retry(root: &mut Section<'_>, attempt_timeout: Duration) -> RetrySettings {
    let mut section = root.section("retry", "What happens when a call fails for a passing reason.");
    let base = section.setting("base", &DurationIn("1ms"..="1h"), "1s", "The first delay is drawn from 0 to this.");
    let cap = section.setting("cap", &DurationIn("1ms"..="1h"), "30s", "No delay is longer.");
    let max_attempts =
        section.setting("max_attempts", &IntegerIn(1..=100), "5", "Sends of one call, the first included.");
    let total_budget = section.setting(
        "total_budget",
        &DurationIn("1ms"..="1h"),
        "90s",
        "Time for one call with all its retries; quota waits do not count.",
    );
    let jitter = section.setting(
        "jitter",
        &OneOf(&[("full", Jitter::Full), ("equal", Jitter::Equal), ("decorrelated", Jitter::Decorrelated)]),
        "full",
        "How delays are drawn.",
    );
    let retry_after_cap = section.setting(
        "retry_after_cap",
        &DurationIn("1ms"..="24h"),
        "1h",
        "The longest wait that is taken from a server.",
    );
    section.finish();
    RetrySettings { base, cap, max_attempts, total_budget, jitter, retry_after_cap, attempt_timeout }
}

/// Reads `[breaker]`.
pub(in crate::config) fn read_breaker(root: &mut Section<'_>) -> BreakerSettings {
    let mut section = root.section("breaker", "When calls to Sierra are halted; also each sink's own breaker.");
    let failure_threshold =
        section.setting("failure_threshold", &IntegerIn(1..=1000), "10", "Failures in a row that open the breaker.");
    let open_for = section.setting(
        "open_for",
        &DurationIn("1ms"..="1h"),
        "30s",
        "Time until the first health check; it doubles with each that fails.",
    );
    let open_cap = section.setting("open_cap", &DurationIn("1ms"..="1h"), "60s", "The longest time between checks.");
    section.finish();
    BreakerSettings { failure_threshold, open_for, open_cap }
}

/// Rates are read in calls per hour, so that every unit is whole.
const SECONDS_PER_HOUR: f64 = 3_600.0;

fn concurrency(streams: &[StreamSettings]) -> PerEndpoint<u32> {
    let defaults = QuotaSettings::default().concurrency;
    PerEndpoint::from_fn(|endpoint| {
        let stream = match endpoint {
            Endpoint::Bibs | Endpoint::BibsMarc | Endpoint::BibsMarcFile => Some(Stream::Bibs),
            Endpoint::Items => Some(Stream::Items),
            Endpoint::Patrons => Some(Stream::Patrons),
            Endpoint::Token | Endpoint::TokenInfo => None,
        };
        let settings = streams.iter().find(|settings| Some(settings.stream) == stream);
        settings.map_or(*defaults.of(endpoint), |settings| settings.concurrency)
    })
}
