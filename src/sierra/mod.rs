//! The typed client of the Sierra REST API.

pub mod settings;
pub mod transport;

pub use settings::SierraSettings;
