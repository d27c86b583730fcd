//! The alerts that stand, for whoever shows them beside the one who tells of them.

use std::sync::{Arc, Mutex, PoisonError};

use super::cause::Cause;

/// Cause and subject of each alert that people were told of and that is not over. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct ActiveAlerts(Arc<Mutex<Vec<(Cause, String)>>>);

impl ActiveAlerts {
    /// Those that stand now.
    #[must_use]
    pub fn all(&self) -> Vec<(Cause, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These stand from now on, and no others.
    pub fn set(&self, alerts: Vec<(Cause, String)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = alerts;
    }
}
