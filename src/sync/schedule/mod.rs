//! When things are due: pure, with the time as an argument.
//!
//! A *cron* expression is read by the clock on the wall of a zone, an *interval* by the time that passes. Either way what
//! was missed runs once, and nothing runs twice for one tick.

mod cron;
mod staleness;
mod ticker;

pub use cron::{CronError, CronSchedule};
pub use staleness::Staleness;
pub use ticker::{Moment, Ticker};
