//! The store of the product: sled 0.34.7 behind a fence.
//!
//! sled is sound behind a fence and only there: its `flush` does not sync, its blob files are neither synced nor
//! reclaimed, and a storage error inside a transaction leaves its memory half applied. So a commit is transaction,
//! `flush`, `sync_all` on our own handle, and only then an acknowledgement; every value stays below the blob limit;
//! and after the first error nothing is served any more.

mod aside;
mod chunks;
mod codec;
mod compact;
mod damage;
mod draft;
mod entry;
mod envelope;
mod error;
mod fence;
mod format;
mod head;
mod high_water;
mod hints;
mod ledger;
mod links;
mod outbox;
mod place;
mod port;
mod quarantine;
mod remembered;
mod salvage;
mod sinks;
mod squeeze;
mod store;
mod trees;
mod trial;
mod verify;

pub use aside::{Aside, owed, set_aside, settled};
pub use compact::{Compacted, compact};
pub use place::is_there;
pub use salvage::{Salvage, Salvaged, salvage};
pub use store::SledStore;
pub use trial::{Tried, try_opening};
pub use verify::{TreeVerified, Verified};
