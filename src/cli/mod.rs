//! (stub)
pub mod simulate;
