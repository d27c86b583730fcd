//! Integration tests: one binary, one folder per area.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "in a test a panic is a failure that says where, and what is printed is shown with it; the helpers here are not marked as tests one by one"
)]

mod cli;
mod config;
mod e2e;
mod marc;
mod ops;
mod privacy;
mod resilience;
mod sierra;
mod simulation;
mod simulator;
mod sink;
mod store;
mod support;
mod sync;
