//! Settings become sinks.

use super::{FileSink, LineSink, SinkSettings};
use crate::clock::SharedClock;
use crate::sync::{Sink, SinkError};

/// Makes the sink called `name`. Nothing is opened yet: a destination that is away is an error of the first call, and
/// is retried like any other.
///
/// # Errors
/// When the settings cannot make a sink, whatever the destination says.
pub fn build(name: &str, settings: &SinkSettings, clock: &SharedClock) -> Result<Box<dyn Sink>, SinkError> {
    Ok(match settings {
        SinkSettings::File(settings) => Box::new(FileSink::new(name, settings, clock.clone())),
        SinkSettings::Stdout => Box::new(LineSink::stdout()),
    })
}
