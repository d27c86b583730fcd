//! The stores: one conformance suite on both, a model, and what only sled has to prove.

mod changes;
mod conformance;
mod subject;
