//! The sinks: where changes go.

pub mod event;
pub mod settings;

pub use event::Event;
pub use settings::{FileFormat, FileSettings, SinkSettings};
