//! The retry loop of one call as a pure state machine: what to do after each attempt.
//!
//! Two budgets, whichever ends first (B2); refusals that say how long to wait are charged to neither. The first 401
//! is repeated at once with a new token and charged to nothing; the second is final (A8).

use std::time::Duration;

use rand::Rng;
use tokio::time::Instant;

use super::outcome::{Budget, Ending, ParkReason, Tally};
use crate::resilience::backoff::Backoff;
use crate::resilience::deadline::Deadline;
use crate::resilience::retry_tokens::{RetryPrice, RetryTokens};
use crate::resilience::settings::RetrySettings;
use crate::resilience::span::Span;
use crate::resilience::taxonomy::{Decision, Mark};

/// Refusals in a row after which a call is parked and counted as one failure of the other side.
const PATIENCE_WITH_REFUSALS: u32 = 5;

/// What came of an attempt that brought no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// What its answer was taken for.
    pub decision: Decision,
    /// Status of its answer.
    pub status: Option<u16>,
    /// The answer's `Retry-After`, as the server wrote it.
    pub retry_after: Option<Span>,
    /// A gate was closed for it: the refusal said usably how long to stay away.
    pub gated: bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Sleep so long, then send again.
    Sleep {
        /// Exactly this long.
        delay: Duration,
        /// What the jitter drew.
        computed_jitter: Option<Duration>,
        /// The server's wait replaced the jitter.
        honored_retry_after: bool,
    },
    /// Wait behind the gate, then send again.
    AwaitQuota,
    /// Get a new token, then send again at once.
    Reauthenticate,
    /// Stop.
    End {
        /// How.
        ending: Ending,
        /// What the jitter drew before it turned out to reach past the budget.
        computed_jitter: Option<Duration>,
    },
}

/// The state of one call.
#[derive(Debug, Clone)]
pub struct RetryMachine {
    settings: RetrySettings,
    backoff: Backoff,
    deadline: Deadline,
    sends: u32,
    attempts: u32,
    refusals_in_row: u32,
    previous: Option<Duration>,
    slept: Duration,
    quota_waited: Duration,
    has_reauthenticated: bool,
    has_repeated_at_once: bool,
    tokens_paid: u32,
}

impl RetryMachine {
    /// A call that begins at `now`; `None` if the settings contradict themselves.
    #[must_use]
    pub fn starting(settings: RetrySettings, now: Instant) -> Option<Self> {
        let backoff = settings.backoff()?;
        Some(Self {
            settings,
            backoff,
            deadline: Deadline::starting(now, settings.total_budget),
            sends: 0,
            attempts: 0,
            refusals_in_row: 0,
            previous: None,
            slept: Duration::ZERO,
            quota_waited: Duration::ZERO,
            has_reauthenticated: false,
            has_repeated_at_once: false,
            tokens_paid: 0,
        })
    }

    /// An attempt goes out. Returns its number, counted from 1, and the time it may take: never past the budget.
    pub fn sending(&mut self, now: Instant) -> (u32, Duration) {
        self.sends += 1;
        (self.sends, self.settings.attempt_timeout.min(self.deadline.left(now)))
    }

    /// Time went by that is not the call's own: waiting for quota, or for a token.
    pub fn excuse(&mut self, waited: Duration, for_quota: bool) {
        self.deadline.excuse(waited);
        if for_quota {
            self.quota_waited += waited;
        }
    }

    /// Whether time is left for an attempt.
    #[must_use]
    pub fn has_time(&self, now: Instant) -> bool {
        !self.deadline.left(now).is_zero()
    }

    /// The call succeeded: its tokens go back.
    pub fn succeeded(&mut self, tokens: &mut RetryTokens) {
        tokens.refund(self.tokens_paid);
        self.tokens_paid = 0;
    }

    /// What an attempt that failed so says about the other side. A throttle counts only once it has gone on and on.
    #[must_use]
    pub fn mark(&self, failed: &Failed) -> Mark {
        match failed.decision {
            Decision::Throttled | Decision::Refused(_) if self.refusals_in_row + 1 >= PATIENCE_WITH_REFUSALS => {
                Mark::Failed
            }
            Decision::Unauthorised if self.has_reauthenticated => Mark::Healthy,
            decision => decision.mark_under(failed.status),
        }
    }

