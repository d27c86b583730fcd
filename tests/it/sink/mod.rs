//! The sinks and their events.

pub(crate) mod changes;
mod conformance;
mod crash;
mod destination;
mod event;
mod files;
mod holding;
mod stdout;
