//! MARCXML, in the Library of Congress namespace.

mod bounded;
mod fields;
pub mod read;
mod strict;
mod token;
pub mod write;

pub use read::Reader;
pub use write::{Namespace, to_string, write_record};

/// The namespace of MARCXML (loc.gov/standards/marcxml).
pub const NAMESPACE: &str = "http://www.loc.gov/MARC21/slim";
