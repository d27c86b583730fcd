//! An answer together with how it travels: late, slowly, cut short, or not at all.

use std::time::Duration;

use bytes::Bytes;

use super::api::Endpoint;

/// What a transport is to do with a request.
#[derive(Debug)]
pub struct Reply {
    /// The answer. Its length is that of the whole body, however much of it is sent.
    pub response: http::Response<Bytes>,
    /// Time before the first byte.
    pub delay: Duration,
    /// How the answer travels.
    pub delivery: Delivery,
    /// The number of the call in the journal.
    pub call: u64,
    /// Its endpoint.
    pub endpoint: Endpoint,
}

/// How an answer travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// All of it, and the connection stays usable.
    Whole,
    /// All of it, then the connection is closed without having said so.
    WholeThenClosed,
    /// This many bytes of the body, then the connection is closed.
    Cut {
        /// Bytes of the body that are sent.
        after_bytes: usize,
    },
    /// Nothing, ever; the connection stays open.
    Never,
    /// The connection is closed instead of an answer.
    Reset,
    /// No connection comes about. A server that listens can only reset.
    Refused,
    /// The body at this pace.
    Slow {
        /// Bytes a second, at least one.
        bytes_per_second: u64,
    },
}

impl Delivery {
    /// Whether the caller ever learns the status.
    pub(crate) fn brings_an_answer(self) -> bool {
        matches!(self, Self::Whole | Self::WholeThenClosed | Self::Slow { .. })
    }
}
