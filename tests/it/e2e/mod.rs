//! The real binary against the bundled simulator, over real loopback HTTP and in real time.

mod bad_input;
mod commands;
mod demo;
mod patrons;
mod queue;
mod secrets;
mod service;
mod sinks;
mod support;
mod sync;
