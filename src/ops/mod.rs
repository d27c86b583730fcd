//! The ops endpoint: liveness, readiness, status, history, metrics and the dashboard.
//!
//! It only reads. It never looks at Sierra, so probing it costs no quota, and it holds no record, token or secret.

pub mod dashboard;
pub mod guard;
pub mod health;
pub mod history;
pub mod server;
pub mod settings;

pub use history::{History, Sample};
pub use server::{OpsError, OpsServer, OpsState, StatusSource};
pub use settings::OpsSettings;
