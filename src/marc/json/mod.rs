//! JSON as a stream of records: cut into values first, each parsed alone.

pub(super) mod scanner;
pub mod surrogate;
pub(super) mod text;
pub(super) mod values;
