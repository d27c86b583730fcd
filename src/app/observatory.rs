//! What the ops endpoint looks through: the status of a running engine.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use crate::ops::StatusSource;
use crate::sync::report::StatusReport;
use crate::sync::report::status::{OverallState, StoreState};

use super::{assembly::Assembly, gauges};

/// The status of `assembly`, and of its failure.
pub(super) struct Observatory {
    assembly: Mutex<Option<Arc<Assembly>>>,
    last: Mutex<StatusReport>,
}

impl Observatory {
    /// Looks at `assembly`.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) async fn over(assembly: Arc<Assembly>) -> Result<Self, crate::sync::StoreError> {
        let last = Mutex::new(assembly.status(true).await?);
        Ok(Self { assembly: Mutex::new(Some(assembly)), last })
    }

    /// Lets go of the assembly; what was seen last is shown from then on.
    pub(super) fn close(&self) {
        drop(self.assembly.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn last(&self) -> StatusReport {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl StatusSource for Observatory {
    fn status(&self) -> BoxFuture<'_, StatusReport> {
        Box::pin(async {
            let assembly = self.assembly.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(assembly) = assembly else { return self.last() };
            let report = match assembly.status(true).await {
                Ok(report) => report,
                // The last that was known, with the one thing that is known now.
                Err(error) => {
                    let mut report = self.last();
                    report.state = OverallState::Failing;
                    report.store.state = StoreState::Failed;
                    report.message = format!("The store failed to {error}: see the log and restart the service.");
                    report
                }
            };
            gauges::show(&report);
            self.last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&report);
            report
        })
    }
}
