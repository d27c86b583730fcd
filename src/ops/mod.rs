//! How people and other commands look into a running process: the ops endpoint (liveness, readiness, status, history,
//! metrics, the dashboard) over HTTP, and the control socket beside the state.
//!
//! `alert` calls people when something is wrong.
//!
//! Reading never looks at Sierra, so probing the endpoint costs no quota, and what it shows holds no record, token or
//! secret. Actions need the token; whoever answers the same command on the command line carries them out.

pub mod action;
pub mod alert;
pub mod control;
pub mod dashboard;
mod doors;
mod exposition;
pub mod guard;
pub mod health;
pub mod history;
pub mod past;
mod rate;
mod recent;
pub mod server;
pub mod settings;

pub use action::{Acted, Action, Actor, BreakerWord};
pub use history::{Halt, History, Sample};
pub use past::{Deed, Past};
pub use server::{OpsError, OpsServer, OpsState, StatusSource};
pub use settings::OpsSettings;
