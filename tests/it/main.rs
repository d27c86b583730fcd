//! Integration tests: one binary, one folder per area.

mod cli;
mod config;
mod e2e;
mod marc;
mod ops;
mod privacy;
mod resilience;
mod sierra;
mod simulator;
mod sink;
mod store;
mod support;
mod sync;
