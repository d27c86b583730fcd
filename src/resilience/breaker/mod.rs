//! The circuit breaker: stops calling a side that does not answer, and finds out cheaply when it does again (A10,
//! B5–B8).
//!
//! One per API key, one per sink. [`BreakerMachine`] is the pure state machine; [`Breaker`] shares it between tasks.
//! It knows nothing of HTTP: callers translate an answer into a [`Mark`](crate::resilience::taxonomy::Mark).

mod circuit;
mod driver;
mod event;
mod history;
mod machine;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;

pub use circuit::PROBE_LEASE;
pub use driver::{Breaker, BreakerPermit, ProbeLease};
pub use event::{BreakerEvent, BreakerObserver, ClosedBy, OpenReason, Scope, SilentBreakerObserver};
pub use machine::{Admission, Admitted, BreakerMachine, Lease, ProbeTarget, Rejection};
pub use snapshot::{BreakerSnapshot, OutageSnapshot, SuspensionSnapshot};
pub use state::BreakerState;
