//! The simulator is held to recorded answers, to its own fixtures, and to what field reports say.

#[cfg(test)]
mod access;
#[cfg(test)]
mod client;
#[cfg(test)]
mod command;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod life;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod marc;
#[cfg(test)]
mod server;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod world;
