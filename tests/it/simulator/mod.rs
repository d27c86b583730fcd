//! The simulator is held to recorded answers, to its own fixtures, and to what field reports say.

mod client;
mod listing;
mod shapes;
