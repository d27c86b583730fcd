//! Sierra's records as the rest of the program sees them: bibs, items, patrons and tombstones.
//!
//! Sierra's oddities (ids as numbers or strings, padded codes, omitted keys) are normalised in `sierra::decode`,
//! once (rule A6). This module does not know HTTP, MARC or storage.

pub mod bib;
pub mod canonical;
pub mod compact;
pub mod entry;
pub mod field;
pub mod item;
pub mod kind;
pub mod number;
pub mod patron;
pub mod scalar;
pub mod spelling;
pub mod surrogate;

pub use bib::Bib;
pub use canonical::Canonicalizer;
pub use compact::{OneLine, append_one_line};
pub use entry::{Entry, Live, Tombstone};
pub use field::{Fields, Subfield, VarField};
pub use item::Item;
pub use kind::Stream;
pub use number::{RecordNumber, RecordNumberError};
pub use patron::RawPatron;
pub use scalar::Scalar;
pub use spelling::{SpellingError, spelled};
