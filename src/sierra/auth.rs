//! Session tokens for everybody: one call for all who wait, early replacement, and the latch (A7, A8).
//!
//! The rules are in `token` and `latch`; this file makes the calls. A flight is one errand to the token endpoint. Whoever
//! needs a token while one is under way waits for it and shares its outcome, good or bad (BR-034). The flight belongs to
//! whoever holds its lock, so dropping that caller hands it to the next one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::error::AttemptError;
use super::exchange::Exchange;
use super::latch::{Admission, Fingerprint, Latch, LatchCause, LatchChange};
use super::log;
use super::oauth::{Credential, Granted};
use super::scrub::Scrubber;
use super::settings::SierraSettings;
use super::token::{AfterRefusal, Need, Token, TokenState};
use super::token_call::{TokenCall, Way};
use crate::clock::SharedClock;
use crate::resilience::line::Line;
use crate::resilience::quota::Patience;
use crate::resilience::retry::{Ended, Ending, Tally};
use crate::resilience::taxonomy::Decision;
use crate::secret::Secret;
use crate::sync::ports::Traffic;
use crate::sync::report::status::{TokenState as ShownState, TokenStatus};

/// A refused credential is presented once more after this pause before it counts as refused.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);
/// How many tokens are kept from being quoted: those of some hours.
const RECENT_TOKENS: usize = 8;

/// How a call that needed a token ended instead.
pub(super) type Refusal = Box<Ended<AttemptError>>;

/// The tokens of one API key.
pub(super) struct Auth {
    credential: Credential,
    fingerprint: Fingerprint,
    scrubber: Scrubber,
    clock: SharedClock,
    state: Mutex<State>,
    flight: tokio::sync::Mutex<()>,
    refresh_wanted: Notify,
}

struct State {
    tokens: TokenState,
    latch: Latch,
    /// Flights that have ended.
    flights: u64,
    /// How the last one ended, if it brought no token.
    last_failure: Option<Refusal>,
    /// What background refreshes cost: added to the next call that asks.
    unattributed: Traffic,
    /// The last tokens, the newest last: a server may echo one that was replaced meanwhile.
    recent: VecDeque<Secret>,
}

/// What a token is fetched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    /// A call waits for it.
    Call,
    /// The latch's hourly trial.
    Trial,
    /// To replace that generation ahead of time.
    Ahead(u64),
}

impl Auth {
    /// No token yet. `latch` is what an earlier process stored.
    pub(super) fn new(
        exchange: &Exchange,
        settings: &SierraSettings,
        clock: SharedClock,
        latch: &[u8],
    ) -> Option<Self> {
        let (key, secret) = (&settings.client_key, &settings.client_secret);
        let credential = Credential::new(exchange.base.join("token").to_string(), key, secret)?;
        let fingerprint = Fingerprint::of(exchange.base.as_str(), key, secret.expose());
        let scrubber = Scrubber::new([secret.clone(), credential.encoded(), Secret::new(key.clone())]);
        let latch = Latch::restore(latch, fingerprint, Instant::now(), clock.now());
        let state = State {
            tokens: TokenState::default(),
            latch,
            flights: 0,
            last_failure: None,
            unattributed: Traffic::default(),
            recent: VecDeque::new(),
        };
        Some(Self {
            credential,
            fingerprint,
            scrubber,
            clock,
            state: Mutex::new(state),
            flight: tokio::sync::Mutex::new(()),
            refresh_wanted: Notify::new(),
        })
    }

    /// A token to send: at once where one is good, else after a flight.
    ///
    /// # Errors
    /// How the flight ended, or that the latch is closed.
    pub(super) async fn token(
        &self,
        exchange: &Exchange,
        way: Way<'_>,
        traffic: &mut Traffic,
    ) -> Result<Token, Refusal> {
        let now = Instant::now();
        let errand = {
            let mut state = self.lock();
            match state.latch.admit(now) {
                Admission::Refused { cause, .. } => return Err(latched(cause)),
                Admission::Trial => {
                    state.tokens.forget();
                    Errand::Trial
                }
                Admission::Pass => match state.tokens.need(now) {
                    Need::Use(token) => return Ok(token),
                    Need::UseAndRefresh(token) => {
                        self.refresh_wanted.notify_one();
                        return Ok(token);
                    }
                    Need::Fetch => Errand::Call,
                },
            }
        };
        self.fetch(errand, exchange, way, traffic).await
    }

