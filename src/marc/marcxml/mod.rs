//! MARCXML, in the Library of Congress namespace.

pub mod write;

pub use write::{to_string, write_record};

/// The namespace of MARCXML (loc.gov/standards/marcxml).
pub const NAMESPACE: &str = "http://www.loc.gov/MARC21/slim";
