//! The configuration: from defaults, file, environment and flags to settings that need no more checking.
//!
//! Nothing is asked of Sierra before the configuration is free of problems, and all of them are reported at once,
//! each with its place, what is wrong and what would be right. This module does not know what the settings do: each
//! part owns the settings it obeys, and `config` only fills them in.

mod combine;
mod document;
mod env;
mod kind;
mod load;
pub(crate) mod nearest;
pub mod path;
mod places;
pub mod problem;
mod schema;
mod secrets;
mod section;
mod sections;
mod settings;
pub mod unbuilt;
mod written;

/// The commented sample that `init` writes: every key with its default.
pub const SAMPLE: &str = include_str!("sample.toml");

pub use env::Environment;
pub use load::{DEFAULT_FILES, load, load_written};
pub use path::KeyPath;
pub use problem::{Place, Problem, Problems, Warning};
pub use schema::{keys, schema};
pub use settings::{Config, SettingsHash, SinkConfig};
pub use written::Written;
