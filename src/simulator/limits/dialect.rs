//! How a quota is told: the header families and forms of reset that are in use (`sierra-api.md` §6).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::super::dates::http_date;
use super::quota::{RateLimit, Verdict};

/// A family of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`; the reset in any form.
    XRateLimit,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset`, `-Policy`: IETF drafts up to 06; the reset in any form.
    RateLimitHeaders,
    /// `RateLimit: limit=100, remaining=50, reset=30`: draft 07.
    RateLimitField,
    /// `RateLimit: "default";r=50;t=30` with `RateLimit-Policy: "default";q=100;w=60`: drafts from 08 on.
    RateLimitItem,
    /// None at all.
    Silent,
}

/// A form of reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// Seconds from now.
    DeltaSeconds,
    /// Milliseconds from now.
    DeltaMilliseconds,
    /// Seconds since 1970.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMilliseconds,
    /// An RFC 3339 timestamp.
    Rfc3339,
    /// An HTTP date.
    HttpDate,
    /// The header is left out.
    Absent,
}

/// What a refusal says in `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// Nothing.
    Absent,
    /// Seconds.
    Seconds,
    /// An HTTP date.
    HttpDate,
    /// Less than it takes: Sierra's is not to be relied on (A4).
    TooShort,
}

/// The headers of an answer. `date` is what the same answer says in `Date`: epochs follow the server's own clock.
pub(crate) fn headers(limit: &RateLimit, verdict: &Verdict, date: Timestamp) -> Vec<(&'static str, String)> {
    let remaining = verdict.remaining;
    let (calls, window) = (limit.calls, limit.seconds);
    let seconds = rounded_up(verdict.reset_in);
    let mut headers = match limit.dialect {
        Dialect::XRateLimit => {
            let mut headers =
                vec![("x-ratelimit-limit", calls.to_string()), ("x-ratelimit-remaining", remaining.to_string())];
            headers.extend(reset(limit.reset, verdict.reset_in, date).map(|value| ("x-ratelimit-reset", value)));
            headers
        }
        Dialect::RateLimitHeaders => {
            let mut headers = vec![
                ("ratelimit-limit", calls.to_string()),
                ("ratelimit-remaining", remaining.to_string()),
                ("ratelimit-policy", format!("{calls};w={window}")),
            ];
            headers.extend(reset(limit.reset, verdict.reset_in, date).map(|value| ("ratelimit-reset", value)));
            headers
        }
        Dialect::RateLimitField => {
            vec![("ratelimit", format!("limit={calls}, remaining={remaining}, reset={seconds}"))]
        }
        Dialect::RateLimitItem => vec![
            ("ratelimit", format!("\"default\";r={remaining};t={seconds}")),
            ("ratelimit-policy", format!("\"default\";q={calls};w={window}")),
        ],
        Dialect::Silent => Vec::new(),
    };
    if !verdict.is_granted {
        headers.extend(match limit.retry_after {
            RetryAfter::Absent => None,
            RetryAfter::Seconds => Some(("retry-after", seconds.to_string())),
            RetryAfter::HttpDate => Some(("retry-after", http_date(later(date, verdict.reset_in)))),
            RetryAfter::TooShort => Some(("retry-after", "1".into())),
        });
    }
    headers
}

fn reset(form: Reset, wait: Duration, date: Timestamp) -> Option<String> {
    let then = later(date, wait);
    match form {
        Reset::DeltaSeconds => Some(rounded_up(wait).to_string()),
        Reset::DeltaMilliseconds => Some(wait.as_millis().to_string()),
        Reset::EpochSeconds => Some(later(date, wait).as_second().to_string()),
        Reset::EpochMilliseconds => Some(then.as_millisecond().to_string()),
        Reset::Rfc3339 => Some(format!("{then:.0}")),
        Reset::HttpDate => Some(http_date(then)),
        Reset::Absent => None,
    }
}

/// The first whole second at or after `wait` from `date`.
fn later(date: Timestamp, wait: Duration) -> Timestamp {
    let then = SignedDuration::try_from(wait).ok().and_then(|wait| date.checked_add(wait).ok()).unwrap_or(date);
    let up = i64::from(then.subsec_nanosecond() > 0);
    Timestamp::from_second(then.as_second() + up).unwrap_or(then)
}

fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::limits::Counting;

    fn said(dialect: Dialect, form: Reset, retry_after: RetryAfter) -> Vec<String> {
        let limit = RateLimit {
            calls: 100,
            seconds: 60,
            counting: Counting::FixedWindow,
            dialect,
            reset: form,
            retry_after,
            free_token_calls: false,
        };
        let verdict = Verdict { is_granted: false, remaining: 0, reset_in: Duration::from_millis(29_500) };
        let headers = headers(&limit, &verdict, "2026-01-05T10:00:00Z".parse().unwrap());
        headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn every_form_of_reset_is_spoken() {
        let reset = |form| said(Dialect::XRateLimit, form, RetryAfter::Absent).get(2).cloned();
        let forms = [
            Reset::DeltaSeconds,
            Reset::DeltaMilliseconds,
            Reset::EpochSeconds,
            Reset::EpochMilliseconds,
            Reset::Rfc3339,
            Reset::HttpDate,
            Reset::Absent,
        ];
        insta::assert_json_snapshot!(forms.map(reset), @r#"
        [
          "x-ratelimit-reset: 30",
          "x-ratelimit-reset: 29500",
          "x-ratelimit-reset: 1767607230",
          "x-ratelimit-reset: 1767607230000",
          "x-ratelimit-reset: 2026-01-05T10:00:30Z",
          "x-ratelimit-reset: Mon, 05 Jan 2026 10:00:30 GMT",
          null
        ]
        "#);
    }

    #[test]
    fn every_dialect_is_spoken() {
        let spoken = [
            Dialect::XRateLimit,
            Dialect::RateLimitHeaders,
            Dialect::RateLimitField,
            Dialect::RateLimitItem,
            Dialect::Silent,
        ]
        .map(|dialect| said(dialect, Reset::DeltaSeconds, RetryAfter::Seconds));
        insta::assert_json_snapshot!(spoken, @r#"
        [
          [
            "x-ratelimit-limit: 100",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 30",
            "retry-after: 30"
          ],
          [
            "ratelimit-limit: 100",
            "ratelimit-remaining: 0",
            "ratelimit-policy: 100;w=60",
            "ratelimit-reset: 30",
            "retry-after: 30"
          ],
          [
            "ratelimit: limit=100, remaining=0, reset=30",
            "retry-after: 30"
          ],
          [
            "ratelimit: \"default\";r=0;t=30",
            "ratelimit-policy: \"default\";q=100;w=60",
            "retry-after: 30"
          ],
          [
            "retry-after: 30"
          ]
        ]
        "#);
    }
}
