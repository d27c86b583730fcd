//! The one retry loop (A1–A2, A8, B1–B4, C1–C9, D1–D3): a pure state machine, its endings, and what it tells.
//!
//! Everything that sends requests or deliveries goes through [`Line::call`](crate::resilience::line::Line::call),
//! which drives this machine; transports and sinks never retry by themselves.

mod call;
mod event;
mod machine;
mod outcome;
#[cfg(test)]
mod tests;

pub use call::{Answer, Attempt, Call, CallContext, Failure};
pub use event::{RetryEvent, RetryEventKind, RetryObserver, SilentRetryObserver};
pub use machine::{Failed, RetryMachine, Step};
pub use outcome::{Budget, Ended, Ending, Outcome, ParkReason, Success, Tally};
