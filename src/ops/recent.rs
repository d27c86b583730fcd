//! The status as many callers at once see it: looked up once for all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::sync::report::StatusReport;

use super::StatusSource;

/// A status this old is as good as a new one.
const FRESH_FOR: Duration = Duration::from_millis(250);

/// The last status, and where the next comes from.
pub(super) struct Recent {
    source: Arc<dyn StatusSource>,
    last: Mutex<Option<(Instant, Arc<StatusReport>)>>,
}

impl Recent {
    pub(super) fn of(source: Arc<dyn StatusSource>) -> Self {
        Self { source, last: Mutex::new(None) }
    }

    /// Where it comes from.
    pub(super) fn source(&self) -> &dyn StatusSource {
        self.source.as_ref()
    }

    /// The status, at most a quarter of a second old. Callers wait for the one that looks it up.
    pub(super) async fn status(&self) -> Arc<StatusReport> {
        let mut last = self.last.lock().await;
        if let Some((_, report)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH_FOR) {
            return Arc::clone(report);
        }
        let report = Arc::new(self.source.status().await);
        *last = Some((Instant::now(), Arc::clone(&report)));
        report
    }
}
