//! (stub)

pub mod convert;
