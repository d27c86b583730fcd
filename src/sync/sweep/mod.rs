//! Sweeps: what no window can show is looked for again and again.
//!
//! The *late sweep* reads the last two days once more, whole records through ordinary capture, and finds what became
//! visible after its window was done. It concludes nothing from absence. *Reconciliation* goes through the whole stream
//! and compares: it finds back-dated loads, silent suppression, moved items and vanished records, and reads exactly
//! those again. It is also the most dangerous deleter there is, so what it concludes from absence passes through every
//! check of `missing`.
//!
//! Both have rows of their own in the ledger. What these owe is no gap of the stream's own passes: sweeps run beside
//! them, in the paced class, and never two of one stream at a time.

mod compare;
pub mod due;
mod job;
mod late;
mod missing;
mod order;
mod reconcile;
mod run;
mod walk;

pub(in crate::sync) use job::{Sweeping, sweeping};
pub use order::{ReconcileOrder, ReconcileReport};
pub(in crate::sync) use run::{Patience, Sweeps};
