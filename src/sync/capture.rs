//! Loop one: windows of Sierra into durable, already masked changes.
//!
//! A *walk* asks for one row of the ledger page by page; each page is *absorbed* into the store before the next is
//! asked for, so at most one page of a stream is in memory (A16). A stream's *pass* is a sequence of walks: what is
//! owed, then the update pass, then the delete pass. Capture knows no sink.

pub mod absorb;
mod apart;
mod course;
pub mod ending;
pub mod error;
mod export;
mod lane;
pub mod map;
mod quarantine;

pub(in crate::sync) mod page_size;
pub mod pass;
mod refetch;
mod replay;
mod rows;
mod scrutiny;
pub mod tally;
pub mod tripwire;
mod unread;
mod walk;

pub(in crate::sync) use course::Course;
pub use lane::Lane;
pub(in crate::sync) use quarantine::fingerprint;
pub(in crate::sync) use refetch::Manner;
pub(in crate::sync) use scrutiny::{Known, Scrutiny, number_of};
pub(in crate::sync) use walk::{Question, Reading, behind};

/// The reason of a bib that came without MARC (BR-048).
pub const NO_MARC: &str = "no-marc: the entry has no varFields, also when asked for again";
