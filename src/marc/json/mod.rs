//! JSON as a stream of records: cut into values first, each parsed alone.

mod input;
pub(super) mod scanner;
pub(super) mod text;
pub(super) mod values;
