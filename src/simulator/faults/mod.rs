//! Everything that goes wrong between a library and its client, by script or by seed.
//!
//! A [`Fault`] says what happens, a [`When`] to which calls, and [`PlannedFault`] puts the two together:
//! `Fault::Hang.nth(3).at(Endpoint::Bibs)`.

mod answers;
mod fault;
mod garble;
mod meddling;
mod plan;
mod when;

pub use fault::{Fault, Unauthorized};
pub use garble::Garble;
pub use plan::{FaultId, PlannedFault};
pub use when::When;

pub(crate) use meddling::Meddling;
pub(crate) use plan::{Faults, Sighting};
