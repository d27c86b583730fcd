//! The composition root: the only place that knows every concrete type.
//!
//! Each command of the service has a file here that makes it of its parts; `assembly` holds what they share.

mod actions;
mod actor;
mod alerts;
mod assembly;
mod backfill;
mod breaker;
mod check;
mod chronicle;
mod cursor;
mod damage;
mod demo;
mod desk;
mod errands;
mod forecast;
mod last_status;
mod observatory;
mod pass;
mod pausing;
mod progress;
mod quarantine;
mod queue;
mod reconcile;
mod recover;
mod replay;
mod run;
mod status;
mod systemd;

pub use actions::{Action, Operator};
pub use backfill::{BackfillView, Backfilled, Shown, backfill, plan_backfill};
pub use breaker::{BreakerOrder, BreakerReport, breaker, breaker_history};
pub use check::ground;
pub use cursor::{CursorOrder, CursorQuestion, CursorReport, cursor};
pub use demo::{DemoPlan, DemoReport, demo};
pub use desk::{compact, quarantine, queue};
pub use forecast::Forecast;
pub use pass::{CutShort, sync};
pub use pausing::{PauseOrder, PauseReport, pausing};
pub use quarantine::{QuarantineLine, QuarantineQuestion};
pub use queue::{DrainReport, QueueEntry, QueueFilter, QueueQuestion, SinkLeft, VerifiedTree, VerifyReport};
pub use reconcile::reconcile;
pub use recover::{RecoverReport, recover};
pub use replay::{Outcome as ReplayOutcome, Replayed};
pub use run::{LoadConfig, run};
pub use status::status;
