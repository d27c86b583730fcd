//! What a caller should do about an error: described richly where it happens, decided on narrowly here.

use std::time::Duration;

/// The decision an error asks for. Loops match on this and never on an error's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The same request may succeed later; not before `not_before` from now, when the other side said so.
    RetryLater {
        /// How long the other side asked us to wait, if it did.
        not_before: Option<Duration>,
    },
    /// The token is stale: refresh once and repeat.
    Reauthenticate,
    /// Too much was asked at once: ask for less.
    NarrowWindow,
    /// This record is bad and the stream is fine: set it aside and go on.
    Quarantine,
    /// A person must act: stop this stream, keep the others.
    Halt,
}

/// Errors that know what their caller should do.
pub trait Classify {
    /// The one decision that loops are allowed to take from this error.
    fn disposition(&self) -> Disposition;
}
