//! What the client tells while it works: one flat log line and one count for each thing (A13, C9).
//!
//! Nothing here can hold a body, a token or a patron: endpoints, statuses, numbers and times are all there is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::latch::LatchCause;
use crate::record::Stream;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::retry::{RetryEvent, RetryEventKind, RetryObserver};
use crate::resilience::taxonomy::Decision;
use crate::telemetry::metric::{self, RequestOutcome, RetryClass};

/// A request is about to be sent. `path` has no query for patrons.
pub(super) fn request_sent(endpoint: Endpoint, path: &str, attempt: u32, correlation_id: &str) {
    tracing::debug!(event = "request_sent", endpoint = endpoint.name(), path, attempt, correlation_id, "asking Sierra");
}

/// A request was answered, or not.
pub(super) fn request_answered(
    endpoint: Endpoint,
    status_code: Option<u16>,
    outcome: Result<(), Decision>,
    bytes: usize,
    took: Duration,
    correlation_id: &str,
) {
    let counted = outcome.map_or_else(|decision| outcome_of(decision, status_code), |()| RequestOutcome::Ok);
    metric::request(endpoint.name(), counted);
    let outcome = outcome.map_or_else(outcome_name, |()| "ok");
    tracing::debug!(
        event = "request_answered",
        endpoint = endpoint.name(),
        status_code,
        outcome,
        bytes,
        elapsed = took.as_secs_f64(),
        correlation_id,
        "Sierra answered"
    );
}

/// The coarser word of the metric, whose labels are few.
fn outcome_of(decision: Decision, status_code: Option<u16>) -> RequestOutcome {
    match decision {
        Decision::Nothing => RequestOutcome::Nothing,
        Decision::EmptyReply => RequestOutcome::InvalidBody,
        Decision::Transient => match status_code {
            None => RequestOutcome::Network,
            Some(200..=299) => RequestOutcome::InvalidBody,
            Some(_) => RequestOutcome::Transient,
        },
        Decision::Throttled | Decision::Refused(_) => RequestOutcome::Throttled,
        Decision::Unauthorised => RequestOutcome::Unauthorized,
        Decision::NarrowRange
        | Decision::Declared
        | Decision::Terminal
        | Decision::TerminalUnknown
        | Decision::Waived => RequestOutcome::Permanent,
    }
}

fn outcome_name(decision: Decision) -> &'static str {
    match decision {
        Decision::Nothing => "nothing",
        Decision::Transient => "transient",
        Decision::EmptyReply => "empty_reply",
        Decision::Throttled => "throttled",
        Decision::Refused(_) => "rate_refused",
        Decision::Unauthorised => "unauthorised",
        Decision::NarrowRange => "narrow",
        Decision::Declared => "declared_final",
        Decision::Terminal => "terminal",
        Decision::TerminalUnknown => "terminal_unknown",
        Decision::Waived => "waived",
    }
}

/// Writes the steps of the retry loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryLog;

impl RetryObserver for RetryLog {
    fn on_retry_event(&self, event: &RetryEvent<'_>) {
        count(event);
        // One macro call per level: the level of a tracing event is fixed where it is written.
        macro_rules! write_line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    event = event.kind.name(),
                    reason = event.kind.reason(),
                    endpoint = event.endpoint,
                    status_code = event.status_code,
                    attempt = event.attempt,
                    delay = event.delay.as_secs_f64(),
                    computed_jitter = event.computed_jitter.map(|jitter| jitter.as_secs_f64()),
                    honored_retry_after = event.honored_retry_after,
                    elapsed = event.elapsed.as_secs_f64(),
                    rate_limit_remaining = event.rate_limit_remaining,
                    correlation_id = event.correlation_id,
                    $message
                )
            };
        }
        match event.kind {
            RetryEventKind::Scheduled => write_line!(warn, "the request failed and is repeated after the delay"),
            RetryEventKind::WaitingForQuota => write_line!(info, "the request is repeated once quota allows it"),
            RetryEventKind::Reauthenticating => write_line!(info, "the token was refused: repeating with a new one"),
            RetryEventKind::Succeeded => write_line!(info, "a repeat of the request succeeded"),
            RetryEventKind::AbandonedTerminal => write_line!(warn, "the request failed for good"),
            RetryEventKind::BudgetExhausted(_) => write_line!(warn, "the request failed too often: it stays owed"),
            RetryEventKind::Parked(_) => write_line!(info, "the wait is too long: the work is taken up again later"),
            RetryEventKind::CircuitOpen => write_line!(info, "not asked: the breaker is open"),
            RetryEventKind::ErrorSpike { errors } => tracing::error!(
                event = event.kind.name(),
                endpoint = event.endpoint,
                errors,
                correlation_id = event.correlation_id,
                "{errors} requests failed for good within ten minutes, where there is normally next to none: see the \
                 errors before this line"
            ),
        }
    }
}

