//! The stores: one conformance suite on both, a model, and what only sled has to prove.

mod blobs;
mod changes;
mod child;
mod conformance;
mod crash;
mod damage;
mod fixture;
mod kill;
mod model;
mod private;
mod raw;
mod subject;
