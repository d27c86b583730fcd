//! The client: typed questions in, pages out, everything between composed.
//!
//! Wall budget, retries, breaker, quota and timeouts are the `Line`'s; tokens are `auth`'s; what an answer is, is
//! `answer`'s. This file puts them together and turns their endings into the engine's terms.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::Read;
use super::auth::Auth;
use super::base_url::BaseUrl;
use super::error::{AttemptError, SierraClientError, Surroundings, source_error, unaskable};
use super::exchange::Exchange;
use super::health::{SierraCheck, endpoint_of};
use super::log::{self, QuotaWaitCounter, RetryLog};
use super::numbers::RequestNumbers;
use super::page::Checked;
use super::page_call::{self, ControlCall, PageCall, PageRead};
use super::poison::{EndpointMemory, Failures, Signature};
use super::pulse::{PulseCall, PulseRead, TokenInfo};
use super::query::{self, FieldLists, Sample};
use super::session::Session;
use super::settings::SierraSettings;
use super::token_call::Way;
use super::transport::Transport;
use crate::clock::SharedClock;
use crate::record::Stream;
use crate::resilience::breaker::{BreakerState, OutageSnapshot, Scope};
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::health::run_health_checks;
use crate::resilience::line::Line;
use crate::resilience::quota::{Class, Patience};
use crate::resilience::retry::{CallContext, Ended, Ending, Tally};
use crate::resilience::taxonomy::Decision;
use crate::sync::ports::{
    Answer, CallClass, MarcExport, MarcQuery, Page, PageQuery, Pulse, Source, SourceError, SourceErrorKind, Traffic,
};

/// Everything the client is put together from.
pub struct ClientParts<'a> {
    /// The connection: `HttpTransport`, or the simulator in process.
    pub transport: Arc<dyn Transport>,
    /// Breaker, quota and retries of the API key.
    pub line: Line,
    /// Dates.
    pub clock: SharedClock,
    /// The store's boot number, from which request numbers follow.
    pub boot_number: u64,
    /// The configured `fields` of each stream.
    pub fields: &'a [(Stream, Vec<String>)],
    /// How long one call may wait for quota in place.
    pub patience: Patience,
    /// The stored credential latch; empty when there is none.
    pub latch: &'a [u8],
}

/// A Sierra, over its REST API.
///
/// Dropping it ends its background tasks: health checks while the breaker is open, from the first call on, and the early replacement of tokens.
pub struct SierraClient {
    pub(super) inner: Arc<Inner>,
    /// Ends with the client; nothing is ever taken out.
    _tasks: JoinSet<std::convert::Infallible>,
}

pub(super) struct Inner {
    pub(super) exchange: Exchange,
    pub(super) auth: Auth,
    pub(super) line: Line,
    pub(super) clock: SharedClock,
    fields: FieldLists,
    patience: Patience,
    memories: PerEndpoint<Mutex<EndpointMemory>>,
    quota_waits: QuotaWaitCounter,
    has_reported_key: AtomicBool,
    /// Told of each call: who only looks makes none, and asks nobody how Sierra is either.
    has_work: Notify,
    /// Set where one health check is waited for: ends the wait.
    awaits_check_until: OnceLock<CancellationToken>,
    /// Endpoints whose calls were held back then: their next call waits as well.
    owed_checks: PerEndpoint<AtomicBool>,
}

impl SierraClient {
    /// Puts a client together and starts its background tasks; to be called inside a tokio runtime. Sends nothing.
    ///
    /// # Errors
    /// When the address or the credential cannot be used.
    pub fn start(settings: &SierraSettings, parts: ClientParts<'_>) -> Result<Self, SierraClientError> {
        let base = BaseUrl::new(&settings.base_url)?;
        let numbers = RequestNumbers::of_boot(parts.boot_number);
        let exchange = Exchange { transport: parts.transport, base, numbers };
        let auth = Auth::new(&exchange, settings, Arc::clone(&parts.clock), parts.latch)
            .ok_or(SierraClientError::Credential)?;
        let inner = Arc::new(Inner {
            exchange,
            auth,
            line: parts.line,
            clock: parts.clock,
            fields: FieldLists::new(parts.fields.iter().map(|(stream, fields)| (*stream, fields.as_slice()))),
            patience: parts.patience,
            memories: PerEndpoint::from_fn(|_| Mutex::default()),
            quota_waits: QuotaWaitCounter::default(),
            has_reported_key: AtomicBool::new(false),
            has_work: Notify::new(),
            awaits_check_until: OnceLock::new(),
            owed_checks: PerEndpoint::default(),
        });
        let mut tasks = JoinSet::new();
        let checks = Arc::clone(&inner);
        tasks.spawn(async move {
            checks.has_work.notified().await;
            let mut check = SierraCheck { auth: &checks.auth, exchange: &checks.exchange, memories: &checks.memories };
            run_health_checks(&checks.line, &mut check).await
        });
        let tokens = Arc::clone(&inner);
        tasks.spawn(async move { tokens.auth.refresh_ahead(&tokens.exchange, &tokens.line).await });
        Ok(Self { inner, _tasks: tasks })
    }

