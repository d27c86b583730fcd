//! The health check of an open breaker: one question, past the breaker and within the quota (B7).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::answer::{read_list, read_sign_of_life};
use super::auth::{Auth, Refusal};
use super::error::AttemptError;
use super::exchange::Exchange;
use super::poison::{EndpointMemory, Signature};
use super::pulse;
use super::query::{self, Sample};
use super::session::Session;
use super::token_call::Way;
use crate::record::Stream;
use crate::resilience::breaker::ProbeTarget;
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::health::{HealthCheck, ProbePass, mark_of};
use crate::resilience::retry::{Answer, Attempt, Ending, Failure};
use crate::resilience::taxonomy::{Decision, Mark};

/// Well within the ten seconds that a check has with its token call.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Checks Sierra.
pub(super) struct SierraCheck<'a> {
    pub(super) auth: &'a Auth,
    pub(super) exchange: &'a Exchange,
    /// Where it is kept that one record spoils pages of an endpoint.
    pub(super) memories: &'a PerEndpoint<Mutex<EndpointMemory>>,
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
        let first = stream.map_or(Subject::Token, |stream| Subject::List(stream, Sample::Any));
        let Some(mut asked) = pass.send(endpoint, ask(&mut session, first, 1)).await else { return Mark::Neutral };
        if is_unauthorised(&asked) {
            if let Err(ended) = session.prepare(true).await {
                return mark_of_refusal(&ended);
            }
            asked = match pass.send(endpoint, ask(&mut session, first, 2)).await {
                None => return Mark::Neutral,
                // A fresh token is refused: a matter of the key, not of Sierra's health (BR-110).
                Some(answer) if is_unauthorised(&answer) => return Mark::Healthy,
                Some(answer) => answer,
            };
        }
        if let (Some(stream), Some(signature)) = (stream, spoiled(&asked))
            && self.answers_others(&mut session, stream, signature, pass).await
        {
            return Mark::Healthy;
        }
        mark_of(&asked)
    }
}

impl SierraCheck<'_> {
    /// Whether the list of `stream`, whose first record cannot be read, answers another question. Then it is that
    /// record, and the page that meets it next is taken apart.
    async fn answers_others(
        &self,
        session: &mut Session<'_>,
        stream: Stream,
        signature: Signature,
        pass: &ProbePass<'_>,
    ) -> bool {
        let endpoint = endpoint_of(stream);
        for (sample, number) in [(Sample::Deleted, 3), (Sample::Live, 4)] {
            let subject = Subject::List(stream, sample);
            let Some(answer) = pass.send(endpoint, ask(session, subject, number)).await else { return false };
            if answer.result.is_ok() {
                let mut memory = self.memories.of(endpoint).lock().unwrap_or_else(PoisonError::into_inner);
                memory.found(signature, Instant::now());
                return true;
            }
            if spoiled(&answer) != Some(signature) {
                return false;
            }
        }
        false
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Token,
    List(Stream, Sample),
}

async fn ask(session: &mut Session<'_>, subject: Subject, number: u32) -> Answer<(), AttemptError> {
    let correlation_id = Arc::clone(&session.correlation_id);
    let attempt = Attempt { number, trial: false, timeout: TIMEOUT };
    let manner = session.manner(attempt, true, &correlation_id);
    let (received, fault) = match subject {
        Subject::Token => {
            let received = session.get(pulse::PATH, manner).await;
            let fault = read_sign_of_life(&received.result).err();
            (received, fault)
        }
        Subject::List(stream, sample) => {
            let received = session.get(&query::probe(stream, sample), manner).await;
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

/// How an answer failed that one record may have spoiled: in Sierra's own words, with a code.
fn spoiled(answer: &Answer<(), AttemptError>) -> Option<Signature> {
    match &answer.result {
        Err(Failure { error: AttemptError::Refused { status, code: Some(code), .. }, .. })
            if mark_of(answer) == Mark::Failed =>
        {
            Some(Signature::Status(*status, Some(*code)))
        }
        _ => None,
    }
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
