//! The call for one page, as the retry loop drives it.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use tokio::time::Instant;

use super::answer::{Read, read_list};
use super::auth::Refusal;
use super::error::{AttemptError, Fault};
use super::log;
use super::poison::{EndpointMemory, Failures, Signature};
use super::query::{self, FieldLists, Sample};
use super::session::Session;
use crate::resilience::retry::Budget;
use crate::resilience::retry::{Answer, Attempt, Call, Ended, Ending, Tally};
use crate::resilience::taxonomy::Decision;
use crate::sync::RequestNumber;
use crate::sync::ports::{PageFilter, PageQuery};

/// A page on its way.
pub(super) struct PageCall<'a> {
    pub(super) session: Session<'a>,
    pub(super) query: &'a PageQuery,
    pub(super) fields: &'a FieldLists,
    pub(super) memory: &'a Mutex<EndpointMemory>,
    pub(super) failures: Failures,
}

/// A page, or nothing, with the numbers of its request.
#[derive(Debug)]
pub(super) struct PageRead {
    pub(super) read: Read,
    pub(super) sent: RequestNumber,
    pub(super) answered: RequestNumber,
    pub(super) date: Option<Timestamp>,
}

impl Call for PageCall<'_> {
    type Value = PageRead;
    type Error = AttemptError;

    async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        self.session.prepare(renew).await
    }

    fn is_prepared(&self) -> bool {
        self.session.is_prepared()
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<PageRead, AttemptError> {
        let correlation_id = std::sync::Arc::clone(&self.session.correlation_id);
        let manner = self.session.manner(attempt, self.query.fresh_connection, &correlation_id);
        let received = self.session.get(&self.path(attempt.trial), manner).await;
        match read_list(self.query, &received.result).await {
            Ok(read) => {
                self.lock().answered(Instant::now());
                let (sent, answered, date) = (received.sent, received.answered, received.date());
                self.session.good(&received, manner, PageRead { read, sent, answered, date })
            }
            Err(fault) => {
                let decision = self.judge(&fault, received.decision(&fault));
                self.session.bad(&received, manner, fault, decision)
            }
        }
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        let signature = Signature::Transport(super::transport::TransportErrorKind::Timeout);
        self.failures.add(signature, Instant::now());
        AttemptError::Transport("timed out".to_owned())
    }
}

impl PageCall<'_> {
    /// The question; just after an outage for one record only.
    fn path(&self, is_trial: bool) -> String {
        let path = if is_trial && !matches!(self.query.filter, PageFilter::Ids(_)) {
            query::page(&PageQuery { limit: 1, ..self.query.clone() }, self.fields)
        } else {
            query::page(self.query, self.fields)
        };
        path.ok().flatten().expect("the client has put the question once before it made the call")
    }

    /// A page that fails every time while others do not is no trouble of the server.
    fn judge(&mut self, fault: &Fault, decision: Decision) -> Decision {
        if !matches!(decision, Decision::Transient | Decision::EmptyReply) {
            return decision;
        }
        let (signature, now) = (fault.signature(), Instant::now());
        self.failures.add(signature, now);
        let is_poisoned = {
            let mut memory = self.lock();
            let is_found = self.failures.suspicion() == Some(signature) && memory.answered_since(&self.failures);
            if is_found {
                memory.found(signature, now);
            }
            is_found || memory.is_known(signature, now)
        };
        if is_poisoned { Decision::NarrowRange } else { decision }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, EndpointMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the page fails every time, if it does.
    pub(super) fn suspicion(&self) -> Option<Signature> {
        self.failures.suspicion()
    }
}

/// One small question to the endpoint of a page that keeps failing: is it the page, or the endpoint? Asked once.
pub(super) struct ControlCall<'a> {
    pub(super) session: Session<'a>,
    pub(super) query: &'a PageQuery,
    pub(super) sample: Sample,
    /// How the page fails.
    pub(super) signature: Signature,
    pub(super) was_sent: bool,
    /// Whether Sierra answered as it does to the page: the answer may hold the very record that spoils the page.
    pub(super) is_spoiled_alike: bool,
}

impl Call for ControlCall<'_> {
    type Value = ();
    type Error = AttemptError;

    async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        if self.was_sent && !renew {
            let ending = Ending::BudgetExhausted { budget: Budget::Attempts };
            return Err(Box::new(Ended { ending, status: None, error: None, tally: Tally::default() }));
        }
        self.session.prepare(renew).await
    }

    fn is_prepared(&self) -> bool {
        self.session.is_prepared()
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<(), AttemptError> {
        self.was_sent = true;
        let correlation_id = std::sync::Arc::clone(&self.session.correlation_id);
        let manner = self.session.manner(attempt, true, &correlation_id);
        let received = self.session.get(&query::probe(self.query.stream, self.sample), manner).await;
        match read_list(&query::probe_query(self.query.stream), &received.result).await {
            Ok(_) => self.session.good(&received, manner, ()),
            Err(fault) => {
                self.is_spoiled_alike = received.result.is_ok() && fault.signature() == self.signature;
                let is_for_another_to_tell = self.is_spoiled_alike && !self.sample.is_last();
                let decision = if is_for_another_to_tell { Decision::NarrowRange } else { received.decision(&fault) };
                self.session.bad(&received, manner, fault, decision)
            }
        }
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        AttemptError::Transport("timed out".to_owned())
    }
}

/// Tells of what a page holds beside its records.
pub(super) fn tell(query: &PageQuery, read: &Read, correlation_id: &str) {
    let Read::Page { checked, replaced_surrogates } = read else { return };
    if checked.was_out_of_order {
        log::page_out_of_order(query.stream, correlation_id);
    }
    if *replaced_surrogates > 0 {
        log::surrogates_replaced(query.stream, *replaced_surrogates, correlation_id);
    }
}
