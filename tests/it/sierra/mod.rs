//! The Sierra client from outside.

mod against_simulator;
mod answers;
mod http_transport;
mod privacy;
pub(crate) mod raw_server;
mod real_data;
mod script;
mod tokens;
