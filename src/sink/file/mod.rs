//! Files: NDJSON, one event a line, or MARCXML collections with lists of deletions. `docs/events.md` tells readers
//! how to use them.

mod batch;
mod collection;
mod disk;
mod folder;
mod journal;
mod lines;
mod lock;
mod loss;
mod manifest;
mod part;
mod sink;

pub(super) use manifest::NAME as MANIFEST;
pub use sink::FileSink;
