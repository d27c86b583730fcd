//! The store of the simulation: in memory, with a fence that can be missed.

mod fault;
mod outbox;
mod store;
mod world;

pub use fault::Step;
pub use store::MemoryStore;