    /// From now on a sign of life that is asked for while the breaker is open waits for the health check that is due
    /// next, a minute at most, before it gives up; not where a person holds the breaker open. So does the next call to
    /// each endpoint that is held back at present. `cancel` ends the wait. For commands that end, which would else be
    /// over before the check is, one after the other; a service comes back by itself.
    pub fn await_health_checks(&self, cancel: CancellationToken) {
        self.inner.has_work.notify_one();
        let is_held = self.held_open().is_some();
        for endpoint in Endpoint::ALL {
            let rejection = self.inner.line.breaker().rejects(Some(endpoint));
            let is_owed = rejection.is_some_and(|rejection| rejection.scope != Scope::Key || !is_held);
            self.inner.owed_checks.of(endpoint).store(is_owed, Ordering::Relaxed);
        }
        // Said twice, the first stays: there is one command in a process.
        drop(self.inner.awaits_check_until.set(cancel));
    }

    /// What the key may do; `None` when Sierra answers and would not tell.
    ///
    /// # Errors
    /// When no answer came within the retry budget.
    pub async fn token_info(&self) -> Result<Option<TokenInfo>, SourceError> {
        self.inner.pulse().await.map(|(read, _)| read.info)
    }
}

impl Source for SierraClient {
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
        Box::pin(async { self.inner.pulse().await.map(|(read, traffic)| Pulse { date: read.date, traffic }) })
    }

    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
        Box::pin(self.inner.page(query))
    }

    fn marc<'a>(&'a self, query: &'a MarcQuery) -> BoxFuture<'a, Result<MarcExport, SourceError>> {
        Box::pin(self.inner.export(query))
    }
}

impl std::fmt::Debug for SierraClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SierraClient").field("base", &self.inner.exchange.base).finish_non_exhaustive()
    }
}

impl Inner {
    async fn pulse(&self) -> Result<(PulseRead, Traffic), SourceError> {
        if let Some(cancel) = self.awaits_check_until.get()
            && self.outage().is_some_and(|outage| !outage.held)
        {
            tokio::select! {
                biased;
                _ = self.line.breaker().decided() => {}
                () = cancel.cancelled() => {}
            }
        }
        let mut call = PulseCall { session: self.session(Endpoint::TokenInfo) };
        let context = self.context(Class::Incremental, &call.session);
        match self.line.call(&context, &mut call, &RetryLog).await {
            Ok(success) => {
                let beyond = success.value.info.as_ref().map(TokenInfo::beyond_reading).unwrap_or_default();
                if !beyond.is_empty() && !self.has_reported_key.swap(true, Ordering::Relaxed) {
                    log::key_can_write(&beyond);
                }
                Ok((success.value, self.account(&call.session, success.tally)))
            }
            Err(ended) => Err(self.failed(&call.session, *ended, false, Traffic::default())),
        }
    }

