//! Everything that the calls of one API key (or the deliveries to one sink) share, and the loop that drives a call
//! through it: wall budget → retry → breaker → quota permit → time-out → one attempt.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::time::{Instant, sleep, timeout};

use super::breaker::{Breaker, BreakerPermit, Rejection, Scope};
use super::endpoint::Endpoint;
use super::quota::{Patience, Quota, QuotaPermit, Quoted, Waiter};
use super::rate_headers::RateFacts;
use super::recovery::{Recovery, RecoveryProgress};
use super::retry::{
    Answer, Attempt, Budget, Call, CallContext, Ended, Ending, Failed, Failure, Outcome, ParkReason, RetryEvent,
    RetryEventKind, RetryMachine, RetryObserver, Step, Success,
};
use super::retry_tokens::RetryTokens;
use super::settings::{RetrySettings, SettingsProblem, Severity};
use super::spike::ErrorSpike;
use super::taxonomy::{Decision, Mark};

/// Just after a recovery calls go a few at a time; a call that has not got its turn by then ends like one that met
/// an open breaker.
const LONGEST_TURN: Duration = Duration::from_secs(60);
/// Preparations that turned out stale after a wait are repeated this often before the attempt goes out regardless.
const PREPARATIONS: u32 = 3;

/// The shared parts of one API key or one sink. Cheap to clone.
#[derive(Clone)]
pub struct Line {
    shared: Arc<Shared>,
}

struct Shared {
    breaker: Breaker,
    quota: Option<Quota>,
    state: Mutex<State>,
}

struct State {
    settings: RetrySettings,
    tokens: RetryTokens,
    recovery: Recovery,
    spike: ErrorSpike,
    rng: StdRng,
}

impl Line {
    /// A line to Sierra with its quota, or to a sink without one. `rng` comes from the root seed.
    ///
    /// # Errors
    /// Everything that is wrong with the settings.
    pub fn new(
        settings: RetrySettings,
        breaker: Breaker,
        quota: Option<Quota>,
        rng: StdRng,
    ) -> Result<Self, Vec<SettingsProblem>> {
        refuse_problems(&settings)?;
        let (tokens, mut recovery, spike) = (RetryTokens::default(), Recovery::default(), ErrorSpike::default());
        // An earlier process was still re-engaging when it ended.
        if quota.as_ref().is_some_and(Quota::is_cautious) {
            recovery.engage();
        }
        let state = State { settings, tokens, recovery, spike, rng };
        Ok(Self { shared: Arc::new(Shared { breaker, quota, state: Mutex::new(state) }) })
    }

    /// The breaker of this line.
    #[must_use]
    pub fn breaker(&self) -> &Breaker {
        &self.shared.breaker
    }

    /// The quota of this line, if it has one.
    #[must_use]
    pub fn quota(&self) -> Option<&Quota> {
        self.shared.quota.as_ref()
    }

    /// New retry settings for calls that begin from now on.
    ///
    /// # Errors
    /// Everything that is wrong with them; the old ones stay.
    pub fn set_settings(&self, settings: RetrySettings) -> Result<(), Vec<SettingsProblem>> {
        refuse_problems(&settings)?;
        self.lock().settings = settings;
        Ok(())
    }

    /// Re-engages after a stall (A18): forgets the server's limits, closes every circuit, and goes slower and one call
    /// at a time until the quota holds. The caller drains first and forces a new token after.
    pub fn recover(&self) {
        self.lock().recovery.engage();
        if let Some(quota) = &self.shared.quota {
            quota.forget();
            quota.set_cautious(true);
        }
        self.shared.breaker.reset();
    }

