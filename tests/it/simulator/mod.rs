//! The simulator is held to recorded answers, to its own fixtures, and to what field reports say.

mod access;
mod client;
mod command;
mod faults;
mod fixtures;
mod life;
mod limits;
mod listing;
mod marc;
mod server;
mod shapes;
mod world;
