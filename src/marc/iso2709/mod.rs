//! ISO 2709, the exchange format: UTF-8, leader 09 `a`, lengths in bytes.

mod parse;
pub mod read;
pub mod write;

pub use read::Reader;
pub use write::{DoesNotFit, write_record};

/// The most bytes a record can have: its length has five digits.
pub const MAX_RECORD_BYTES: usize = 99_999;
/// The most bytes a field can have, delimiters included: its length has four digits.
pub const MAX_FIELD_BYTES: usize = 9_999;

const RECORD_TERMINATOR: u8 = 0x1D;
const FIELD_TERMINATOR: u8 = 0x1E;
const SUBFIELD_DELIMITER: u8 = 0x1F;
const LEADER_BYTES: usize = 24;
const ENTRY_BYTES: usize = 12;
