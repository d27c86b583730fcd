//! The health check of an open breaker: one question, past the breaker and within the quota (B7).

use std::sync::Arc;
use std::time::Duration;

use super::answer::{read_list, read_sign_of_life};
use super::auth::{Auth, Refusal};
use super::error::AttemptError;
use super::exchange::Exchange;
use super::pulse;
use super::query;
use super::session::Session;
use super::token_call::Way;
use crate::record::Stream;
use crate::resilience::breaker::ProbeTarget;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::health::{HealthCheck, ProbePass, mark_of};
use crate::resilience::retry::{Answer, Attempt, Ending};
use crate::resilience::taxonomy::{Decision, Mark};

/// Well within the ten seconds that a check has with its token call.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Checks Sierra.
pub(super) struct SierraCheck<'a> {
    pub(super) auth: &'a Auth,
    pub(super) exchange: &'a Exchange,
}

impl HealthCheck for SierraCheck<'_> {
    async fn check(&mut self, target: ProbeTarget, pass: &ProbePass<'_>) -> Mark {
        let stream = match target {
            ProbeTarget::Health => None,
            ProbeTarget::Endpoint(endpoint) => stream_of(endpoint),
        };
        let endpoint = stream.map_or(Endpoint::TokenInfo, endpoint_of);
        let mut session = Session::new(self.auth, self.exchange, endpoint, Way::Probe(pass));
        // While the latch is closed no token is to be had. Sierra's refusal of a question without one shows it alive.
        if !self.auth.is_latched()
            && let Err(ended) = session.prepare(false).await
        {
            return mark_of_refusal(&ended);
        }
        let Some(answer) = pass.send(endpoint, ask(&mut session, stream, 1)).await else { return Mark::Neutral };
        if !is_unauthorised(&answer) {
            return mark_of(&answer);
        }
        match session.prepare(true).await {
            Ok(()) => match pass.send(endpoint, ask(&mut session, stream, 2)).await {
                None => Mark::Neutral,
                // A fresh token is refused: a matter of the key, not of Sierra's health (BR-110).
                Some(answer) if is_unauthorised(&answer) => Mark::Healthy,
                Some(answer) => mark_of(&answer),
            },
            Err(ended) => mark_of_refusal(&ended),
        }
    }
}

async fn ask(session: &mut Session<'_>, stream: Option<Stream>, number: u32) -> Answer<(), AttemptError> {
    let correlation_id = Arc::clone(&session.correlation_id);
    let attempt = Attempt { number, trial: false, timeout: TIMEOUT };
    let manner = session.manner(attempt, true, &correlation_id);
    let (received, fault) = match stream {
        None => {
            let received = session.get(pulse::PATH, manner).await;
            let fault = read_sign_of_life(&received.result).err();
            (received, fault)
        }
        Some(stream) => {
            let received = session.get(&query::probe(stream), manner).await;
            let fault = read_list(&query::probe_query(stream), &received.result).await.err();
            (received, fault)
        }
    };
    match fault {
        None => session.good(&received, manner, ()),
        Some(fault) => {
            let decision = received.decision(&fault);
            session.bad(&received, manner, fault, decision)
        }
    }
}

fn is_unauthorised(answer: &Answer<(), AttemptError>) -> bool {
    matches!(&answer.result, Err(failure) if failure.decision == Decision::Unauthorised)
}

/// What a check learns when it gets no token.
fn mark_of_refusal(ended: &Refusal) -> Mark {
    match ended.ending {
        Ending::Permanent { decision: Decision::Unauthorised } => Mark::Healthy,
        Ending::Permanent { decision } => decision.mark_under(ended.status),
        Ending::BudgetExhausted { .. } | Ending::CircuitOpen { .. } | Ending::Parked { .. } => Mark::Neutral,
    }
}

fn stream_of(endpoint: Endpoint) -> Option<Stream> {
    Stream::ALL.into_iter().find(|stream| endpoint_of(*stream) == endpoint)
}

/// The endpoint that lists `stream`.
pub(super) fn endpoint_of(stream: Stream) -> Endpoint {
    match stream {
        Stream::Bibs => Endpoint::Bibs,
        Stream::Items => Endpoint::Items,
        Stream::Patrons => Endpoint::Patrons,
    }
}
