//! The quota of one API key: one ledger for every stream, command and token call of the process (A3, A4, A19).
//!
//! [`Ledger`] is the pure state machine; [`Quota`] shares it between tasks and waits for them. What the server grants
//! comes from its headers alone; without any, only our own pace and concurrency hold. Nothing here reads a calendar
//! clock (BR-105): the only dates are those of snapshots.

mod driver;
mod gate;
mod ledger;
mod others;
mod pacer;
mod sends;
mod snapshot;
#[cfg(test)]
mod tests;
mod waiter;
mod window;

pub use driver::{Patience, Quota, QuotaPermit, TooLong};
pub use ledger::{Admission, Grant, Ledger, Quoted};
pub use snapshot::QuotaSnapshot;
pub use waiter::{Class, WaitCause, Waiter};
