//! One request and its answer: numbered, timed, logged; not judged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, header};
use jiff::Timestamp;
use tokio::time::Instant;

use super::base_url::BaseUrl;
use super::error::Fault;
use super::log;
use super::numbers::RequestNumbers;
use super::token::Token;
use super::transport::{SendOptions, Transport, TransportError};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::rate_headers::{RateFacts, answer_date};
use crate::resilience::retry::{Answer, Failure};
use crate::resilience::taxonomy::Decision;
use crate::sync::RequestNumber;

/// The largest answer taken, in bytes: a page of 2,000 full bibs has about 20 MB. A larger one is asked for in parts. Two
/// calls may be under way at once, and a buffer that grows is there twice for a moment: so all of it fits 256 MiB.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// The way to Sierra.
pub(super) struct Exchange {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) base: BaseUrl,
    pub(super) numbers: RequestNumbers,
}

/// How one attempt is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner<'a> {
    /// Where it goes.
    pub(super) endpoint: Endpoint,
    /// Sends of this call so far, this one included.
    pub(super) attempt: u32,
    /// The time it may take.
    pub(super) timeout: Duration,
    /// Whether it must use a connection of its own.
    pub(super) fresh_connection: bool,
    /// Ties log lines together.
    pub(super) correlation_id: &'a str,
}

/// A complete answer, or why there is none.
#[derive(Debug)]
pub(super) struct Received {
    /// Drawn when the request was sent.
    pub(super) sent: RequestNumber,
    /// Drawn when the answer was complete.
    pub(super) answered: RequestNumber,
    /// The answer.
    pub(super) result: Result<http::Response<Bytes>, TransportError>,
    /// How long it took.
    took: Duration,
}

impl Exchange {
    /// Writes a GET of `path` below the base, presenting `token`.
    pub(super) fn get(&self, path: &str, token: Option<&Token>) -> http::Request<Bytes> {
        // Without it Sierra may answer in a textual form of its own (sierra-api.md §5.3).
        self.request(http::Method::GET, path, "application/json", token)
    }

    /// Writes a request of any kind for `path` below the base, presenting `token`.
    pub(super) fn request(
        &self,
        method: http::Method,
        path: &str,
        accept: &'static str,
        token: Option<&Token>,
    ) -> http::Request<Bytes> {
        let mut request = http::Request::new(Bytes::new());
        *request.method_mut() = method;
        *request.uri_mut() = self.base.join(path);
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
        if let Some(token) = token
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.value.expose()))
        {
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        request
    }

    /// Sends `request` once.
    pub(super) async fn send(&self, request: http::Request<Bytes>, manner: Manner<'_>) -> Received {
        let uri = request.uri();
        let path = match manner.endpoint {
            // What is asked about patrons is private already.
            Endpoint::Patrons => uri.path(),
            _ => uri.path_and_query().map_or("", |path| path.as_str()),
        };
        log::request_sent(manner.endpoint, path, manner.attempt, manner.correlation_id);
        let options =
            SendOptions { timeout: manner.timeout, max_body: MAX_BODY, fresh_connection: manner.fresh_connection };
        let began = Instant::now();
        let sent = self.numbers.draw();
        let result = self.transport.send(request, options).await;
        let answered = self.numbers.draw();
        Received { sent, answered, result, took: began.elapsed() }
    }
}

impl Received {
    /// Sierra's `Date`.
    pub(super) fn date(&self) -> Option<Timestamp> {
        answer_date(self.result.as_ref().ok()?.headers())
    }

    /// Hands the judgement on to the retry loop, and tells of it.
    pub(super) fn judged<T, E>(&self, manner: Manner<'_>, result: Result<T, Failure<E>>) -> Answer<T, E> {
        let answer = self.result.as_ref().ok();
        let status = answer.map(|answer| answer.status().as_u16());
        let outcome = result.as_ref().map(|_| ()).map_err(|failure| failure.decision);
        let bytes = answer.map_or(0, |answer| answer.body().len());
        log::request_answered(manner.endpoint, status, outcome, bytes, self.took, manner.correlation_id);
        let facts = answer.map(|answer| RateFacts::read(answer.headers())).unwrap_or_default();
        Answer { status, facts, result }
    }

    /// What the loops do about `fault`.
    pub(super) fn decision(&self, fault: &Fault) -> Decision {
        let body = self.result.as_ref().map(|answer| answer.body().as_ref()).unwrap_or_default();
        fault.decision(body)
    }
}
