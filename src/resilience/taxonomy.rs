//! What an answer means for the loop: one table from (status, Sierra's code, its name) to a decision.
//!
//! The three seeds disagree at the edges; `docs/rules.md` says how they were resolved. Statuses alone lie on this
//! API (a refusal, a business error and an empty export all come as 500), so Sierra's own code wins over the
//! status wherever it is more specific, but it never makes a terminal status retryable.

use std::time::Duration;

use super::{refusal, verdict};

/// What is known about an answer that is not a valid page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The HTTP status; `None` when no complete answer arrived (timeout, reset, cut body).
    pub status: Option<u16>,
    /// `code` of Sierra's error envelope, whether it came as a number or as a string.
    pub code: Option<i64>,
    /// `name` of Sierra's error envelope.
    pub name: Option<&'a str>,
    /// `description` of Sierra's error envelope.
    pub description: Option<&'a str>,
    /// The body, if it was read anyway; examined for a verdict (D1), never asked for (D4).
    pub body: &'a [u8],
}

/// What to do about an answer. Decides for the retry loop, the breaker and the caller alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Sierra's "no records": 404 with code 107. Not an error.
    Nothing,
    /// No status, a retryable status, or a failure dressed as success (A5): the same call may succeed later.
    Transient,
    /// An empty body under a success status: repeated at once the first time, as the vendor advises, then as
    /// [`Decision::Transient`].
    EmptyReply,
    /// 429: the quota is spent. The headers may say for how long.
    Throttled,
    /// Sierra's own "Rate exceeded for endpoint": leave that endpoint alone for this long.
    Refused(Duration),
    /// 401: the token is stale; negotiate a new one and repeat (A8).
    Unauthorised,
    /// Code 135: this range cannot be exported in one piece.
    NarrowRange,
    /// A retryable status whose body forbids the retry (D1).
    Declared,
    /// The request is at fault, or a person must act.
    Terminal,
    /// A status that nobody planned for: as [`Decision::Terminal`], but loudly (C2).
    TerminalUnknown,
    /// The call was a courtesy: it is not repeated, and its failure says nothing about the other side. Never the
    /// outcome of [`Decision::of`].
    Waived,
}

/// What a call says about the health of the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The other side is healthy, whatever it thought of the request (B5).
    Healthy,
    /// The other side is not well.
    Failed,
    /// Nothing was learnt: cancelled, refused by quota, or a 401 before its refresh.
    Neutral,
}

impl Decision {
    /// Decides on an answer that is not a valid page.
    #[must_use]
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let Some(status) = evidence.status else { return Self::Transient };
        let retryable = is_retryable(status);
        if retryable && verdict::forbids_retry(evidence.body) {
            return Self::Declared;
        }
        if let Some(wait) = refusal::stated_wait(evidence.name, evidence.description) {
            return Self::Refused(wait);
        }
        match (status, evidence.code) {
            (401, _) => Self::Unauthorised,
            (404, Some(107)) => Self::Nothing,
            (429, _) => Self::Throttled,
            (200..=299, _) => Self::Transient,
            // 117 and 118: the API is disabled or not in the access tier. 132: a circulation rule said no.
            (_, Some(117 | 118 | 132)) if retryable => Self::Terminal,
            (_, Some(135)) if retryable => Self::NarrowRange,
            _ if retryable => Self::Transient,
            _ if is_known_terminal(status) => Self::Terminal,
            _ => Self::TerminalUnknown,
        }
    }

    /// What the breaker learns from it.
    #[must_use]
    pub const fn mark(self) -> Mark {
        match self {
            Self::Transient | Self::EmptyReply => Mark::Failed,
            Self::Throttled | Self::Refused(_) | Self::Unauthorised | Self::Waived => Mark::Neutral,
            Self::Nothing | Self::NarrowRange | Self::Declared | Self::Terminal | Self::TerminalUnknown => {
                Mark::Healthy
            }
        }
    }

    /// Whether, as the end of a call, it is an error that a feed in order does not have.
    #[must_use]
    pub const fn is_unexpected(self) -> bool {
        !matches!(self, Self::Nothing | Self::NarrowRange | Self::Waived)
    }

    /// What the breaker learns from it when `status` is known: 408 and 425 are retried, but only a retryable 5xx, an
    /// invalid body or no status at all is a failure of the other side.
    #[must_use]
    pub const fn mark_under(self, status: Option<u16>) -> Mark {
        match (self, status) {
            (Self::Transient, Some(400..=499)) => Mark::Healthy,
            _ => self.mark(),
        }
    }
}

/// Retried by status alone (A2, B1, C2, as resolved).
#[must_use]
pub const fn is_retryable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// Statuses that the seeds or RFC 9110 name as the request's own fault, or as final.
const fn is_known_terminal(status: u16) -> bool {
    matches!(status, 400 | 402..=407 | 409..=417 | 421 | 422 | 426 | 428 | 431 | 451 | 501 | 505 | 507)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn decide(status: u16, code: Option<i64>) -> Decision {
        Decision::of(&Evidence { status: Some(status), code, ..Evidence::default() })
    }

    /// A2, B1, B5, C2: the whole table, pinned. A change here is a change of behaviour that must be meant.
    #[test]
    fn http_statuses_and_sierra_codes_and_their_decisions() {
        let mut table = String::new();
        let codes = [102, 103, 107, 109, 111, 112, 113, 117, 118, 120, 123, 132, 135];
        for status in (200..=204).chain(300..=308).chain(400..=431).chain([451, 499]).chain(500..=511).chain([599, 600])
        {
            let plain = decide(status, None);
            write!(table, "{status} {plain:?} {:?}", plain.mark_under(Some(status))).expect("writing to a string");
            for code in codes {
                let decision = decide(status, Some(code));
                if decision != plain {
                    let mark = decision.mark_under(Some(status));
                    write!(table, " | {code} {decision:?} {mark:?}").expect("writing to a string");
                }
            }
            table.push('\n');
        }
        let none = Decision::of(&Evidence::default());
        writeln!(table, "none {none:?} {:?}", none.mark_under(None)).expect("writing to a string");
        insta::assert_snapshot!(table);
    }

    /// BR-044: under any status, and ahead of what the status alone would say.
    #[test]
    fn a_rate_refusal_is_recognised_under_any_status() {
        for status in [200, 400, 403, 404, 429, 500, 503, 599] {
            let evidence = Evidence {
                status: Some(status),
                name: Some("Rate exceeded for endpoint"),
                description: Some("wait 12 minutes"),
                ..Evidence::default()
            };
            assert_eq!(Decision::of(&evidence), Decision::Refused(Duration::from_secs(720)), "{status}");
            assert_eq!(Decision::of(&evidence).mark(), Mark::Neutral);
        }
    }

    /// D1, D2: the verdict stops a retryable status and does nothing to any other.
    #[test]
    fn a_verdict_only_ever_stops_a_retry() {
        let with_body = |status, body| Decision::of(&Evidence { status: Some(status), body, ..Evidence::default() });
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(with_body(status, br#"{"retryable":false}"#), Decision::Declared, "{status}");
            assert_eq!(Decision::Declared.mark(), Mark::Healthy);
            for harmless in [&b"{\"retryable\":true}"[..], b"{\"retryable\":\"false\"}", b"<html>", b""] {
                assert_eq!(with_body(status, harmless), decide(status, None));
            }
        }
        assert_eq!(with_body(400, br#"{"retryable":true}"#), Decision::Terminal);
        assert_eq!(with_body(401, br#"{"retryable":false}"#), Decision::Unauthorised);
    }
}
