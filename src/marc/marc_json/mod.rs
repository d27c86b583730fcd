//! MARC-in-JSON, the code4lib shape that pymarc, ruby-marc and MARC4J share.

pub mod read;
mod shape;
pub mod write;

pub use read::Reader;
pub use write::{to_string, write_record};
