//! Loop two: the outbox to each sink, at least once, in order.
//!
//! Each sink has a lane of its own and a place of its own in the outbox, so none of them waits for another. A lane is
//! the one owner of retries towards its sink: batch, then one by one, then the quarantine up to a threshold, then the
//! lane stops. Delivery knows no Sierra: what waits is drained whether or not Sierra answers.

mod aside;
pub mod courier;
mod ending;
pub mod health;
pub mod lane;
pub mod refusals;
pub mod standing;

pub use ending::Ending;
pub use lane::SinkLane;
