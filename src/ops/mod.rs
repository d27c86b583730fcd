//! The ops endpoint: liveness, readiness, status, metrics, dashboard.

pub mod settings;

pub use settings::OpsSettings;
