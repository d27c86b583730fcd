//! The engine: streams and sinks composed over the ports, supervised, and stopped cleanly.
//!
//! Every task is in a `JoinSet` here and answers to one cancellation token. A stream that fails does not stop the
//! others; a store that fails stops everything, since nothing may go on that cannot be remembered.

mod backfill;
mod drain;
mod follow;
mod not_begun;
mod open;
mod pausing;
mod reins;
mod status;
mod supervise;
mod sweeps;
mod sync_once;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::backfill::BackfillLeg;
pub use self::status::{StatusInputs, Vitals};
pub use self::supervise::Supervisor;
pub use self::sweeps::ReconcileOutcome;
pub use self::sync_once::SyncOptions;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::reins::Reins;
use super::backfill::Book;
use super::capture::Lane;
use super::deliver::SinkLane;
use super::meaning::Meanings;
use super::observer::SharedObserver;
use super::ports::{Sink, Source, Store, StoreError};
use super::positions::{Limits, Positions};
use super::report::summary::{ErrorReport, StreamOutcome};
use super::runs::{Run, Runs};
use super::schedule::CronError;
use super::settings::{RouteSettings, StreamSettings};
use super::signal;
use super::store_handle::StoreHandle;
use super::timekeeper::Timekeeper;
use crate::clock::SharedClock;
use crate::marc::MarcSettings;
use crate::privacy::Policy;
use crate::record::Stream;
use crate::seed::RootSeed;

/// What an engine is made of.
pub struct EngineParts {
    /// Where records come from.
    pub source: Arc<dyn Source>,
    /// Where memory is kept.
    pub store: Arc<dyn Store>,
    /// Where changes go.
    pub sinks: Vec<(RouteSettings, Box<dyn Sink>)>,
    /// What is followed, each stream at most once.
    pub streams: Vec<StreamSettings>,
    /// What the events of each stream mean under these settings.
    pub meanings: Meanings,
    /// What may leave this program about people.
    pub policy: Arc<Policy>,
    /// How MARC is made.
    pub marc: MarcSettings,
    /// The library's zone.
    pub zone: TimeZone,
    /// The limits beyond which capture waits.
    pub limits: Limits,
    /// Our own clock.
    pub clock: SharedClock,
    /// Where chance comes from.
    pub seed: RootSeed,
    /// Who hears of what happens.
    pub observer: SharedObserver,
}

/// The engine. Cheap to share behind an `Arc`.
pub struct Engine {
    lanes: BTreeMap<Stream, Arc<Lane>>,
    sinks: BTreeMap<String, Arc<SinkLane>>,
    positions: Arc<Positions>,
    timekeeper: Arc<Timekeeper>,
    store: StoreHandle,
    clock: SharedClock,
    seed: RootSeed,
    observer: SharedObserver,
    board: Arc<Board>,
    book: Arc<Book>,
    quota_lifts: Arc<signal::Sender<u64>>,
    reins: BTreeMap<Stream, Arc<Reins>>,
    runs: Arc<Runs>,
    supervisor: Arc<Supervisor>,
}

/// Why an engine cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A schedule cannot be read. It is refused rather than never run.
    #[error("{setting}: {why}")]
    Schedule {
        /// The key of the setting.
        setting: String,
        /// What is wrong.
        why: CronError,
    },
    /// The stream is not followed.
    #[error("[streams.{stream}] is not configured")]
    UnknownStream {
        /// What was asked for.
        stream: Stream,
    },
    /// The sink does not take the stream: there is nothing of it to load there.
    #[error("sink {sink} does not take {stream}")]
    NotTaken {
        /// The sink.
        sink: String,
        /// The stream.
        stream: Stream,
    },
    /// Two sweeps of one stream would only do the same twice.
    #[error("another sweep of {stream} is under way: try again when it has ended")]
    SweepUnderWay {
        /// The stream.
        stream: Stream,
    },
    /// There is no such sink.
    #[error("no sink is called {name:?}; configured are: {configured}")]
    UnknownSink {
        /// What was asked for.
        name: String,
        /// The names that exist, comma-separated.
        configured: String,
    },
    /// The configuration pauses the sink, and no command changes that.
    #[error(
        "sink {name} is paused by the configuration: set sinks.{name}.paused = false there, and send the service a SIGHUP if \
         one runs"
    )]
    PausedByConfiguration {
        /// The sink.
        name: String,
    },
    /// The stream is paused, and was asked to run.
    #[error("{stream} is paused: `sierra-sync resume --stream {stream}` first")]
    Paused {
        /// The stream.
        stream: Stream,
    },
}

/// How each stream fared last, as long as the engine is open.
#[derive(Debug, Default)]
pub(in crate::sync) struct Board {
    streams: Mutex<BTreeMap<Stream, StreamNote>>,
}

/// What is noted of a stream between its passes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::sync) struct StreamNote {
    pub(in crate::sync) outcome: Option<StreamOutcome>,
    pub(in crate::sync) error: Option<ErrorReport>,
    pub(in crate::sync) next_run: Option<Timestamp>,
    pub(in crate::sync) needs_person: bool,
}

impl Board {
    pub(in crate::sync) fn note(&self, stream: Stream, change: impl FnOnce(&mut StreamNote)) {
        change(self.lock().entry(stream).or_default());
    }

    pub(in crate::sync) fn read(&self, stream: Stream) -> StreamNote {
        self.lock().get(&stream).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Stream, StreamNote>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Says that quota is there again, sooner than was said: whoever waits for it goes on at once (A18).
    pub fn lift_quota_waits(&self) {
        self.quota_lifts.change(|lifts| *lifts += 1);
    }

    /// Holds the deliveries of `sink` until this engine is gone; what waits for it is kept (A10). See [`Engine::pause`].
    ///
    /// # Errors
    /// When there is no such sink.
    pub fn pause_sink(&self, sink: &str) -> Result<(), EngineError> {
        self.sink(sink).map(|lane| lane.paused.set(true))
    }

    /// Lets the deliveries of `sink` go on, whatever held them; also those of one that stopped because it refused too much.
    ///
    /// # Errors
    /// When there is no such sink.
    pub fn resume_sink(&self, sink: &str) -> Result<(), EngineError> {
        self.sink(sink).map(|lane| lane.paused.set(false))
    }

    /// Lets a stream that stopped until a person acts be tried again on its next tick.
    pub fn resume_stream(&self, stream: Stream) {
        self.board.note(stream, |note| note.needs_person = false);
    }

    /// Publishes what the sinks hold open and releases them. Call it once, when nothing runs any more. Tells which
    /// sinks failed.
    pub async fn close(&self) -> Vec<(String, super::SinkError)> {
        let mut failed = Vec::new();
        for (name, lane) in &self.sinks {
            if let Err(error) = lane.close().await {
                failed.push((name.clone(), error));
            }
        }
        failed
    }

    /// What was done lately, the oldest first.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        self.runs.all()
    }

    /// Keeps what was done lately for the next process.
    ///
    /// # Errors
    /// On any storage error.
    pub fn keep_runs(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.runs.save(store)
    }

    fn sink(&self, name: &str) -> Result<&SinkLane, EngineError> {
        self.sinks.get(name).map(Arc::as_ref).ok_or_else(|| EngineError::UnknownSink {
            name: name.to_owned(),
            configured: self.sinks.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}
