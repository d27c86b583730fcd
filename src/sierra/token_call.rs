//! One call of the token endpoint, as the retry loop or a health check drives it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::answer::invalid;
use super::api_error::ApiError;
use super::auth::Refusal;
use super::envelope::InvalidBody;
use super::error::{AttemptError, Fault};
use super::exchange::{Exchange, Manner};
use super::log::RetryLog;
use super::oauth::{Credential, Granted};
use super::scrub::Scrubber;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::health::ProbePass;
use crate::resilience::line::Line;
use crate::resilience::quota::{Class, Patience};
use crate::resilience::retry::{
    Answer, Attempt, Call, CallContext, Ended, Ending, Failure, Outcome, ParkReason, Success, Tally,
};
use crate::resilience::taxonomy::Decision;

/// A token call of a health check takes no longer; the check as a whole has ten seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a token call reaches Sierra.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// Through every layer.
    Line(&'a Line, Patience),
    /// Once, past an open breaker, as part of a health check.
    Probe(&'a ProbePass<'a>),
}

impl Way<'_> {
    pub(super) async fn make(self, call: &mut TokenCall<'_>) -> Outcome<Granted, AttemptError> {
        match self {
            Self::Line(line, patience) => {
                let id = call.correlation_id.into();
                let context = CallContext { patience, ..CallContext::sierra(Endpoint::Token, Class::Incremental, id) };
                line.call(&context, call, &RetryLog).await
            }
            Self::Probe(pass) => {
                let began = Instant::now();
                let attempt = Attempt { number: 1, trial: false, timeout: PROBE_TIMEOUT };
                let answer = pass.send(Endpoint::Token, call.send(attempt)).await;
                let tally = Tally { sends: call.sends, elapsed: began.elapsed(), ..Tally::default() };
                match answer {
                    None => Err(not_now(tally)),
                    Some(Answer { result: Ok(value), .. }) => Ok(Success { value, tally }),
                    Some(Answer { status, result: Err(Failure { decision, error }), .. }) => Err(Box::new(Ended {
                        ending: Ending::Permanent { decision },
                        status,
                        error: Some(error),
                        tally,
                    })),
                }
            }
        }
    }
}

/// One call of the token endpoint.
pub(super) struct TokenCall<'a> {
    credential: &'a Credential,
    scrubber: Scrubber,
    exchange: &'a Exchange,
    correlation_id: &'a str,
    /// When the last attempt was made: a token's life is counted from there.
    pub(super) asked: Instant,
    /// Attempts made.
    pub(super) sends: u32,
}

impl<'a> TokenCall<'a> {
    pub(super) fn new(
        credential: &'a Credential,
        scrubber: Scrubber,
        exchange: &'a Exchange,
        correlation_id: &'a str,
    ) -> Self {
        Self { credential, scrubber, exchange, correlation_id, asked: Instant::now(), sends: 0 }
    }
}

impl Call for TokenCall<'_> {
    type Value = Granted;
    type Error = AttemptError;

    async fn send(&mut self, attempt: Attempt) -> Answer<Granted, AttemptError> {
        self.sends += 1;
        self.asked = Instant::now();
        let manner = Manner {
            endpoint: Endpoint::Token,
            attempt: attempt.number,
            timeout: attempt.timeout,
            fresh_connection: attempt.number > 1,
            correlation_id: self.correlation_id,
        };
        let received = self.exchange.send(self.credential.question(), manner).await;
        let fault = match &received.result {
            Err(error) => Fault::Transport(error.clone()),
            Ok(answer) => match self.credential.read(answer) {
                Some(granted) => return received.judged(manner, Ok(granted)),
                None => no_token(answer),
            },
        };
        // No new token can help a credential that is refused one.
        let decision = match received.decision(&fault) {
            Decision::Unauthorised | Decision::Nothing => Decision::Terminal,
            // There is no smaller question to put.
            Decision::NarrowRange => Decision::Transient,
            decision => decision,
        };
        let error = fault.into_error(Some(&self.scrubber));
        received.judged(manner, Err(Failure { decision, error }))
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        AttemptError::Transport("timed out".to_owned())
    }
}

fn no_token(answer: &http::Response<Bytes>) -> Fault {
    let (status, body) = (answer.status(), answer.body());
    if !status.is_success() {
        return Fault::Refused { status: status.as_u16(), error: ApiError::read(body) };
    }
    let reason = match () {
        () if body.iter().all(u8::is_ascii_whitespace) => InvalidBody::Empty,
        () if ApiError::read(body).is_some() => InvalidBody::ErrorObject,
        () => InvalidBody::NoToken,
    };
    invalid(status, reason, body)
}

fn not_now(tally: Tally) -> Refusal {
    let ending = Ending::Parked { reason: ParkReason::Quota, resume_at: Instant::now() };
    Box::new(Ended { ending, status: None, error: None, tally })
}