    /// Another token after `refused` got a 401: a newer one where there is one, else after a forced refresh, which
    /// every refused caller of that generation shares. `None` when new tokens are refused as well.
    ///
    /// # Errors
    /// How the flight ended.
    pub(super) async fn token_after(
        &self,
        refused: &Token,
        exchange: &Exchange,
        way: Way<'_>,
        traffic: &mut Traffic,
    ) -> Result<Option<Token>, Refusal> {
        let after = {
            let mut state = self.lock();
            if state.latch.may_refresh() {
                state.tokens.refused(refused.generation, Instant::now())
            } else {
                AfterRefusal::GiveUp
            }
        };
        match after {
            AfterRefusal::Newer(token) => Ok(Some(token)),
            AfterRefusal::GiveUp => Ok(None),
            AfterRefusal::Refresh => self.fetch(Errand::Call, exchange, way, traffic).await.map(Some),
        }
    }

    /// Whether `token` can still be sent.
    pub(super) fn is_good(&self, token: &Token) -> bool {
        let state = self.lock();
        !state.latch.is_closed() && state.tokens.is_good(token, Instant::now())
    }

    /// Sierra took `token`.
    pub(super) fn accepted(&self, token: &Token) {
        let change = {
            let mut state = self.lock();
            state.tokens.accepted(token.generation);
            state.latch.token_accepted()
        };
        tell(change);
    }

    /// A call ended in a second 401. Returns how it is to be reported when that closed the latch, or found it closed.
    pub(super) fn call_ended(&self) -> Option<AttemptError> {
        let (change, cause) = {
            let mut state = self.lock();
            let change = state.latch.call_ended(Instant::now(), self.clock.now());
            if state.latch.is_closed() {
                state.tokens.forget();
            }
            (change, state.latch.cause().filter(|_| state.latch.is_closed()))
        };
        tell(change);
        cause.map(|(cause, _)| AttemptError::Latched { cause })
    }

    /// Whether nothing is asked because the credential was refused.
    pub(super) fn is_latched(&self) -> bool {
        self.lock().latch.is_closed()
    }

    /// A person says that the credential is good.
    pub(super) fn lift(&self) {
        let change = self.lock().latch.lift();
        tell(change);
    }

    /// The next call fetches a new token.
    pub(super) fn forget(&self) {
        self.lock().tokens.forget();
    }

    /// Quotes Sierra's words without the credential and without any token it can know.
    pub(super) fn scrubber(&self) -> Scrubber {
        self.scrubber.and(self.lock().recent.iter().cloned())
    }

    /// What background refreshes have cost since this was last asked.
    pub(super) fn take_unattributed(&self) -> Traffic {
        std::mem::take(&mut self.lock().unattributed)
    }

    /// The latch as it is to be stored; empty when it is lifted.
    pub(super) fn latch_snapshot(&self) -> Vec<u8> {
        self.lock().latch.snapshot(self.fingerprint, Instant::now(), self.clock.now())
    }

    /// For `status`.
    pub(super) fn status(&self) -> TokenStatus {
        let now = Instant::now();
        let state = self.lock();
        let expires_at = state.tokens.expires_at(now);
        let is_fetching = state.tokens.is_refreshing() || self.flight.try_lock().is_err();
        let shown = match () {
            () if state.latch.cause().is_some() => ShownState::Latched,
            () if is_fetching => ShownState::Refreshing,
            () if expires_at.is_some() => ShownState::Ok,
            () => ShownState::None,
        };
        TokenStatus { state: shown, expires_at }
    }

    /// Replaces tokens ahead of their end for ever, whenever a caller has noticed that it is time.
    pub(super) async fn refresh_ahead(&self, exchange: &Exchange, line: &Line) -> Infallible {
        loop {
            self.refresh_wanted.notified().await;
            let Some(held) = self.lock().tokens.current(Instant::now()) else { continue };
            let mut traffic = Traffic::default();
            let way = Way::Line(line, Patience::default());
            let outcome = self.fetch(Errand::Ahead(held.generation), exchange, way, &mut traffic).await;
            let mut state = self.lock();
            state.unattributed += traffic;
            if let Err(ended) = outcome {
                state.tokens.background_failed(is_refused(&ended), Instant::now());
                log::token_refresh_failed(ended.status);
            }
        }
    }

