//! The resilience layer against servers that only exist in paused time.

mod quota_server;
mod quota_simulation;
