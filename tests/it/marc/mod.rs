//! MARC: the three forms, the mapping from Sierra, conversion at the desk.

mod convert;
mod docs;
mod fixtures;
mod properties;
mod real;
mod strategies;
pub(crate) mod strict_xml;