    /// What to do after an attempt that failed.
    pub fn failed(&mut self, failed: &Failed, tokens: &mut RetryTokens, now: Instant, rng: &mut impl Rng) -> Step {
        let is_refusal = matches!(failed.decision, Decision::Throttled | Decision::Refused(_));
        self.refusals_in_row = if is_refusal { self.refusals_in_row + 1 } else { 0 };
        match failed.decision {
            Decision::Unauthorised if !self.has_reauthenticated => {
                self.has_reauthenticated = true;
                Step::Reauthenticate
            }
            Decision::Throttled | Decision::Refused(_) if self.refusals_in_row >= PATIENCE_WITH_REFUSALS => {
                let resume_at = now + self.backoff.cap();
                end(Ending::Parked { reason: ParkReason::Throttled, resume_at })
            }
            Decision::Throttled | Decision::Refused(_) if failed.gated => Step::AwaitQuota,
            Decision::Throttled | Decision::Refused(_) => self.back_off(RetryPrice::Throttle, None, tokens, now, rng),
            Decision::EmptyReply if !self.has_repeated_at_once => {
                self.has_repeated_at_once = true;
                self.repeat_at_once(tokens)
            }
            Decision::Transient | Decision::EmptyReply => {
                self.back_off(RetryPrice::Transient, failed.retry_after, tokens, now, rng)
            }
            Decision::Unauthorised
            | Decision::Nothing
            | Decision::NarrowRange
            | Decision::Declared
            | Decision::Terminal
            | Decision::TerminalUnknown
            | Decision::Waived => end(Ending::Permanent { decision: failed.decision }),
        }
    }

    /// What the call took so far.
    #[must_use]
    pub fn tally(&self, now: Instant) -> Tally {
        Tally {
            sends: self.sends,
            attempts: self.attempts,
            elapsed: self.deadline.elapsed(now),
            quota_waited: self.quota_waited,
        }
    }

    fn repeat_at_once(&mut self, tokens: &mut RetryTokens) -> Step {
        match self.charge(RetryPrice::Transient, tokens) {
            Err(budget) => end(Ending::BudgetExhausted { budget }),
            Ok(()) => Step::Sleep { delay: Duration::ZERO, computed_jitter: None, honored_retry_after: false },
        }
    }

    fn back_off(
        &mut self,
        price: RetryPrice,
        retry_after: Option<Span>,
        tokens: &mut RetryTokens,
        now: Instant,
        rng: &mut impl Rng,
    ) -> Step {
        let failed_before = self.attempts;
        let left = self.deadline.left(now);
        // The server's own words are compared with the budget before they are cut to the cap.
        let asked = retry_after.map(|span| span.nominal).filter(|wait| !wait.is_zero());
        if let Some(asked) = asked.filter(|asked| *asked > left) {
            let resume_at = now + asked.min(self.settings.retry_after_cap);
            self.attempts += 1;
            return end(Ending::Parked { reason: ParkReason::RetryAfter, resume_at });
        }
        if let Err(budget) = self.charge(price, tokens) {
            return end(Ending::BudgetExhausted { budget });
        }
        let drawn = in_whole_milliseconds(self.backoff.delay(failed_before, self.previous, rng));
        let delay = match asked {
            // A stated wait is rounded up: we do not come early.
            Some(asked) => {
                in_whole_milliseconds(asked.min(self.settings.retry_after_cap) + Duration::from_nanos(999_999))
            }
            None => self.not_too_lucky(drawn),
        };
        if delay > left {
            let ending = Ending::BudgetExhausted { budget: Budget::WallClock };
            return Step::End { ending, computed_jitter: Some(drawn) };
        }
        self.previous = Some(delay);
        self.slept += delay;
        Step::Sleep { delay, computed_jitter: Some(drawn), honored_retry_after: asked.is_some() }
    }

    /// Full jitter may draw near nothing again and again, and burn all attempts within moments (BR-104). The last
    /// wait makes up for that: all waits of a call together are at least the base.
    fn not_too_lucky(&self, drawn: Duration) -> Duration {
        let is_last = self.attempts + 1 >= self.settings.max_attempts;
        if is_last { drawn.max(self.backoff.base().saturating_sub(self.slept)) } else { drawn }
    }

    /// Charges the attempt that failed, and asks whether another may follow.
    fn charge(&mut self, price: RetryPrice, tokens: &mut RetryTokens) -> Result<(), Budget> {
        self.attempts += 1;
        if self.attempts >= self.settings.max_attempts {
            return Err(Budget::Attempts);
        }
        self.tokens_paid += tokens.try_withdraw(price).ok_or(Budget::RetryTokens)?;
        Ok(())
    }
}

/// Timers keep whole milliseconds: what is logged is to be what is slept.
fn in_whole_milliseconds(wait: Duration) -> Duration {
    Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

fn end(ending: Ending) -> Step {
    Step::End { ending, computed_jitter: None }
}
