//! Keeps a faithful copy of a Sierra ILS flowing to where a library uses it.
//!
//! The modules below are listed in layer order: a module imports only from the layers under it, and adapters
//! (`sierra`, `store`, `sink`, `ops`) never import each other. `ARCHITECTURE.md` draws the map.

#![forbid(unsafe_code)]

// Layer 0: ground. Nothing of ours is imported here.
pub mod clock;
pub mod failure;
pub mod secret;
pub mod seed;
pub mod telemetry;

// Layer 1: knowledge. Pure: records, MARC, privacy and resilience as values and state machines.
pub mod marc;
pub mod privacy;
pub mod record;
pub mod resilience;

// Layer 2: the engine, which owns the ports.
pub mod sync;

// Layer 3: adapters.
pub mod ops;
pub mod sierra;
pub mod sink;
pub mod store;

// The witness: a Sierra look-alike that shares no types with the client beyond the transport.
pub mod simulator;

// Layer 4: composition.
pub mod app;
pub mod cli;
pub mod config;
