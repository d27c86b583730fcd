//! What every call to the API needs beside its own question: a token in hand, and an account of what it cost.

use std::sync::Arc;

use super::auth::{Auth, Refusal};
use super::error::{AttemptError, Fault};
use super::exchange::{Exchange, Manner, Received};
use super::token::Token;
use super::token_call::Way;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::retry::{Answer, Attempt, Ended, Ending, Failure, Tally};
use crate::resilience::taxonomy::Decision;
use crate::sync::ports::Traffic;

/// One call's session.
pub(super) struct Session<'a> {
    pub(super) auth: &'a Auth,
    pub(super) exchange: &'a Exchange,
    pub(super) endpoint: Endpoint,
    pub(super) correlation_id: Arc<str>,
    way: Way<'a>,
    token: Option<Token>,
    /// Token calls of this call; its own sends are counted apart.
    token_traffic: Traffic,
    sends: u32,
    last_error: Option<AttemptError>,
}

impl<'a> Session<'a> {
    /// A session without a token yet.
    pub(super) fn new(auth: &'a Auth, exchange: &'a Exchange, endpoint: Endpoint, way: Way<'a>) -> Self {
        let correlation_id = Arc::from(exchange.numbers.correlation_id());
        let token_traffic = Traffic::default();
        Self { auth, exchange, endpoint, correlation_id, way, token: None, token_traffic, sends: 0, last_error: None }
    }

    /// Gets a token in hand; with `renew` another one than the one that was refused.
    ///
    /// # Errors
    /// How that ended instead; after new tokens were refused too, as a 401.
    pub(super) async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        let refused = self.token.take().filter(|_| renew);
        let (auth, exchange, way, traffic) = (self.auth, self.exchange, self.way, &mut self.token_traffic);
        let token = match &refused {
            None => Some(auth.token(exchange, way, traffic).await?),
            Some(refused) => auth.token_after(refused, exchange, way, traffic).await?,
        };
        if token.is_none() {
            return Err(Box::new(Ended {
                ending: Ending::Permanent { decision: Decision::Unauthorised },
                status: Some(401),
                error: self.last_error.take(),
                tally: Tally { sends: self.sends, ..Tally::default() },
            }));
        }
        self.token = token;
        Ok(())
    }

    /// Whether the token in hand can still be sent.
    pub(super) fn is_prepared(&self) -> bool {
        self.token.as_ref().is_some_and(|token| self.auth.is_good(token))
    }

    /// Asks for `path` once.
    pub(super) async fn get(&mut self, path: &str, manner: Manner<'_>) -> Received {
        self.sends += 1;
        let request = self.exchange.get(path, self.token.as_ref());
        self.exchange.send(request, manner).await
    }

    /// Sends a request of any kind for `path` once.
    pub(super) async fn send(
        &mut self,
        method: http::Method,
        path: &str,
        accept: &'static str,
        manner: Manner<'_>,
    ) -> Received {
        self.sends += 1;
        let request = self.exchange.request(method, path, accept, self.token.as_ref());
        self.exchange.send(request, manner).await
    }

    /// The answer held a value: Sierra took the token.
    pub(super) fn good<T>(&self, received: &Received, manner: Manner<'_>, value: T) -> Answer<T, AttemptError> {
        self.accepted();
        received.judged(manner, Ok(value))
    }

    /// The answer held none.
    pub(super) fn bad<T>(
        &mut self,
        received: &Received,
        manner: Manner<'_>,
        fault: Fault,
        decision: Decision,
    ) -> Answer<T, AttemptError> {
        // Refusing the question in its own words, Sierra has taken the token.
        if matches!(fault, Fault::Refused { status: 400 | 403 | 404 | 409, error: Some(_) }) {
            self.accepted();
        }
        let scrubber = self.auth.scrubber();
        let may_quote = self.endpoint != Endpoint::Patrons;
        let error = fault.into_error(may_quote.then_some(&scrubber));
        self.last_error = Some(error.clone());
        received.judged(manner, Err(Failure { decision, error }))
    }

    /// How to make an attempt; a repeat uses another connection, so that another back-end may answer.
    pub(super) fn manner<'m>(&self, attempt: Attempt, fresh_connection: bool, correlation_id: &'m str) -> Manner<'m> {
        Manner {
            endpoint: self.endpoint,
            attempt: attempt.number,
            timeout: attempt.timeout,
            fresh_connection: fresh_connection || attempt.number > 1,
            correlation_id,
        }
    }

    /// What the call cost, `tally` being the loop's account of it.
    pub(super) fn traffic(&self, tally: Tally) -> Traffic {
        let mut traffic = self.token_traffic;
        traffic += Traffic { calls: self.sends, retries: self.sends.saturating_sub(1), quota_wait: tally.quota_waited };
        traffic
    }

    fn accepted(&self) {
        if let Some(token) = &self.token {
            self.auth.accepted(token);
        }
    }
}
