//! The stores: sled for the product, memory for the simulation, one conformance suite for both.
//!
//! What both must do alike and is easy to get wrong (the order of changes, what waits for which sink) is written once
//! and pure, in `order` and `backlog`. Nothing here knows Sierra, HTTP or any sink.

mod backlog;
pub mod disk;
pub mod dry_run;
pub mod hold;
pub mod holder;
pub mod memory;
mod order;
pub mod settings;

pub use disk::SledStore;
pub use dry_run::DryRun;
pub use hold::BreakerHold;
pub use holder::{Holder, StateLock};
pub use memory::{MemoryStore, Step};
pub use settings::StoreSettings;
