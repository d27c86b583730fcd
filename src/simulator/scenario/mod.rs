//! Scenarios as data: a library, a server, faults, and a script of what happens when.
//!
//! The format is TOML; `fixtures/scenarios/` holds commented examples, which are also the built-in ones.

mod action;
mod error;
mod file;
mod script;

pub use action::Action;
pub use error::ScenarioError;
pub use file::{FaultPlan, LibraryPlan, Scenario};
pub use script::{Progress, Script, Step, Trigger};
