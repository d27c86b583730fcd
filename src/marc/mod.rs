//! MARC records: made from Sierra's varFields, checked, and written and read in three forms.
//!
//! Whatever Sierra holds, a [`Record`] is valid once built, and every repair and omission on the way to it is a
//! [`Loss`] that travels with the record. This module does no networking, no storage and knows no patrons.

pub mod error;
pub mod from_sierra;
pub mod leader;
pub mod loss;
pub mod marcxml;
pub mod model;
pub mod settings;
pub mod tag;
pub mod text;

pub use error::MarcError;
pub use from_sierra::{from_sierra, is_carried};
pub use leader::Leader;
pub use loss::{Loss, LossKind};
pub use model::{Field, Record, Subfield};
pub use settings::{ControlNumber, MarcSettings, OnIllegal};
pub use tag::{Indicator, SubfieldCode, Tag};
