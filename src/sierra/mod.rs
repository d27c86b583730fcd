//! The typed client of the Sierra REST API.

pub mod transport;
