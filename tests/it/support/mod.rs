//! The harness of simulations: an engine on paused time over a library that lives, with sinks that record.
//!
//! A test states only what is unusual about it; the invariants of `sync::invariant` are checked after every event.

mod bends;
mod library;
pub(crate) mod power;
mod recorder;
mod rig;
mod shelf;
mod shelf_source;
mod sierra;
mod sim;
pub(crate) mod strace;
mod strikes;
mod vitals;
mod watch;

pub(crate) use bends::Bends;
pub(crate) use recorder::Trouble;
pub(crate) use rig::{Rig, hours, minutes, seeds, stream_settings};
pub(crate) use shelf::{Shelf, Tombstones};
pub(crate) use shelf_source::{Act, ShelfSource, would_list};
pub(crate) use sim::Sim;
pub(crate) use strikes::struck_at_every_write;
pub(crate) use vitals::NoVitals;
