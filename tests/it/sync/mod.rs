//! The engine on paused time: convergence, crashes, and every way in which a harvest has been known to go wrong.

mod backfill;
mod backfill_crashes;
mod basics;
mod clocks;
mod crashes;
mod deletes;
mod failures;
mod life;
mod losses;
mod marc_export;
mod mends;
mod paging;
mod rebuilds;
mod records;
mod reload;
mod settings;
mod sierra;
mod sinks;
mod stops;
