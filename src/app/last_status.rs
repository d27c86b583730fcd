//! The status as it was last known, beside the state: for when the state itself cannot be read any more.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sync::ports::StoreErrorKind;
use crate::sync::report::StatusReport;
use crate::sync::report::status::{OverallState, StoreState};

use super::damage;

const NAME: &str = "last-status.json";

/// Keeps `report` below `state`. On a disk that takes nothing the one before stays.
pub(super) fn keep(state: &Path, report: &StatusReport) {
    let fresh = state.join("last-status.new");
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh);
    let text = serde_json::to_vec(report).unwrap_or_default();
    let written = file.and_then(|mut file| file.write_all(&text));
    let kept = written.and_then(|()| fs::rename(&fresh, state.join(NAME)));
    if kept.is_err() {
        fs::remove_file(fresh).ok();
    }
}

/// What was last known below `state`, with `error` for what is known now. `None` when nothing was kept, and when the
/// error is none of a disk or a damaged state.
pub(super) fn instead_of(error: &anyhow::Error, state: &Path) -> Option<StatusReport> {
    if !matches!(damage::kind(error), Some(StoreErrorKind::Io | StoreErrorKind::Corrupt)) {
        return None;
    }
    let mut report: StatusReport = serde_json::from_slice(&fs::read(state.join(NAME)).ok()?).ok()?;
    report.state = OverallState::Failing;
    report.store.state = StoreState::Failed;
    report.message = format!("The state cannot be read: {error:#}. All else is as it was at {}.", report.now);
    Some(report)
}