fn count(event: &RetryEvent<'_>) {
    match event.kind {
        RetryEventKind::Scheduled => metric::retry(RetryClass::Transient),
        RetryEventKind::WaitingForQuota => metric::retry(RetryClass::Throttled),
        RetryEventKind::Reauthenticating => metric::retry(RetryClass::Reauthenticated),
        _ => {}
    }
}

/// Counts waits for quota: the sum since the start, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct QuotaWaitCounter(AtomicU64);

impl QuotaWaitCounter {
    /// A call waited so long.
    pub(super) fn add(&self, waited: Duration) {
        let milliseconds = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let before = self.0.fetch_add(milliseconds, Ordering::Relaxed);
        metric::quota_waited(Duration::from_millis(before.saturating_add(milliseconds)));
    }
}

/// The token endpoint did not say how long a token lives.
pub(super) fn token_life_assumed(assumed: Duration, correlation_id: &str) {
    tracing::warn!(
        event = "token_life_assumed",
        endpoint = Endpoint::Token.name(),
        assumed = assumed.as_secs_f64(),
        correlation_id,
        "Sierra did not say how long the token lives: taking the usual hour"
    );
}

/// A new token is in use.
pub(super) fn token_fetched(generation: u64, life: Duration, correlation_id: &str) {
    tracing::debug!(
        event = "token_fetched",
        endpoint = Endpoint::Token.name(),
        generation,
        life = life.as_secs_f64(),
        correlation_id,
        "a new session token is in use"
    );
}

/// The token could not be replaced ahead of time.
pub(super) fn token_refresh_failed(status_code: Option<u16>) {
    tracing::warn!(
        event = "token_refresh_failed",
        endpoint = Endpoint::Token.name(),
        status_code,
        "the session token could not be replaced ahead of time: the old one still works"
    );
}

/// The latch closed: a person must act.
pub(super) fn latch_closed(cause: LatchCause) {
    let status_code = match cause {
        LatchCause::CredentialRefused { status } => Some(status),
        LatchCause::TokensRefused => None,
    };
    tracing::error!(
        event = "credential_latch_closed",
        status_code,
        "Sierra refuses the API key: nothing is asked any more; check sierra.client_key, its secret and the key's \
         state in Sierra Admin; a changed address, key or secret is tried at once, the same one once an hour, or as soon \
         as you run `sierra-sync recover` or `sierra-sync breaker reset --yes`"
    );
}

/// The latch lifted.
pub(super) fn latch_lifted() {
    tracing::info!(event = "credential_latch_lifted", "Sierra takes the API key again");
}

/// A page came in another order than by record number.
pub(super) fn page_out_of_order(stream: Stream, correlation_id: &str) {
    tracing::warn!(
        event = "page_out_of_order",
        endpoint = stream.name(),
        correlation_id,
        "Sierra sent a page that is not in order of record number: the greatest number counts"
    );
}

/// Escapes that no text can hold were replaced.
pub(super) fn surrogates_replaced(stream: Stream, count: usize, correlation_id: &str) {
    tracing::warn!(
        event = "surrogates_replaced",
        endpoint = stream.name(),
        count,
        correlation_id,
        "Sierra sent halves of characters: U+FFFD stands in their place"
    );
}

/// A page was found that fails every time.
pub(super) fn page_poisoned(endpoint: Endpoint, status_code: Option<u16>, correlation_id: &str) {
    tracing::warn!(
        event = "page_poisoned",
        endpoint = endpoint.name(),
        status_code,
        correlation_id,
        "one page fails every time while others do not: it is asked for in smaller parts"
    );
}

/// The key can do more than read (A9).
pub(super) fn key_can_write(permissions: &[String]) {
    tracing::warn!(
        event = "key_can_write",
        permissions = permissions.join(", "),
        "the API key may do more than read: ask for a key with read roles only"
    );
}
