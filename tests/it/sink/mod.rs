//! The sinks and their events.

pub(crate) mod changes;
mod event;
