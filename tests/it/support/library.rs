//! What the harness needs of a library: somewhere to ask, the truth to compare with, and life.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use rand::rngs::StdRng;
use sierra_sync::record::Stream;
use sierra_sync::sync::Source;

/// What a sink holds of a live record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Holding {
    /// A text of the record that tests look at: title, call number, or a patron's home library.
    pub(crate) title: String,
    pub(crate) suppressed: bool,
    /// For items: the bibs they hang from, sorted.
    pub(crate) bib_ids: Vec<u64>,
    /// The record as delivered.
    pub(crate) record: serde_json::Value,
    /// For bibs.
    pub(crate) marcxml: String,
}

/// Every live record of a stream that a sink holds, by public id.
pub(crate) type Held = BTreeMap<String, Holding>;

/// A library that can be asked, lives and tells the truth.
pub(crate) trait Library: Sized {
    /// What is true of one live record.
    type Record: Debug;

    /// A source for an engine that was opened with `boot` as its boot number.
    fn source(&self, boot: u64) -> Arc<dyn Source>;

    /// What is really there, by public id.
    fn truth(&self, stream: Stream) -> BTreeMap<String, Self::Record>;

    /// Whether a sink's copy says the same.
    fn agrees(&self, stream: Stream, truth: &Self::Record, held: &Holding) -> bool;

    /// Something happens in the library.
    fn live(&self, generator: &mut StdRng);

    /// Whatever must hold of the library's side of a run.
    fn assert_sound(&self, context: &str);
}
