//! The one who asks Sierra for the time, and remembers what follows from it across restarts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Seq;
use super::capture::pass::Listed;
use super::clock_guard::{ClockGuard, ClockMemory, Doubt, FARTHEST, SierraTime};
use super::observer::{Event, SharedObserver};
use super::ports::{Snapshot, Source, SourceError, Store, StoreError, StoreErrorKind, Traffic};
use super::report::summary::{ErrorReport, StreamOutcome};
use super::silence::Silence;
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
    doubt: Arc<StdMutex<Option<Doubt>>>,
}

struct Inner {
    guard: ClockGuard,
    memory: Memory,
    has_raised_seq: bool,
    /// Sierra's time when it was last asked for.
    now: Timestamp,
    has_missed_date: bool,
}

/// What is kept in [`Snapshot::Schedule`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    #[serde(default)]
    clock: ClockMemory,
    /// Seconds that the next window of each stream reaches back further.
    #[serde(default)]
    reach_back: BTreeMap<Stream, i64>,
    /// Sierra's clock was stepped forward lately.
    #[serde(default)]
    forward: Option<Forward>,
    /// Sierra's clock was set back, now or earlier.
    #[serde(default)]
    doubt: Option<Doubt>,
    #[serde(default)]
    last_success: BTreeMap<Stream, Timestamp>,
    #[serde(default)]
    last_pass: BTreeMap<Stream, LastPass>,
    /// When Sierra last listed a deletion; where it never did, when it was first asked.
    #[serde(default)]
    deletions: BTreeMap<Stream, Timestamp>,
    #[serde(default)]
    silence: BTreeMap<Stream, Silence>,
}

/// A step forward of Sierra's `Date`. Whether records are stamped by the stepped clock or still by the old one cannot be
/// seen, so every window reaches back by the step for a day, not the next one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Forward {
    /// Seconds.
    by: i64,
    until: Timestamp,
}

/// How the last pass over a stream ended: what a process that ended must not take along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPass {
    /// How the stream stood.
    pub outcome: StreamOutcome,
    /// The last failure; free of private values.
    pub error: Option<ErrorReport>,
    /// When it ended, by our own clock; `None` where an older version kept no such date.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// Until when Sierra asked to be left alone with it.
    #[serde(default)]
    pub wait_until: Option<Timestamp>,
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
        let doubt = Arc::new(StdMutex::new(memory.doubt));
        let inner = Inner {
            guard: ClockGuard::new(memory.clock),
            memory,
            has_raised_seq: false,
            now: Timestamp::MIN,
            has_missed_date: false,
        };
        Ok(Self { source, store, clock, observer, inner: Mutex::new(inner), doubt })
    }

    /// What stamps tell nothing at present: for whoever judges readings.
    pub(in crate::sync) fn doubt(&self) -> Arc<StdMutex<Option<Doubt>>> {
        Arc::clone(&self.doubt)
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
        inner.now = time.now;
        inner.memory.forward = inner.memory.forward.filter(|forward| time.now < forward.until);
        if let Some(step) = time.step {
            if step.is_positive() {
                let by = step.as_secs().max(inner.memory.forward.map_or(0, |forward| forward.by));
                let until = time.now.checked_add(step + FARTHEST).unwrap_or(Timestamp::MAX);
                inner.memory.forward = Some(Forward { by, until });
            } else {
                let doubt = Doubt::after(step, before.clock.last_date, time.now, before.doubt);
                inner.memory.doubt = Some(doubt);
                *self.doubt.lock().unwrap_or_else(PoisonError::into_inner) = Some(doubt);
            }
            for stream in streams {
                let reach = inner.memory.reach_back.entry(*stream).or_default();
                *reach = reach.saturating_add(step.abs().as_secs());
            }
            self.observer.observe(&Event::ClockStepped { step });
        }
        if let Some(date) = time.absurd {
            self.observer.observe(&Event::DateNotBelieved { date });
        }
        if pulse.date.is_none() && !std::mem::replace(&mut inner.has_missed_date, true) {
            self.observer.observe(&Event::DateMissing);
        }
        if inner.memory.reach_back != before.reach_back
            || inner.memory.forward != before.forward
            || inner.memory.doubt != before.doubt
        {
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
        let once = inner.memory.reach_back.get(&stream).copied().unwrap_or(0);
        let forward = inner.memory.forward.filter(|forward| inner.now < forward.until).map_or(0, |forward| forward.by);
        SignedDuration::from_secs(once.max(forward))
    }

    /// When `stream` last had a pass without failure, by our own clock.
    pub async fn last_success(&self, stream: Stream) -> Option<Timestamp> {
        self.inner.lock().await.memory.last_success.get(&stream).copied()
    }

    /// Since when Sierra has listed no deletion of `stream` in any complete pass, by our own clock.
    pub async fn no_deletions_since(&self, stream: Stream) -> Option<Timestamp> {
        self.inner.lock().await.memory.deletions.get(&stream).copied()
    }

    /// Since when no window of `stream` has brought anything, once that is unlikely.
    pub async fn silent_since(&self, stream: Stream) -> Option<Timestamp> {
        self.inner.lock().await.memory.silence.get(&stream).and_then(Silence::unlikely_since)
    }

    /// Notes how a pass over `stream` ended, and what it listed.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn passed(
        &self,
        stream: Stream,
        succeeded: bool,
        reached_back: bool,
        listed: Listed,
    ) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let now = self.clock.now();
        if let Some(came) = listed.updates {
            inner.memory.silence.entry(stream).or_default().note(came, now);
        }
        match listed.deletions {
            Some(true) => drop(inner.memory.deletions.insert(stream, now)),
            Some(false) => drop(inner.memory.deletions.entry(stream).or_insert(now)),
            None => {}
        }
        if reached_back {
            inner.memory.reach_back.remove(&stream);
        }
        if succeeded {
            inner.memory.last_success.insert(stream, now);
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
        wait_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let last = LastPass { outcome, error, at: Some(self.clock.now()), wait_until };
        let before = inner.memory.last_pass.insert(stream, last.clone());
        if before.is_some_and(|before| LastPass { at: last.at, ..before } == last) {
            return Ok(());
        }
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
