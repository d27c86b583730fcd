//! How people and other commands look into a running process: the ops endpoint (liveness, readiness, status, history,
//! metrics, the dashboard) over HTTP, and the control socket beside the state.
//!
//! The endpoint only reads. It never looks at Sierra, so probing it costs no quota, and it holds no record, token or
//! secret.

pub mod control;
pub mod dashboard;
pub mod guard;
pub mod health;
pub mod history;
pub mod server;
pub mod settings;

pub use history::{History, Sample};
pub use server::{OpsError, OpsServer, OpsState, StatusSource};
pub use settings::OpsSettings;
