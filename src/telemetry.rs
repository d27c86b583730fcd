//! What the program tells about itself: log lines and metrics. Every metric's name, unit and labels are declared here.
//!
//! Neither ever holds a body, a token, a secret or a patron's value. This module does not know what it reports on:
//! callers hand in words from closed sets.

mod json_lines;
mod log;
pub mod metric;

pub use log::{LogFormat, LogLevel, LogSettings, start};
