//! The real binary against the bundled simulator, over real loopback HTTP and in real time.

mod backfill;
mod bad_input;
mod commands;
mod demo;
mod patrons;
mod queue;
mod secrets;
mod service;
mod support;
mod sync;
