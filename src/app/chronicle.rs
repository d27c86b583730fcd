//! What becomes of the things that the engine and the breaker tell: log lines and counters.

use std::sync::{Arc, OnceLock, Weak};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::resilience::breaker::{BreakerEvent, BreakerObserver, Scope};
use crate::sync::Store;
use crate::sync::observer::{Event, Observer};
use crate::sync::sweep::ReconcileReport;
use crate::telemetry::metric::{self, RecordResult};

/// Logs each thing once, at the level at which somebody should hear of it, and counts records.
#[derive(Default)]
pub(super) struct Chronicle {
    /// Where the queue is, once it is open. Whoever tells of the past must not hold the state open.
    store: OnceLock<Weak<dyn Store>>,
}

impl Chronicle {
    /// Lets the alert of an outage say how much is queued in `store`.
    pub(super) fn watch(&self, store: &Arc<dyn Store>) {
        // Only the first is kept, as there is only one.
        drop(self.store.set(Arc::downgrade(store)));
    }

    /// Changes that wait in the durable queue. The store may be writing: the runtime is told that this takes a moment.
    fn queued(&self) -> Option<u64> {
        let store = self.store.get()?.upgrade()?;
        let read = || store.outbox_usage().ok().map(|usage| usage.entries);
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
            _ => read(),
        }
    }
}

