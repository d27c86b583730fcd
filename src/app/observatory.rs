//! What the ops endpoint looks through: the status of a running engine.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::ops::{Deed, History, Past, StatusSource};
use crate::sync::report::StatusReport;
use crate::sync::report::status::{OverallState, StoreState};

use super::{actions, assembly::Assembly, queue};

/// So many deeds of people are shown.
const DEEDS_SHOWN: usize = 50;

/// The samples of the last day, kept beside the state of `config`.
pub(super) fn history(config: &Config) -> History {
    History::kept_in(&config.store.path.join("dashboard-history"), SystemClock.now())
}

/// The status of `assembly`, and of its failure.
pub(super) struct Observatory {
    assembly: Mutex<Option<Arc<Assembly>>>,
    last: Mutex<StatusReport>,
    past: Mutex<Past>,
    /// Ends what is done for people who need not wait for it.
    over: CancellationToken,
}

impl Observatory {
    /// Looks at `assembly`.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) async fn over(assembly: Arc<Assembly>) -> Result<Self, crate::sync::StoreError> {
        let last = Mutex::new(assembly.status(true).await?);
        let (past, over) = (Mutex::default(), CancellationToken::new());
        Ok(Self { assembly: Mutex::new(Some(assembly)), last, past, over })
    }

    /// Lets go of the assembly; what was seen last is shown from then on.
    pub(super) fn close(&self) {
        self.over.cancel();
        drop(self.assembly.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// What is looked at, and what says that it is closed; `None` once it is.
    pub(super) fn open(&self) -> Option<(Arc<Assembly>, CancellationToken)> {
        let assembly = self.assembly.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some((assembly, self.over.clone()))
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
            self.last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&report);
            report
        })
    }

    fn past(&self) -> BoxFuture<'_, Past> {
        Box::pin(async {
            if let Some((assembly, _)) = self.open() {
                let runs = assembly.engine.runs();
                let actions = queue::off_runtime(move || actions::all(assembly.store.as_ref())).await;
                let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
                past.runs = runs;
                // A store that failed is told by the status.
                if let Ok(actions) = actions {
                    past.actions = actions.into_iter().rev().take(DEEDS_SHOWN).map(deed).rev().collect();
                }
            }
            self.past.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }
}

fn deed(action: actions::Action) -> Deed {
    let actions::Action { at, command, by, reason, until: _, outcome } = action;
    Deed { at, command, by, reason, outcome }
}
