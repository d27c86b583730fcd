//! The stores: one conformance suite on both, a model, and what only sled has to prove.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what helps a test may fail it, as the test may")]

mod blobs;
mod changes;
mod child;
mod conformance;
mod crash;
mod damage;
mod faults;
mod fence;
mod fixture;
mod kill;
mod many;
mod model;
mod power;
mod private;
pub(crate) mod raw;
mod subject;
mod upkeep;
