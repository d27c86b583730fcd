//! The engine on paused time: convergence, crashes, and every way in which a harvest has been known to go wrong.

mod basics;
mod clocks;
mod deletes;
mod life;
mod paging;
