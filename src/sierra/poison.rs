//! Telling a page that always fails from a server that is unwell.
//!
//! One undecodable record can make the same page fail every time while everything else works. Asking for it again only
//! spends quota and moves the breaker; it must be asked for in a smaller way. So each call remembers how it failed, and
//! each endpoint remembers when it last answered well and how its last such page failed. Pure: times are arguments.

use std::time::Duration;

use tokio::time::Instant;

use super::envelope::InvalidBody;
use super::page::PageViolation;
use super::transport::TransportErrorKind;

/// So many equal failures in a row make a page suspicious.
const EQUAL_FAILURES: u32 = 3;
/// Timeouts are long: within the wall budget there is no room for three.
const EQUAL_TIMEOUTS: u32 = 2;
/// How long a page that was taken apart is remembered after its last trace.
const MEMORY: Duration = Duration::from_secs(10 * 60);
/// Halving a page of 2,000 down to one record takes eleven questions. If none of twelve is answered well, it is no
/// single record: an outage has begun, and the breaker must hear of it.
const KNOWN_IN_A_ROW: u32 = 12;

/// How an attempt failed, as far as a repeat would show the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    /// A status, and Sierra's code.
    Status(u16, Option<i64>),
    /// A body that is no page.
    Invalid(InvalidBody),
    /// A page that breaks the rules.
    Violation(PageViolation),
    /// No complete answer.
    Transport(TransportErrorKind),
}

impl Signature {
    /// Whether a single record can be the cause. A refused connection is nobody's page, and a server that answers
    /// another question does so for smaller pages too.
    fn can_be_a_page(self) -> bool {
        match self {
            Self::Status(..) | Self::Invalid(_) => true,
            Self::Violation(violation) => violation == PageViolation::NoNumbers,
            Self::Transport(kind) => {
                use TransportErrorKind::{Connect, Protocol, Untrusted};
                !matches!(kind, Connect | Untrusted | Protocol)
            }
        }
    }

    fn is_timeout(self) -> bool {
        self == Self::Transport(TransportErrorKind::Timeout)
    }
}

/// How one call has failed so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Failures {
    last: Option<(Signature, u32)>,
    first_at: Option<Instant>,
}

impl Failures {
    /// An attempt failed at `now`.
    pub(super) fn add(&mut self, signature: Signature, now: Instant) {
        self.first_at.get_or_insert(now);
        self.last = match self.last {
            Some((same, count)) if same == signature => Some((same, count + 1)),
            _ => Some((signature, 1)),
        };
    }

    /// How it fails every time, once it has done so often enough to be suspicious.
    pub(super) fn suspicion(&self) -> Option<Signature> {
        let (signature, count) = self.last?;
        let enough = if signature.is_timeout() { EQUAL_TIMEOUTS } else { EQUAL_FAILURES };
        if count >= enough && signature.can_be_a_page() { Some(signature) } else { None }
    }

    /// When the call first failed.
    pub(super) fn first_at(&self) -> Option<Instant> {
        self.first_at
    }
}

/// What an endpoint remembers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EndpointMemory {
    last_good: Option<Instant>,
    poison: Option<Poison>,
}

#[derive(Debug, Clone, Copy)]
struct Poison {
    signature: Signature,
    seen: Instant,
    in_a_row: u32,
}

impl EndpointMemory {
    /// A page, or "nothing", came.
    pub(super) fn answered(&mut self, now: Instant) {
        self.last_good = Some(now);
        if let Some(poison) = &mut self.poison {
            poison.in_a_row = 0;
        }
    }

    /// Whether the endpoint has answered well since the call began to fail.
    pub(super) fn answered_since(&self, failures: &Failures) -> bool {
        matches!((self.last_good, failures.first_at()), (Some(good), Some(first)) if good >= first)
    }

    /// A page was found that always fails with `signature`.
    pub(super) fn found(&mut self, signature: Signature, now: Instant) {
        self.poison = Some(Poison { signature, seen: now, in_a_row: 0 });
    }

    /// Whether a failure at `now` shows the page that is being taken apart: then asking once is enough, and the breaker
    /// need not hear of it.
    pub(super) fn is_known(&mut self, signature: Signature, now: Instant) -> bool {
        let Some(poison) = &mut self.poison else { return false };
        let is_old = now.saturating_duration_since(poison.seen) >= MEMORY;
        if is_old || poison.in_a_row >= KNOWN_IN_A_ROW {
            self.poison = None;
            return false;
        }
        if poison.signature != signature {
            return false;
        }
        poison.seen = now;
        poison.in_a_row += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: Signature = Signature::Status(500, Some(109));

    fn failing(signature: Signature, times: u32, now: Instant) -> Failures {
        let mut failures = Failures::default();
        (0..times).for_each(|_| failures.add(signature, now));
        failures
    }

    #[tokio::test(start_paused = true)]
    async fn three_equal_failures_in_a_row_are_suspicious() {
        let now = Instant::now();
        assert_eq!(failing(STATUS, 2, now).suspicion(), None);
        let mut failures = failing(STATUS, 3, now);
        assert_eq!(failures.suspicion(), Some(STATUS));
        failures.add(Signature::Status(500, None), now);
        assert_eq!(failures.suspicion(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn two_timeouts_are_suspicious_and_refused_connections_never() {
        let now = Instant::now();
        let timeout = Signature::Transport(TransportErrorKind::Timeout);
        assert_eq!(failing(timeout, 1, now).suspicion(), None);
        assert_eq!(failing(timeout, 2, now).suspicion(), Some(timeout));
        assert_eq!(failing(Signature::Transport(TransportErrorKind::Connect), 9, now).suspicion(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_answers_since_the_first_failure_count() {
        let start = Instant::now();
        let mut memory = EndpointMemory::default();
        memory.answered(start);
        let failures = failing(STATUS, 3, start + Duration::from_secs(1));
        assert!(!memory.answered_since(&failures));
        memory.answered(start + Duration::from_secs(2));
        assert!(memory.answered_since(&failures));
        assert!(!memory.answered_since(&Failures::default()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_taken_apart_is_known_again_for_a_while() {
        let start = Instant::now();
        let mut memory = EndpointMemory::default();
        assert!(!memory.is_known(STATUS, start));
        memory.found(STATUS, start);
        assert!(!memory.is_known(Signature::Status(503, None), start));
        assert!(memory.is_known(STATUS, start + Duration::from_secs(599)));
        assert!(memory.is_known(STATUS, start + Duration::from_secs(1198)), "every trace renews the memory");
        assert!(!memory.is_known(STATUS, start + Duration::from_secs(1198 + 600)));
    }

    /// An outage that looks like the poison must still reach the breaker.
    #[tokio::test(start_paused = true)]
    async fn without_a_good_answer_in_between_it_is_no_longer_one_page() {
        let now = Instant::now();
        let mut memory = EndpointMemory::default();
        memory.found(STATUS, now);
        for _ in 0..5 {
            assert!((0..KNOWN_IN_A_ROW).all(|_| memory.is_known(STATUS, now)));
            memory.answered(now);
        }
        assert!((0..KNOWN_IN_A_ROW).all(|_| memory.is_known(STATUS, now)));
        assert!(!memory.is_known(STATUS, now) && !memory.is_known(STATUS, now));
    }
}
