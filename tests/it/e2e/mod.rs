//! The real binary against the bundled simulator, over real loopback HTTP and in real time.

mod bad_input;
mod commands;
mod demo;
mod faults;
mod mends;
mod patrons;
mod queue;
mod recovery;
mod secrets;
mod service;
mod signals;
mod sinks;
mod storm;
mod support;
mod sync;
