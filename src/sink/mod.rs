//! The sinks: where changes go.

pub mod settings;

pub use settings::{FileFormat, FileSettings, SinkSettings};
