//! The engine on paused time: convergence, crashes, and every way in which a harvest has been known to go wrong.

mod basics;
mod clocks;
mod crashes;
mod deletes;
mod failures;
mod life;
mod losses;
mod mends;
mod paging;
mod rebuilds;
mod records;
mod sierra;
mod sinks;
mod stops;
