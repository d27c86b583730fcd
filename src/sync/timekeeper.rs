//! The one who asks Sierra for the time, and remembers what follows from it across restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Seq;
use super::clock_guard::{ClockGuard, ClockMemory, SierraTime};
use super::observer::{Event, SharedObserver};
use super::ports::{Snapshot, Source, SourceError, Store, StoreError, StoreErrorKind, Traffic};
use super::report::summary::{ErrorReport, StreamOutcome};
use super::store_handle::StoreHandle;
use crate::clock::SharedClock;
use crate::record::Stream;

/// Keeps Sierra's time, the reach back that a step of it asks for, and when each stream last succeeded.
pub struct Timekeeper {
    source: Arc<dyn Source>,
    store: StoreHandle,
    clock: SharedClock,
    observer: SharedObserver,
    inner: Mutex<Inner>,
}

struct Inner {
    guard: ClockGuard,
    memory: Memory,
    has_raised_seq: bool,
}

/// What is kept in [`Snapshot::Schedule`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    #[serde(default)]
    clock: ClockMemory,
    /// Seconds that the next window of each stream reaches back further.
    #[serde(default)]
    reach_back: BTreeMap<Stream, i64>,
    #[serde(default)]
    last_success: BTreeMap<Stream, Timestamp>,
    #[serde(default)]
    last_pass: BTreeMap<Stream, LastPass>,
}

/// How the last pass over a stream ended: what a process that ended must not take along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPass {
    /// How the stream stood.
    pub outcome: StreamOutcome,
    /// The last failure; free of private values.
    pub error: Option<ErrorReport>,
}

/// Why the time is not known.
#[derive(Debug, thiserror::Error)]
pub enum TimeError {
    /// Sierra gave no sign of life.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Timekeeper {
    /// Goes on from what was remembered.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn open(
        source: Arc<dyn Source>,
        store: StoreHandle,
        clock: SharedClock,
        observer: SharedObserver,
    ) -> Result<Self, StoreError> {
        let memory = store.call(read_memory).await?;
        let inner = Inner { guard: ClockGuard::new(memory.clock), memory, has_raised_seq: false };
        Ok(Self { source, store, clock, observer, inner: Mutex::new(inner) })
    }

    /// Asks Sierra for a sign of life. The first one since the opening also raises the order of changes.
    ///
    /// # Errors
    /// When no answer came: no window may then be opened.
    pub async fn ask(&self, streams: &[Stream]) -> Result<(SierraTime, Traffic), TimeError> {
        let pulse = self.source.pulse().await?;
        let mut inner = self.inner.lock().await;
        let time = inner.guard.observe(pulse.date, self.clock.now(), Instant::now());
        let before = inner.memory.clone();
        inner.memory.clock = inner.guard.memory();
        if let Some(step) = time.step {
            for stream in streams {
                let reach = inner.memory.reach_back.entry(*stream).or_default();
                *reach = reach.saturating_add(step.abs().as_secs());
            }
            self.observer.observe(&Event::ClockStepped { step });
        }
        if let Some(date) = time.absurd {
            self.observer.observe(&Event::DateNotBelieved { date });
        }
        if inner.memory.reach_back != before.reach_back {
            self.save(&inner.memory).await?;
        }
        if !inner.has_raised_seq {
            let floor = Seq::floor_at(time.now.as_second());
            self.store.call(move |store| store.raise_seq(floor)).await?;
            inner.has_raised_seq = true;
        }
        Ok((time, pulse.traffic))
    }

    /// How much further the next window of `stream` reaches back.
    pub async fn reach_back(&self, stream: Stream) -> SignedDuration {
        let inner = self.inner.lock().await;
        SignedDuration::from_secs(inner.memory.reach_back.get(&stream).copied().unwrap_or(0))
    }

    /// When `stream` last had a pass without failure, by our own clock.
    pub async fn last_success(&self, stream: Stream) -> Option<Timestamp> {
        self.inner.lock().await.memory.last_success.get(&stream).copied()
    }

    /// Notes how a pass over `stream` ended.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn passed(&self, stream: Stream, succeeded: bool, reached_back: bool) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        if reached_back {
            inner.memory.reach_back.remove(&stream);
        }
        if succeeded {
            inner.memory.last_success.insert(stream, self.clock.now());
        }
        if succeeded || reached_back { self.save(&inner.memory).await } else { Ok(()) }
    }

    /// How the last pass over `stream` ended, in this process or an earlier one.
    pub async fn last_pass(&self, stream: Stream) -> Option<LastPass> {
        self.inner.lock().await.memory.last_pass.get(&stream).cloned()
    }

    /// Notes how a pass over `stream` ended. Written when that is another way than before.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn ended(
        &self,
        stream: Stream,
        outcome: StreamOutcome,
        error: Option<ErrorReport>,
    ) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let last = LastPass { outcome, error };
        if inner.memory.last_pass.get(&stream) == Some(&last) {
            return Ok(());
        }
        inner.memory.last_pass.insert(stream, last);
        self.save(&inner.memory).await
    }

    async fn save(&self, memory: &Memory) -> Result<(), StoreError> {
        let value = serde_json::to_vec(memory).expect("the memory holds nothing that JSON cannot");
        self.store.call(move |store| store.save_snapshot(Snapshot::Schedule, &value)).await
    }
}

fn read_memory(store: &dyn Store) -> Result<Memory, StoreError> {
    let Some(bytes) = store.snapshot(Snapshot::Schedule)? else { return Ok(Memory::default()) };
    serde_json::from_slice(&bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, "read what is due when").caused_by(error))
}
