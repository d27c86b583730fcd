//! The sections of the file, one a module: each declares its keys and fills in the settings of the part it is for.

pub(super) mod marc;
pub(super) mod ops;
pub(super) mod privacy;
pub(super) mod resilience;
pub(super) mod sierra;
pub(super) mod sinks;
pub(super) mod state;
pub(super) mod streams;
