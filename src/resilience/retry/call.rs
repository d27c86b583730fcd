//! What the loop needs to know of a call, and what it hands to each attempt.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::outcome::Ended;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::quota::{Class, Patience};
use crate::resilience::rate_headers::RateFacts;
use crate::resilience::taxonomy::Decision;

/// Where a call goes and in whose name; the same for all of its attempts.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The endpoint of Sierra; `None` for a delivery to a sink.
    pub endpoint: Option<Endpoint>,
    /// The name in logs: the endpoint's, or the sink's.
    pub label: Arc<str>,
    /// How urgent it is.
    pub class: Class,
    /// Ties everything that is logged about it together.
    pub correlation_id: Arc<str>,
    /// How long it is willing to wait for quota.
    pub patience: Patience,
}

impl CallContext {
    /// A call to Sierra that waits for quota as usual.
    #[must_use]
    pub fn sierra(endpoint: Endpoint, class: Class, correlation_id: Arc<str>) -> Self {
        let label = Arc::from(endpoint.name());
        Self { endpoint: Some(endpoint), label, class, correlation_id, patience: Patience::default() }
    }

    /// A delivery to the sink called `name`.
    #[must_use]
    pub fn sink(name: Arc<str>, correlation_id: Arc<str>) -> Self {
        let patience = Patience::default();
        Self { endpoint: None, label: name, class: Class::Incremental, correlation_id, patience }
    }
}

/// What the loop hands to one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Sends of this call so far, this one included; the first is 1.
    pub number: u32,
    /// The first real call after an outage: ask for as little as possible (`limit=1`). A page got this way is short
    /// by design and does not mean that the list ends.
    pub trial: bool,
    /// Time that the attempt may take; the loop drops it then.
    pub timeout: Duration,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T, E> {
    /// HTTP status; `None` if no complete answer came.
    pub status: Option<u16>,
    /// What the headers say about quota; the default if there are none.
    pub facts: RateFacts,
    /// The value, or what the answer is taken for. "Nothing" (404 with code 107) is a value.
    pub result: Result<T, Failure<E>>,
}

/// An attempt that brought no value.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure<E> {
    /// What the answer is taken for: from [`Decision::of`].
    pub decision: Decision,
    /// For people.
    pub error: E,
}

/// A call that can be attempted again and again.
pub trait Call: Send {
    /// What it is to bring.
    type Value: Send;
    /// What is said when it does not.
    type Error: Send;

    /// Gets in hand what an attempt needs and what itself costs requests: the session token. Called before quota is
    /// taken for the attempt, with `renew` after a 401: then the token in use is to be replaced, once per token
    /// generation. The time it takes is not charged to this call; it has budgets of its own.
    ///
    /// # Errors
    /// How the preparation ended; the call ends the same way, with a tally of its own.
    fn prepare(&mut self, renew: bool) -> impl Future<Output = Result<(), Box<Ended<Self::Error>>>> + Send {
        let _ = renew;
        std::future::ready(Ok(()))
    }

    /// Whether what was prepared still holds, asked after a wait for quota: a token may have died meanwhile (BR-097).
    fn is_prepared(&self) -> bool {
        true
    }

    /// Makes one attempt. Dropping the future cancels it.
    fn send(&mut self, attempt: Attempt) -> impl Future<Output = Answer<Self::Value, Self::Error>> + Send;

    /// What to say of an attempt that was dropped because its time ran out.
    fn overdue(&mut self, attempt: Attempt) -> Self::Error;
}
