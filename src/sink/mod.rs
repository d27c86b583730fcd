//! The sinks: where changes go.
//!
//! A sink writes and tells whether it could; it never retries, filters or masks. It knows the engine's port and
//! nothing of Sierra or the store.

mod build;
mod error;
pub mod event;
pub mod file;
pub mod settings;
pub mod stdout;

pub use build::build;
pub use error::SinkFault;
pub use event::{Event, EventError};
pub use file::FileSink;
pub use settings::{FileFormat, FileSettings, SinkSettings};
pub use stdout::LineSink;