    /// Whether the line is re-engaging after a stall.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.lock().recovery.is_engaged()
    }

    /// How far the re-engagement after a stall is, or how it ended; `None` when there was none.
    #[must_use]
    pub fn recovery_progress(&self) -> Option<RecoveryProgress> {
        self.lock().recovery.progress()
    }

    /// Makes a call: attempts, waits and repeats within its budgets, and tells `observer` of every step. Dropping the
    /// future cancels the attempt, frees every slot it holds, and counts as neutral.
    ///
    /// # Errors
    /// How the call ended instead; see [`Ending`].
    pub async fn call<C: Call>(
        &self,
        context: &CallContext,
        call: &mut C,
        observer: &dyn RetryObserver,
    ) -> Outcome<C::Value, C::Error> {
        let settings = {
            let state = self.lock();
            state.recovery.apply(state.settings)
        };
        let machine = RetryMachine::starting(settings, Instant::now())
            .expect("the settings were checked when they were taken, and recovery keeps the cap above the base");
        Drive {
            line: self,
            context,
            observer,
            machine,
            waiter: context.endpoint.map(|endpoint| Waiter::new(endpoint, context.class)),
            patience: context.patience,
            last: None,
        }
        .run(call)
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every value behind it is whole between statements.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer came: whatever it was, it may end the re-engagement after a stall.
    fn note_answer(&self, status: Option<u16>, facts: &RateFacts) {
        let ended = self.lock().recovery.on_answer(facts.limit, facts.remaining, status == Some(429));
        let Some(progress) = ended else { return };
        if let Some(quota) = &self.shared.quota {
            quota.set_cautious(false);
        }
        let RecoveryProgress { answers, refusals, limit, remaining, .. } = progress;
        tracing::info!(
            event = "recovery_ended",
            answers,
            refusals,
            limit,
            rate_limit_remaining = remaining,
            "the quota holds: back to the configured pace"
        );
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Line").finish_non_exhaustive()
    }
}

fn refuse_problems(settings: &RetrySettings) -> Result<(), Vec<SettingsProblem>> {
    let problems: Vec<_> =
        settings.problems().into_iter().filter(|problem| problem.severity == Severity::Refused).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// What the last answer said.
struct Last<E> {
    status: Option<u16>,
    remaining: Option<u32>,
    error: E,
}

/// One call on its way.
struct Drive<'a, E> {
    line: &'a Line,
    context: &'a CallContext,
    observer: &'a dyn RetryObserver,
    machine: RetryMachine,
    waiter: Option<Waiter>,
    patience: Patience,
    last: Option<Last<E>>,
}

/// What stands in the way of one attempt is gone.
struct Ready {
    breaker: BreakerPermit,
    quota: Option<QuotaPermit>,
}