    async fn page(&self, query: &PageQuery) -> Result<Answer, SourceError> {
        let endpoint = endpoint_of(query.stream);
        let session = self.session(endpoint);
        match query::page(query, &self.fields) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(self.nothing_to_ask()),
            Err(problem) => {
                let date_of = |at| self.date_of(at);
                let around = surroundings(&session, Traffic::default(), false, None, &date_of);
                return Err(unaskable(&problem, &around));
            }
        }
        if let Some(cancel) = self.awaits_check_until.get()
            && self.owed_checks.of(endpoint).swap(false, Ordering::Relaxed)
        {
            tokio::select! {
                biased;
                () = self.line.breaker().decided_for(endpoint) => {}
                () = cancel.cancelled() => {}
            }
        }
        let memory = self.memories.of(endpoint);
        let mut call = PageCall { session, query, fields: &self.fields, memory, failures: Failures::default() };
        let context = self.context(class_of(query.class), &call.session);
        match self.line.call(&context, &mut call, &RetryLog).await {
            Ok(success) => {
                page_call::tell(query, &success.value.read, &context.correlation_id);
                Ok(answer(success.value, self.account(&call.session, success.tally)))
            }
            Err(ended) => {
                let mut traffic = Traffic::default();
                let is_poisoned = matches!(ended.ending, Ending::BudgetExhausted { .. })
                    && self.is_the_pages_own(&call, &mut traffic).await;
                let error = self.failed(&call.session, *ended, is_poisoned, traffic);
                if error.kind == SourceErrorKind::Narrow {
                    log::page_poisoned(endpoint, error.status_code, &error.correlation_id);
                }
                Err(error)
            }
        }
    }

    /// Whether a page that failed to the end of its budget does so by itself: its endpoint has answered others since,
    /// or answers a small question now.
    async fn is_the_pages_own(&self, call: &PageCall<'_>, traffic: &mut Traffic) -> bool {
        let Some(signature) = call.suspicion() else { return false };
        let memory = || call.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = if memory().answered_since(&call.failures) {
            true
        } else {
            self.answers_others(call, signature, traffic).await
        };
        if answers {
            memory().found(signature, Instant::now());
        }
        answers
    }

    /// Whether the endpoint answers a small question. The first of its records may be the one that spoils the page, and
    /// then spoils the question too: another is asked that this record is not in.
    async fn answers_others(&self, call: &PageCall<'_>, signature: Signature, traffic: &mut Traffic) -> bool {
        for sample in Sample::ALL {
            let session = self.session(call.session.endpoint);
            let mut control =
                ControlCall { session, query: call.query, sample, signature, was_sent: false, is_spoiled_alike: false };
            let context = self.context(class_of(call.query.class), &control.session);
            let outcome = self.line.call(&context, &mut control, &RetryLog).await;
            let tally = outcome.as_ref().map_or_else(|ended| ended.tally, |success| success.tally);
            *traffic += control.session.traffic(tally);
            if outcome.is_ok() || !control.is_spoiled_alike {
                return outcome.is_ok();
            }
        }
        false
    }

    pub(super) fn session(&self, endpoint: Endpoint) -> Session<'_> {
        Session::new(&self.auth, &self.exchange, endpoint, Way::Line(&self.line, self.patience))
    }

    pub(super) fn context(&self, class: Class, session: &Session<'_>) -> CallContext {
        self.has_work.notify_one();
        let id = Arc::clone(&session.correlation_id);
        CallContext { patience: self.patience, ..CallContext::sierra(session.endpoint, class, id) }
    }

    /// What a call cost, with what background refreshes have cost since the last one.
    pub(super) fn account(&self, session: &Session<'_>, tally: Tally) -> Traffic {
        let mut traffic = session.traffic(tally);
        traffic += self.auth.take_unattributed();
        self.quota_waits.add(traffic.quota_wait);
        traffic
    }

    pub(super) fn failed(
        &self,
        session: &Session<'_>,
        mut ended: Ended<AttemptError>,
        is_poisoned: bool,
        extra: Traffic,
    ) -> SourceError {
        if ended.ending == (Ending::Permanent { decision: Decision::Unauthorised })
            && let Some(latched) = self.auth.call_ended()
        {
            ended.error = Some(latched);
        }
        let mut traffic = self.account(session, ended.tally);
        traffic += extra;
        let date_of = |at| self.date_of(at);
        let outage = matches!(ended.ending, Ending::CircuitOpen { .. }).then(|| self.outage()).flatten();
        source_error(&ended, &surroundings(session, traffic, is_poisoned, outage, &date_of))
    }

    /// The outage of the key, while its breaker is open.
    pub(super) fn outage(&self) -> Option<OutageSnapshot> {
        let breaker = self.line.breaker().snapshot(self.clock.now());
        breaker.outage.filter(|_| breaker.state != BreakerState::Closed)
    }

    fn nothing_to_ask(&self) -> Answer {
        let (sent, answered) = (self.exchange.numbers.draw(), self.exchange.numbers.draw());
        Answer::Nothing { sent, answered, date: None, traffic: Traffic::default() }
    }

    fn date_of(&self, at: Instant) -> Timestamp {
        let now = self.clock.now();
        now.checked_add(at.saturating_duration_since(Instant::now())).unwrap_or(now)
    }
}

fn surroundings<'a>(
    session: &'a Session<'_>,
    traffic: Traffic,
    is_poisoned: bool,
    outage: Option<OutageSnapshot>,
    date_of: &'a dyn Fn(Instant) -> Timestamp,
) -> Surroundings<'a> {
    Surroundings {
        endpoint: session.endpoint.name(),
        correlation_id: &session.correlation_id,
        traffic,
        is_poisoned,
        outage,
        date_of,
    }
}

pub(super) fn class_of(class: CallClass) -> Class {
    match class {
        CallClass::Incremental => Class::Incremental,
        CallClass::Paced => Class::Paced,
    }
}

fn answer(read: PageRead, traffic: Traffic) -> Answer {
    let PageRead { read, sent, answered, date } = read;
    match read {
        Read::Nothing => Answer::Nothing { sent, answered, date, traffic },
        Read::Page { checked, .. } => {
            let Checked { entries, last_id, was_out_of_order } = checked;
            Answer::Page(Page { entries, last_id, was_out_of_order, sent, answered, date, traffic })
        }
    }
}
