//! The composition root: the only place that knows every concrete type.
//!
//! Each command of the service has a file here that makes it of its parts; `assembly` holds what they share.

mod actions;
mod assembly;
mod backfill;
mod breaker;
mod check;
mod chronicle;
mod demo;
mod desk;
mod forecast;
mod gauges;
mod observatory;
mod pass;
mod progress;
mod quarantine;
mod queue;
mod recover;
mod run;
mod status;
mod systemd;

pub use actions::{Action, Operator};
pub use backfill::{BackfillView, Backfilled, Shown, backfill, plan_backfill};
pub use breaker::{BreakerOrder, BreakerReport, breaker, breaker_history};
pub use check::ground;
pub use demo::{DemoPlan, DemoReport, demo};
pub use desk::{compact, quarantine, queue};
pub use forecast::Forecast;
pub use pass::sync;
pub use quarantine::{QuarantineLine, QuarantineQuestion};
pub use queue::{DrainReport, QueueEntry, QueueFilter, QueueQuestion, SinkLeft, VerifiedTree, VerifyReport};
pub use recover::{RecoverReport, recover};
pub use run::{LoadConfig, run};
pub use status::status;