impl<E: Send> Drive<'_, E> {
    async fn run<C: Call<Error = E>>(mut self, call: &mut C) -> Outcome<C::Value, E> {
        let mut renew = false;
        loop {
            let ready = self.make_ready(call, renew).await?;
            renew = false;
            if !self.machine.has_time(Instant::now()) {
                if let Some(permit) = ready.quota {
                    permit.give_back();
                }
                return Err(self.end(Ending::BudgetExhausted { budget: Budget::WallClock }, None));
            }
            let (number, time) = self.machine.sending(Instant::now());
            let attempt = Attempt { number, trial: ready.breaker.is_trial(), timeout: time };
            let answer = match timeout(time, call.send(attempt)).await {
                Ok(answer) => answer,
                Err(_) => Answer {
                    status: None,
                    facts: RateFacts::default(),
                    result: Err(Failure { decision: Decision::Transient, error: call.overdue(attempt) }),
                },
            };
            self.line.note_answer(answer.status, &answer.facts);
            let (decision, error) = match answer.result {
                Ok(value) => return Ok(self.succeed(value, ready, answer.status, &answer.facts)),
                Err(failure) => (self.as_meant(failure.decision), failure.error),
            };
            let gated = ready.quota.and_then(|permit| permit.answered(&answer.facts, quoted(decision))).is_some();
            let failed = Failed { decision, status: answer.status, retry_after: answer.facts.retry_after, gated };
            ready.breaker.report(self.machine.mark(&failed), &self.context.correlation_id);
            self.last = Some(Last { status: answer.status, remaining: answer.facts.remaining, error });
            match self.next_step(&failed) {
                Step::Reauthenticate => {
                    self.tell(RetryEventKind::Reauthenticating, Duration::ZERO, None, false);
                    renew = true;
                }
                Step::AwaitQuota => self.await_quota().await?,
                Step::Sleep { delay, computed_jitter, honored_retry_after } => {
                    if let Some(rejection) = self.line.breaker().rejects(self.context.endpoint) {
                        return Err(self.end(Ending::CircuitOpen { rejection }, None));
                    }
                    self.tell(RetryEventKind::Scheduled, delay, computed_jitter, honored_retry_after);
                    sleep(delay).await;
                }
                Step::End { ending, computed_jitter } => {
                    let ending = self.not_before_the_gate(ending);
                    return Err(self.end(ending, computed_jitter));
                }
            }
        }
    }

    /// Prepares the attempt, passes the breaker and takes quota. What is prepared is looked at again after a wait, and
    /// a breaker that opened meanwhile is noticed.
    async fn make_ready<C: Call<Error = E>>(&mut self, call: &mut C, mut renew: bool) -> Result<Ready, Box<Ended<E>>> {
        let mut preparations = 0;
        loop {
            let began = Instant::now();
            // Before the breaker, since a token call must get its own turn there; an open breaker ends it as well.
            if let Err(mut ended) = call.prepare(renew).await {
                ended.tally = self.machine.tally(Instant::now());
                return Err(ended);
            }
            renew = false;
            preparations += 1;
            self.machine.excuse(began.elapsed(), false);

            let began = Instant::now();
            let admitted = timeout(LONGEST_TURN, self.line.breaker().admit(self.context.endpoint)).await;
            let no_turn = Rejection { scope: Scope::Key, retry_at: Some(Instant::now()) };
            let breaker = match admitted.unwrap_or(Err(no_turn)) {
                Ok(permit) => permit,
                Err(rejection) => return Err(self.end(Ending::CircuitOpen { rejection }, None)),
            };
            self.machine.excuse(began.elapsed(), false);

            let began = Instant::now();
            let quota = match (&self.line.shared.quota, &mut self.waiter) {
                (Some(quota), Some(waiter)) => match quota.acquire(waiter, &mut self.patience).await {
                    Ok(permit) => Some(permit),
                    Err(wait) => {
                        let ending = Ending::Parked { reason: ParkReason::Quota, resume_at: wait.resume_at };
                        return Err(self.end(ending, None));
                    }
                },
                _ => None,
            };
            let for_quota = quota.as_ref().map_or(Duration::ZERO, QuotaPermit::waited_for_quota);
            self.machine.excuse(for_quota, true);
            self.machine.excuse(began.elapsed().saturating_sub(for_quota), false);

            let stale = !call.is_prepared() && preparations < PREPARATIONS;
            if breaker.is_current() && !stale {
                return Ok(Ready { breaker, quota });
            }
            if let Some(permit) = quota {
                permit.give_back();
            }
        }
    }

    /// Waits behind the gate that a refusal has just closed, or parks the call.
    async fn await_quota(&mut self) -> Result<(), Box<Ended<E>>> {
        let (Some(quota), Some(waiter)) = (&self.line.shared.quota, &mut self.waiter) else { return Ok(()) };
        let planned = quota.planned(waiter);
        let wait = planned.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        // Timers keep whole milliseconds; what is logged is what is slept.
        let delay = Duration::from_millis(u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
        if !self.patience.bears(delay) {
            let resume_at = planned.unwrap_or_else(Instant::now);
            return Err(self.end(Ending::Parked { reason: ParkReason::Quota, resume_at }, None));
        }
        quota.note_waited(delay);
        self.tell(RetryEventKind::WaitingForQuota, delay, None, false);
        sleep(delay).await;
        self.patience.spend(delay);
        self.machine.excuse(delay, true);
        Ok(())
    }

    /// Parked work is not taken up while a gate that it would meet is still closed.
    fn not_before_the_gate(&mut self, ending: Ending) -> Ending {
        let (Some(quota), Some(waiter)) = (&self.line.shared.quota, &mut self.waiter) else { return ending };
        match (ending, quota.planned(waiter)) {
            (Ending::Parked { reason, resume_at }, Some(opens_at)) => {
                Ending::Parked { reason, resume_at: resume_at.max(opens_at) }
            }
            _ => ending,
        }
    }

    fn next_step(&mut self, failed: &Failed) -> Step {
        let mut guard = self.line.lock();
        let State { tokens, rng, .. } = &mut *guard;
        self.machine.failed(failed, tokens, Instant::now(), rng)
    }

    fn succeed<T>(&mut self, value: T, ready: Ready, status: Option<u16>, facts: &RateFacts) -> Success<T> {
        if let Some(permit) = ready.quota {
            permit.answered(facts, Quoted::Served);
        }
        ready.breaker.report(Mark::Healthy, &self.context.correlation_id);
        self.machine.succeeded(&mut self.line.lock().tokens);
        let tally = self.machine.tally(Instant::now());
        if tally.sends > 1 {
            self.emit(RetryEvent {
                status_code: status,
                rate_limit_remaining: facts.remaining,
                ..self.event(RetryEventKind::Succeeded)
            });
        }
        Success { value, tally }
    }

    fn end(&mut self, ending: Ending, computed_jitter: Option<Duration>) -> Box<Ended<E>> {
        let kind = match ending {
            Ending::Permanent { .. } => RetryEventKind::AbandonedTerminal,
            Ending::BudgetExhausted { budget } => RetryEventKind::BudgetExhausted(budget),
            Ending::CircuitOpen { .. } => RetryEventKind::CircuitOpen,
            Ending::Parked { reason, .. } => RetryEventKind::Parked(reason),
        };
        self.tell(kind, Duration::ZERO, computed_jitter, false);
        if matches!(ending, Ending::Permanent { decision } if decision.is_unexpected()) {
            let spike = self.line.lock().spike.on_permanent_error(Instant::now());
            if let Some(errors) = spike {
                self.tell(RetryEventKind::ErrorSpike { errors }, Duration::ZERO, None, false);
            }
        }
        let tally = self.machine.tally(Instant::now());
        let (status, error) = self.last.take().map_or((None, None), |last| (last.status, Some(last.error)));
        Box::new(Ended { ending, status, error, tally })
    }

    /// A 401 to the token call itself is the credential's, and no new token can help.
    fn as_meant(&self, decision: Decision) -> Decision {
        match (decision, self.context.endpoint) {
            (Decision::Unauthorised, Some(Endpoint::Token)) => Decision::Terminal,
            _ => decision,
        }
    }

    fn tell(&self, kind: RetryEventKind, delay: Duration, computed_jitter: Option<Duration>, honored: bool) {
        self.emit(RetryEvent { delay, computed_jitter, honored_retry_after: honored, ..self.event(kind) });
    }

    fn event(&self, kind: RetryEventKind) -> RetryEvent<'_> {
        let tally = self.machine.tally(Instant::now());
        RetryEvent {
            kind,
            endpoint: &self.context.label,
            status_code: self.last.as_ref().and_then(|last| last.status),
            attempt: tally.sends,
            delay: Duration::ZERO,
            computed_jitter: None,
            honored_retry_after: false,
            elapsed: tally.elapsed,
            rate_limit_remaining: self.last.as_ref().and_then(|last| last.remaining),
            correlation_id: &self.context.correlation_id,
        }
    }

    fn emit(&self, event: RetryEvent<'_>) {
        self.observer.on_retry_event(&event);
    }
}

fn quoted(decision: Decision) -> Quoted {
    match decision {
        Decision::Throttled => Quoted::Throttled,
        Decision::Refused(wait) => Quoted::Refused(wait),
        _ => Quoted::Served,
    }
}
