//! Conversion of whole files, as the `convert` command does it: records in one form in, in another form out.
//!
//! Pure streams: no files, no terminal. One record is held at a time, whatever the size of the input.

mod engine;
mod entry;
mod sierra_json;
mod subfields;
mod summary;

pub use engine::{ConvertError, Input, Job, Observer, OnError, convert};
pub use sierra_json::SierraReader;
pub use summary::Summary;

use super::format::Format;

/// A form in which records come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// One of the forms in which records are also written.
    Marc(Format),
    /// Sierra's own JSON: pages, arrays of entries, single entries, one after the other.
    SierraJson,
}
