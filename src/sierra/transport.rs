//! One HTTP attempt: the seam where a real connection and the in-process simulator are exchanged.
//!
//! A transport never retries, never waits for quota and never looks into a body.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// How one attempt is to be sent.
#[derive(Debug, Clone, Copy)]
pub struct SendOptions {
    /// Time for the whole attempt: connecting, sending, and reading the body to its end.
    pub timeout: Duration,
    /// Largest body accepted, in bytes; a longer one is an error, so that a hostile server cannot exhaust memory.
    pub max_body: usize,
    /// Use a connection that no earlier request used, so that another Sierra back-end may answer.
    pub fresh_connection: bool,
}

/// Why no complete answer arrived. Every kind is "no status" to the retry rules (A2, B1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransportErrorKind {
    /// The attempt's time ran out.
    #[error("timed out")]
    Timeout,
    /// No connection could be made: refused, unreachable, name unknown, TLS failed.
    #[error("could not connect")]
    Connect,
    /// A connection was made and given up: the server's certificate is not one to believe.
    #[error("could not connect, since the server's certificate is not believed")]
    Untrusted,
    /// The connection ended before the answer was complete.
    #[error("connection closed before the answer was complete")]
    Closed,
    /// The body is larger than allowed.
    #[error("answer larger than allowed")]
    TooLarge,
    /// Anything else that the HTTP library reports.
    #[error("malformed HTTP exchange")]
    Protocol,
}

/// An attempt that brought no complete answer. The detail is free of URLs, headers and bodies.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}{}", .detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default())]
pub struct TransportError {
    /// What happened.
    pub kind: TransportErrorKind,
    /// More about it, safe to show.
    pub detail: Option<String>,
}

/// Sends one request and reads the whole answer.
///
/// The URI of the request is absolute. Dropping the future cancels the attempt.
pub trait Transport: Send + Sync {
    /// Returns once the answer is complete, whatever its status.
    ///
    /// # Errors
    /// When no complete answer arrived; the request may or may not have reached the server.
    fn send(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;
}
