//! What the harness needs of a library: somewhere to ask, the truth to compare with, and life.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use sierra_sync::clock::SimClock;
use sierra_sync::record::Stream;
use sierra_sync::sync::Source;

/// What a sink should hold of a live record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holding {
    /// A text that changes whenever the content does.
    pub(crate) title: String,
    pub(crate) suppressed: bool,
    /// For items: the bibs they hang from, sorted.
    pub(crate) bib_ids: Vec<u64>,
}

/// Every live record of a stream by public id.
pub(crate) type Truth = BTreeMap<String, Holding>;

/// A library that can be asked, lives and tells the truth.
pub(crate) trait Library: Sized {
    /// A source for an engine that was opened with `boot` as its boot number.
    fn source(&self, boot: u64) -> Arc<dyn Source>;

    /// What is really there.
    fn truth(&self, stream: Stream) -> Truth;

    /// Something happens in the library.
    fn live(&self, generator: &mut StdRng);

    /// The clock that the library's server runs on.
    fn clock(&self) -> Arc<SimClock>;
}