    /// Flies, or shares the flight that is under way.
    async fn fetch(
        &self,
        errand: Errand,
        exchange: &Exchange,
        way: Way<'_>,
        traffic: &mut Traffic,
    ) -> Result<Token, Refusal> {
        let seen = self.lock().flights;
        let _turn = self.flight.lock().await;
        {
            let state = self.lock();
            if state.flights != seen
                && let Some(failure) = &state.last_failure
            {
                return Err(failure.clone());
            }
            let current = state.tokens.current(Instant::now());
            if let Some(token) = current.filter(|token| errand != Errand::Ahead(token.generation)) {
                return Ok(token);
            }
            if let Some((cause, _)) = state.latch.cause().filter(|_| state.latch.is_closed() && errand != Errand::Trial)
            {
                return Err(latched(cause));
            }
        }
        let outcome = self.ask(errand, exchange, way, traffic).await;
        let mut state = self.lock();
        state.flights += 1;
        state.last_failure = outcome.as_ref().err().cloned();
        outcome
    }

    /// One flight: a call, and for a refused credential one repeat.
    async fn ask(
        &self,
        errand: Errand,
        exchange: &Exchange,
        way: Way<'_>,
        traffic: &mut Traffic,
    ) -> Result<Token, Refusal> {
        let correlation_id = exchange.numbers.correlation_id();
        let mut is_repeat = false;
        loop {
            let mut call = TokenCall::new(&self.credential, self.scrubber(), exchange, &correlation_id);
            let outcome = way.make(&mut call).await;
            let quota_wait = outcome.as_ref().map_or_else(|ended| ended.tally, |success| success.tally).quota_waited;
            let repeats = if is_repeat { call.sends } else { call.sends.saturating_sub(1) };
            *traffic += Traffic { calls: call.sends, retries: repeats, quota_wait };
            let asked = call.asked;
            let ended = match outcome {
                Ok(success) => return Ok(self.take(success.value, asked, &correlation_id)),
                Err(ended) => ended,
            };
            let Some(status) = ended.status.filter(|_| is_refused(&ended)) else { return Err(wrapped(*ended)) };
            match errand {
                // The hour has its one call, and a token that works is left alone.
                _ if matches!(way, Way::Probe(_)) => return Err(wrapped(*ended)),
                Errand::Ahead(_) => return Err(wrapped(*ended)),
                Errand::Call if !is_repeat => {
                    is_repeat = true;
                    tokio::time::sleep(REPEAT_PAUSE).await;
                }
                Errand::Call | Errand::Trial => {
                    let (change, cause) = {
                        let mut state = self.lock();
                        let change = state.latch.credential_refused(status, Instant::now(), self.clock.now());
                        state.tokens.forget();
                        (change, state.latch.cause())
                    };
                    tell(change);
                    return Err(cause.map_or_else(|| wrapped(*ended), |(cause, _)| latched(cause)));
                }
            }
        }
    }

    fn take(&self, granted: Granted, asked: Instant, correlation_id: &str) -> Token {
        let life = granted.life;
        let date = self.clock.now().checked_sub(asked.elapsed()).unwrap_or_else(|_| self.clock.now());
        let (token, change) = {
            let mut state = self.lock();
            if state.recent.len() >= RECENT_TOKENS {
                state.recent.pop_front();
            }
            state.recent.push_back(granted.value.clone());
            let token = state.tokens.fetched(granted.value, life.duration, asked, date);
            (token, state.latch.token_fetched())
        };
        if life.is_assumed {
            log::token_life_assumed(life.duration, correlation_id);
        }
        log::token_fetched(token.generation, life.duration, correlation_id);
        tell(change);
        token
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every value behind it is whole between statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the token endpoint refused the credential.
fn is_refused(ended: &Ended<AttemptError>) -> bool {
    matches!(ended.ending, Ending::Permanent { .. }) && matches!(ended.status, Some(400 | 401 | 403))
}

fn wrapped(ended: Ended<AttemptError>) -> Refusal {
    Box::new(ended.map(|error| AttemptError::NoToken(Box::new(error))))
}

fn latched(cause: LatchCause) -> Refusal {
    Box::new(Ended {
        ending: Ending::Permanent { decision: Decision::Terminal },
        status: match cause {
            LatchCause::CredentialRefused { status } => Some(status),
            LatchCause::TokensRefused => Some(401),
        },
        error: Some(AttemptError::Latched { cause }),
        tally: Tally::default(),
    })
}

fn tell(change: LatchChange) {
    match change {
        LatchChange::None => {}
        LatchChange::Closed(cause) => log::latch_closed(cause),
        LatchChange::Lifted => log::latch_lifted(),
    }
}
