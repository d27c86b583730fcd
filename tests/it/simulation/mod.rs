//! The simulation suite: a library that lives, with every fault that the simulator knows, a process that dies at any
//! step of its store, and two sinks of which one is in trouble. Invariants are looked at after every event, and at the
//! end both sinks hold what the library holds.
//!
//! Everything follows from one number. A case that fails prints the command that plays it again.

mod case;
mod fault;
mod mutants;
mod play;
mod suite;
mod trouble;
