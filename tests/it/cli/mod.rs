//! The command line, on the real binary.

mod bad_input;
mod breaker;
mod check;
mod commands;
mod init;
mod pausing;
mod support;
mod unavailable;
mod unbuilt;
