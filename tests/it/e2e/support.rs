//! A library to serve, a site that follows it with the real binary, and what a consumer makes of the outputs.

mod bench;
mod library;
mod outputs;
mod run;
mod site;
mod truth;

pub(super) use bench::Bench;
pub(super) use library::Library;
pub(super) use outputs::Outputs;
pub(super) use run::{Run, Running, assert_valid, patiently};
pub(super) use site::{SECRET, Site};
