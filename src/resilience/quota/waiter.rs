//! Who asks for a call, and why it waits.

use super::gate::Ticket;
use crate::resilience::endpoint::Endpoint;

/// How urgent a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Live streams: may use the window as fast as the pace allows.
    Incremental,
    /// Backfills, sweeps, replays: spread over the window, and at most half of the grant while a live stream is
    /// behind.
    Paced,
}

/// Why a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitCause {
    /// The quota of the key is spent, or the server told us to stay away.
    Quota,
    /// Sierra refused that endpoint for a time.
    Refusal,
    /// A gate has just opened and another call goes first.
    Turn,
    /// A paced call waits for its place in the window.
    Spread,
    /// Our own pace: calls per second.
    Pace,
    /// As many calls as allowed are in flight on that endpoint.
    Concurrency,
}

impl WaitCause {
    /// Whether the wait may be long, so that a worker does not sit it out for ever.
    #[must_use]
    pub const fn may_be_long(self) -> bool {
        matches!(self, Self::Quota | Self::Refusal | Self::Turn | Self::Spread)
    }

    /// Whether the wait is owed to the server, and not to how we spread our own calls.
    #[must_use]
    pub const fn is_quota(self) -> bool {
        matches!(self, Self::Quota | Self::Refusal | Self::Turn)
    }
}

/// One caller and its places behind gates. Made once per call and kept through its waits.
#[derive(Debug, Clone)]
pub struct Waiter {
    pub(super) endpoint: Endpoint,
    pub(super) class: Class,
    pub(super) key_ticket: Option<Ticket>,
    pub(super) endpoint_ticket: Option<Ticket>,
}

impl Waiter {
    /// A caller that has not waited yet.
    #[must_use]
    pub fn new(endpoint: Endpoint, class: Class) -> Self {
        Self { endpoint, class, key_ticket: None, endpoint_ticket: None }
    }
}
