//! Backfills: records read once more because a person asks for it, or because a sink must be loaded.
//!
//! A backfill is cut into ranges of record numbers, each with a row of the ledger that carries its position: so it goes
//! on where it was after a crash, and a range that cannot be had does not keep the others from being read. Its calls are
//! of the paced class, its entries go through ordinary capture beside the live stream, and what is newer is never
//! overwritten.

mod book;
mod dead;
mod list;
mod order;
mod progress;
mod ranges;
mod report;
mod run;

pub use book::{Book, Job, JobState};
pub use order::{BackfillOrder, Numbers, Selection, Via};
pub use progress::Progress;
pub use ranges::{Cut, Plan};
pub(in crate::sync) use run::{Backfill, owed_loads};
