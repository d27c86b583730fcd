//! The Sierra client from outside.

mod http_transport;
mod raw_server;
mod real_data;
mod script;
mod tokens;
