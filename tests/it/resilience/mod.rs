//! The resilience layer against servers that only exist in paused time.

mod breaker_probes;
mod contention;
mod gates;
mod line;
mod outage;
mod quota_server;
mod quota_simulation;
mod rules;
mod scripted;
