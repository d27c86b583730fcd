//! The sinks and their events.

mod changes;
mod event;
