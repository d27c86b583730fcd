//! Whether the service's loops go on: what feeds the watchdog.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::record::Stream;
use crate::sync::observer::{Event, Observer};
use crate::sync::report::StatusReport;

/// A stream whose pass is under way tells something within this time, or it is stuck: one call takes at most its wall
/// budget and two minutes of quota waits, and every call ends in an event.
const TELLS_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Passes every event on and remembers when each stream told one.
pub(super) struct Progress<O> {
    beneath: O,
    told: Mutex<BTreeMap<Stream, Instant>>,
}

impl<O> Progress<O> {
    pub(super) fn new(beneath: O) -> Self {
        let now = Instant::now();
        Self { beneath, told: Mutex::new(Stream::ALL.into_iter().map(|stream| (stream, now)).collect()) }
    }

    /// Whether no stream is stuck: one that is due has told something lately. Waits for quota and suspended endpoints
    /// end a pass, so that they look healthy here.
    pub(super) fn goes_on(&self, report: &StatusReport) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        Stream::ALL.into_iter().all(|stream| {
            let next_run = report.streams.get(stream.name()).and_then(|stream| stream.next_run);
            let late = next_run.map(|next| report.now.duration_since(next)).unwrap_or_default();
            let is_due_for_long = Duration::try_from(late).is_ok_and(|late| late > TELLS_WITHIN);
            !is_due_for_long || told.get(&stream).is_some_and(|told| told.elapsed() <= TELLS_WITHIN)
        })
    }
}

impl<O: Observer> Observer for Progress<O> {
    fn observe(&self, event: &Event) {
        if let Event::PageCaptured { stream, .. }
        | Event::RowDone { stream, .. }
        | Event::RowFailed { stream, .. }
        | Event::RowParked { stream, .. }
        | Event::PageTakenApart { stream, .. }
        | Event::CaptureHeld { stream, .. }
        | Event::PassEnded { stream, .. } = event
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.insert(*stream, Instant::now());
        }
        self.beneath.observe(event);
    }
}