impl Observer for Chronicle {
    fn observe(&self, event: &Event) {
        match event {
            Event::PageCaptured { stream, pass, entries, changes, .. } => {
                let (fetched, quarantined) = (entries.fetched(), entries.quarantined);
                tracing::debug!(event = "page_captured", %stream, ?pass, fetched, changes, quarantined, "captured a page");
                for (result, count) in [
                    (RecordResult::Changed, entries.changed),
                    (RecordResult::Unchanged, entries.unchanged),
                    (RecordResult::Stale, entries.stale),
                    (RecordResult::Deleted, entries.deleted),
                    (RecordResult::DeletedUnseen, entries.deleted_unseen),
                    (RecordResult::Quarantined, entries.quarantined),
                ] {
                    metric::records(stream.name(), result, count);
                }
                for (kind, count) in entries.losses.iter() {
                    metric::marc_losses(kind.name(), count);
                }
            }
            Event::RowDone { stream, pass, span } => {
                tracing::debug!(event = "window_done", %stream, ?pass, span, "window done");
            }
            Event::RowFailed { stream, pass, span, attempts, error } => {
                tracing::warn!(
                    event = "window_failed", %stream, ?pass, span, attempts, kind = error.kind,
                    endpoint = error.endpoint, status_code = error.status_code, code = error.code,
                    correlation_id = error.correlation_id, "window failed and stays owed: {}", error.message
                );
            }
            Event::RowParked { stream, pass, resume_at } => {
                tracing::info!(event = "window_parked", %stream, ?pass, %resume_at, "waits for quota");
            }
            Event::ClockStepped { step } => {
                tracing::warn!(event = "clock_stepped", step = step.as_secs_f64(), "Sierra's clock was stepped");
            }
            Event::DateMissing => {
                tracing::warn!(
                    event = "date_missing",
                    "Sierra's answers have no Date that can be read: a run ends five minutes before this machine's time; \
                     see that this machine's clock is right, and that no proxy takes the header away"
                );
            }
            Event::NothingToLoad { stream } => {
                tracing::warn!(
                    event = "nothing_to_load", %stream,
                    "the first load found no record at all: if there should be some, see that the API key has the role to \
                     read them (`sierra-sync check`) and that sierra.base_url is that of your library"
                );
            }
            Event::DateNotBelieved { date } => {
                tracing::error!(
                    event = "date_not_believed",
                    %date,
                    "Sierra's Date is more than a day off this machine's clock and is not used: check both clocks; until \
                     then a run ends five minutes before this machine's time"
                );
            }
            Event::SinkAhead { sink, seq } => {
                tracing::error!(
                    event = "sink_ahead",
                    sink,
                    seq = seq.value(),
                    "the sink holds changes that this state never issued: the state was restored from a backup, or is \
                     a new one; a rebuild makes every sink equal to Sierra again"
                );
            }
            Event::StateSetAside { place, why } => {
                tracing::error!(
                    event = "state_set_aside",
                    place,
                    "the state was damaged ({why}): it was set aside in {place} with what could be read of it, a new one \
                     was begun, and a rebuild makes every sink equal to Sierra again; once nobody needs it any more, \
                     remove that directory, and see that the disk is well"
                );
            }
            Event::RebuildBegun { streams } => {
                let names: Vec<&str> = streams.iter().map(|stream| stream.name()).collect();
                tracing::warn!(
                    event = "rebuild_begun",
                    streams = names.join(", "),
                    "a rebuild begins: every record is read and delivered again, and every deletion that Sierra \
                     remembers; it goes on after an interruption and ends by itself"
                );
            }
            Event::RebuildDone { stream } => {
                tracing::info!(event = "rebuild_done", %stream, "the rebuild is complete");
            }
            Event::PageTakenApart { stream, poisoned, calls } => {
                tracing::warn!(event = "page_taken_apart", %stream, poisoned, calls, "took a failing page apart");
            }
            Event::CaptureHeld { stream, reason } => {
                tracing::error!(event = "capture_held", %stream, "capture waits: {reason}");
            }
            Event::StreamStopped { stream, error } => {
                tracing::error!(
                    event = "stream_stopped", %stream, kind = error.kind, status_code = error.status_code,
                    code = error.code, correlation_id = error.correlation_id, hint = error.hint,
                    "stopped until a person acts: {}", error.message
                );
            }
            Event::PassEnded { stream, outcome } => {
                tracing::debug!(event = "pass_ended", %stream, ?outcome, "pass ended");
            }
            Event::Delivered { sink, changes, through } => {
                tracing::debug!(event = "delivered", sink, changes, through = through.value(), "delivered");
            }
            Event::DeliveryRetried { sink, attempt, error } => {
                tracing::warn!(event = "delivery_retried", sink, attempt, "delivery failed: {}", error.message);
            }
            Event::ChangeRefused { sink, seq, reason } => {
                tracing::error!(event = "change_refused", sink, seq = seq.value(), "a change was refused: {reason}");
            }
            Event::SinkDown { sink, error } => {
                tracing::error!(event = "sink_down", sink, hint = error.hint, "takes no deliveries: {}", error.message);
            }
            Event::SinkUp { sink } => tracing::info!(event = "sink_up", sink, "takes deliveries again"),
            Event::OutboxFilling { sink, percent } => {
                tracing::error!(event = "outbox_filling", sink, percent, "this sink's backlog fills the outbox");
            }
            Event::SinkDetached { sink } => {
                tracing::error!(
                    event = "sink_detached",
                    sink,
                    "lost its place because its backlog filled the outbox: load it again with `sierra-sync backfill \
                     <stream> --sink {sink} --force`, for each stream that it takes"
                );
            }
            Event::ChangesExpired { sink, count } => {
                tracing::error!(
                    event = "changes_expired",
                    sink,
                    count,
                    "changes of patrons waited longer than privacy.retention for this sink and were removed; once it takes \
                     deliveries, run `sierra-sync backfill patrons --sink {sink} --force`"
                );
            }
            Event::TaskPanicked { task, restarts } => {
                tracing::error!(
                    event = "task_restarted",
                    task,
                    restarts,
                    "this task met a defect and is started again; please report the place logged before"
                );
            }
            Event::SinkLacks { sink, missing } => {
                tracing::error!(
                    event = "sink_lacks",
                    sink,
                    missing,
                    "no longer holds what it had confirmed, and gets nothing until it is loaded again; \
                     `sierra-sync status` tells how"
                );
            }
            Event::BackfillMoved { stream, id, progress } => {
                tracing::debug!(event = "backfill_moved", %stream, id, done = progress.done, total = progress.total, "went on");
            }
            Event::Reconciled { stream, found } => {
                let ReconcileReport { checked, drift, missing, repaired, stopped } = found;
                match stopped {
                    Some(why) => tracing::error!(
                        event = "reconcile_stopped", %stream, checked, drift, missing, repaired,
                        "reconciliation concluded less than it might: {why}"
                    ),
                    None if drift + missing > 0 => tracing::warn!(
                        event = "reconciled", %stream, checked, drift, missing, repaired,
                        "{drift} records differed from what Sierra holds, {missing} are gone; {repaired} were put right"
                    ),
                    None => tracing::info!(event = "reconciled", %stream, checked, "all {checked} records agree"),
                }
            }
            Event::LateFound { stream, count } => {
                tracing::warn!(
                    event = "late_found", %stream, count,
                    "the late sweep found {count} records of {stream} that no window had shown: they became visible later \
                     than streams.{stream}.settle and overlap allow for; raise these if it happens again and again"
                );
            }
            Event::NotFound { stream, count } => {
                tracing::warn!(
                    event = "records_not_found", %stream, count,
                    "Sierra knows nothing of {count} records that were asked for by number; nothing was concluded from it"
                );
            }
            Event::MeaningChanged { stream } => {
                tracing::warn!(
                    event = "meaning_changed", %stream,
                    "the settings that shape the events of {stream} changed (fields, locations, hash_ignore, [privacy], \
                     [marc]): all of {stream} is read and emitted again, beside what changes meanwhile"
                );
            }
            Event::ChoiceChanged { sink } => {
                tracing::warn!(
                    event = "sink_choice_changed",
                    sink,
                    "the settings that choose the records of this sink changed (locations, suppressed): it is loaded again \
                     with all of its streams, beside what changes meanwhile, and what it should not have is deleted there"
                );
            }
            Event::SinkLoaded { sink, stream } => {
                tracing::info!(event = "sink_loaded", sink, %stream, "loaded with all of {stream}");
            }
        }
    }
}

impl BreakerObserver for Chronicle {
    fn on_breaker_event(&self, event: &BreakerEvent) {
        let scope = event.scope().to_string();
        match event {
            BreakerEvent::Opened { reason, correlation_id, .. } => {
                let halted =
                    if event.scope() == Scope::Key { "every call to Sierra" } else { "calls to this endpoint" };
                tracing::error!(
                    event = event.name(), scope, %reason, correlation_id = correlation_id.as_deref(),
                    queued = self.queued(), "breaker opened, {halted} halted: {reason}"
                );
            }
            BreakerEvent::Reopened { reason, .. } => {
                tracing::warn!(event = event.name(), scope, %reason, "breaker stays open: {reason}");
            }
            BreakerEvent::Escalated { open_for, .. } => {
                tracing::error!(event = event.name(), scope, open_for = open_for.as_secs_f64(), "still open");
            }
            BreakerEvent::Closed { by, .. } => tracing::info!(event = event.name(), scope, "{by}"),
            BreakerEvent::Recovered { after, .. } => {
                tracing::info!(event = event.name(), scope, after = after.as_secs_f64(), "recovered");
            }
        }
    }
}
