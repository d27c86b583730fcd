//! MARC records: made from Sierra's varFields, checked, and written and read in three forms.
//!
//! Whatever Sierra holds, a [`Record`] is valid once built, and every repair and omission on the way to it is a
//! [`Loss`] that travels with the record. This module does no networking, no storage and knows no patrons.

mod builder;
pub mod check;
pub mod convert;
pub mod error;
pub mod field;
pub mod format;
pub mod from_sierra;
pub mod iso2709;
pub mod json;
pub mod leader;
pub mod loss;
pub mod marc_json;
pub mod marcxml;
pub mod model;
pub mod read;
pub mod settings;
pub mod tag;
pub mod text;

pub use check::{Comparison, Difference, check_against};
pub use error::MarcError;
pub use field::{Field, Subfield, Subfields};
pub use format::{Format, WriteError, Writer};
pub use from_sierra::{from_sierra, is_carried};
pub use leader::Leader;
pub use loss::{Loss, LossKind};
pub use marcxml::NAMESPACE;
pub use model::Record;
pub use read::{Damage, ReadError, ReadRecord, Records};
pub use settings::{ControlNumber, MarcSettings, OnIllegal};
pub use tag::{Indicator, SubfieldCode, Tag};
