//! The configuration: what is accepted, what is refused, and what is said about it.

mod combinations;
mod hash;
mod overrides;
mod problems;
mod sample;
mod schema;
mod secrets;
mod support;
mod unbuilt;
