//! What the engine tells while it works: for progress lines, logs, counters and alerts.
//!
//! The engine itself writes no log and keeps no metric. It tells each thing once, where it happens; the composition
//! root decides what becomes of it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::backfill::Progress;
use super::capture::tally::EntryTally;
use super::report::summary::{ErrorReport, StreamOutcome};
use super::sweep::ReconcileReport;
use super::{Pass, Seq};
use crate::record::Stream;

/// Hears what the engine does. Called from its tasks, so it must return at once and must not call back.
pub trait Observer: Send + Sync {
    /// One thing happened.
    fn observe(&self, event: &Event);
}

/// A shared observer.
pub type SharedObserver = Arc<dyn Observer>;

/// An observer that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&self, _: &Event) {}
}

/// What can happen. Nothing here holds a value of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A page is committed.
    PageCaptured {
        /// The stream.
        stream: Stream,
        /// The pass.
        pass: Pass,
        /// How the entries of the page were judged.
        entries: EntryTally,
        /// Changes put into the outbox.
        changes: u64,
        /// The seq of the last change, if there was one.
        last_seq: Option<Seq>,
    },
    /// A window or sweep is done.
    RowDone {
        /// The stream.
        stream: Stream,
        /// The pass.
        pass: Pass,
        /// What it covered, for people.
        span: String,
    },
    /// A window or sweep failed and will be tried again.
    RowFailed {
        /// The stream.
        stream: Stream,
        /// The pass.
        pass: Pass,
        /// What it covers, for people.
        span: String,
        /// How often it has failed.
        attempts: u32,
        /// Why.
        error: ErrorReport,
    },
    /// A window or sweep waits for quota.
    RowParked {
        /// The stream.
        stream: Stream,
        /// The pass.
        pass: Pass,
        /// When it goes on.
        resume_at: Timestamp,
    },
    /// Sierra's clock was stepped; the next window reaches further back.
    ClockStepped {
        /// Forward if positive.
        step: SignedDuration,
    },
    /// Sierra's `Date` is so far off that it counts as missing: the run looks as far as our own clock allows.
    DateNotBelieved {
        /// What it said.
        date: Timestamp,
    },
    /// Sierra answers without a `Date` that can be read: told once, and then as if it were too far off.
    DateMissing,
    /// A first load came to its end without a single record.
    NothingToLoad {
        /// The stream.
        stream: Stream,
    },
    /// A sink holds a change that this store never issued: the store was restored from a backup, or lost. A rebuild
    /// begins.
    SinkAhead {
        /// The sink.
        sink: String,
        /// What it holds.
        seq: Seq,
    },
    /// The state was damaged: it was set aside, and a new one begun. A rebuild begins.
    StateSetAside {
        /// Where it lies.
        place: String,
        /// What was wrong with it.
        why: String,
    },
    /// Everything is read and emitted again, with every deletion that Sierra remembers.
    RebuildBegun {
        /// The streams.
        streams: Vec<Stream>,
    },
    /// A stream's rebuild is complete.
    RebuildDone {
        /// The stream.
        stream: Stream,
    },
    /// A page was taken apart because it failed whenever it was asked for.
    PageTakenApart {
        /// The stream.
        stream: Stream,
        /// Records that could not be read alone either.
        poisoned: u64,
        /// Calls that it took.
        calls: u64,
    },
    /// Capture waits: the outbox is full, or the disk nearly is.
    CaptureHeld {
        /// The stream.
        stream: Stream,
        /// Why.
        reason: String,
    },
    /// A stream stops until a person acts.
    StreamStopped {
        /// The stream.
        stream: Stream,
        /// Why.
        error: ErrorReport,
    },
    /// A stream's pass has ended.
    PassEnded {
        /// The stream.
        stream: Stream,
        /// How it stands.
        outcome: StreamOutcome,
    },
    /// A sink confirmed changes.
    Delivered {
        /// The sink.
        sink: String,
        /// How many.
        changes: u64,
        /// Up to which place in the order.
        through: Seq,
    },
    /// A delivery failed and is tried again.
    DeliveryRetried {
        /// The sink.
        sink: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why.
        error: ErrorReport,
    },
    /// A sink refused a change for good; it is in the quarantine.
    ChangeRefused {
        /// The sink.
        sink: String,
        /// The change.
        seq: Seq,
        /// Why.
        reason: String,
    },
    /// A sink does not take deliveries: they stop for now.
    SinkDown {
        /// The sink.
        sink: String,
        /// Why.
        error: ErrorReport,
    },
    /// A sink takes deliveries again.
    SinkUp {
        /// The sink.
        sink: String,
    },
    /// A sink's backlog fills most of the outbox.
    OutboxFilling {
        /// The sink.
        sink: String,
        /// How full the outbox is.
        percent: u64,
    },
    /// A sink lost its place because its backlog filled the outbox; it must be loaded again.
    SinkDetached {
        /// The sink.
        sink: String,
    },
    /// Changes of patrons waited longer than they may be kept, and were removed.
    ChangesExpired {
        /// The sink that was still to get them.
        sink: String,
        /// How many.
        count: u64,
    },
    /// A task of the service panicked, which is a defect; it is started again.
    TaskPanicked {
        /// The task: `stream bibs`, `sink archive`.
        task: String,
        /// How often it was started again, this time included.
        restarts: u32,
    },
    /// A sink no longer holds what it had confirmed, and lost its place; it must be loaded again.
    SinkLacks {
        /// The sink.
        sink: String,
        /// What is gone, as the end of a sentence.
        missing: String,
    },
    /// A backfill begins, goes on, or has come to the end of a range.
    BackfillMoved {
        /// The stream.
        stream: Stream,
        /// Its id.
        id: String,
        /// How far it is.
        progress: Progress,
    },
    /// A reconciliation came to its end, or stopped before.
    Reconciled {
        /// The stream.
        stream: Stream,
        /// What it found and did.
        found: ReconcileReport,
    },
    /// A late sweep found records that no window had shown: they became visible after their window was done.
    LateFound {
        /// The stream.
        stream: Stream,
        /// How many.
        count: u64,
    },
    /// Record numbers that a backfill asked for by list, and of which Sierra knows nothing.
    NotFound {
        /// The stream.
        stream: Stream,
        /// How many.
        count: u64,
    },
    /// The settings that shape a stream's events changed: it is loaded again beside the live stream.
    MeaningChanged {
        /// The stream.
        stream: Stream,
    },
    /// A sink is to hold other records than before: it is loaded again.
    ChoiceChanged {
        /// The sink.
        sink: String,
    },
    /// A sink has been loaded with a stream: all of it waits in the outbox or is delivered.
    SinkLoaded {
        /// The sink.
        sink: String,
        /// The stream.
        stream: Stream,
    },
}
