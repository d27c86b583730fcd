//! How far each sink is: the one owner of their positions and of what is noted about them.
//!
//! Deliveries confirm, a full outbox detaches, windows that close publish; all of it goes through here, one at a time,
//! so that no confirmation ever puts a detached sink back and no published watermark runs ahead.

mod loads;
mod note;
mod opening;
mod room;
mod stock;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;

use super::Seq;
use super::observer::{Event, SharedObserver};
use super::ports::{Held as Stock, SinkPosition, Snapshot, StoreError};
use super::published::Marks;
use super::report::status::{Gap, SinkState};
use super::report::summary::ErrorReport;
use super::settings::RouteSettings;
use super::store_handle::StoreHandle;
use crate::clock::SharedClock;
use crate::record::Stream;

pub use note::{SinkNote, SinkPlace, SinkTrouble, read_notes};

/// The limits beyond which capture waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The state directory, to be named where a limit holds.
    pub place: String,
    /// Bytes of undelivered changes at which `when_full` acts.
    pub outbox_max_bytes: u64,
    /// Free bytes on the disk below which capture pauses.
    pub min_free_bytes: u64,
    /// How long changes of patrons may wait to be delivered (A12).
    pub retention: Duration,
}

/// The positions of all configured sinks.
pub struct Positions {
    routes: BTreeMap<String, RouteSettings>,
    limits: Limits,
    store: StoreHandle,
    clock: SharedClock,
    observer: SharedObserver,
    inner: Mutex<Inner>,
    /// The sinks that still deliver, where each does so only until it is drained.
    at_work: StdMutex<Option<BTreeSet<String>>>,
}

#[derive(Default)]
struct Inner {
    positions: BTreeMap<String, SinkPosition>,
    notes: BTreeMap<String, SinkNote>,
    marks: Marks,
    /// Sinks for which the filling outbox was reported and has not emptied since.
    reported: BTreeSet<String>,
    /// Sinks whose choice of records was found to have changed when they were taken in.
    changed: Vec<String>,
}

impl Positions {
    /// Takes the sinks of `routes` in: known ones keep their place, those no longer configured lose it, new ones begin
    /// at the beginning. A sink that takes a stream since after its first load began must be loaded with it, and one
    /// that is to hold other records than before with all its streams.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn open(
        routes: &[RouteSettings],
        limits: Limits,
        store: StoreHandle,
        clock: SharedClock,
        observer: SharedObserver,
    ) -> Result<Arc<Self>, StoreError> {
        let configured = routes.to_vec();
        let mut inner = store.call(move |store| Inner::open(store, &configured)).await?;
        for sink in std::mem::take(&mut inner.changed) {
            observer.observe(&Event::ChoiceChanged { sink });
        }
        let routes = routes.iter().map(|route| (route.name.clone(), route.clone())).collect();
        Ok(Arc::new(Self {
            routes,
            limits,
            store,
            clock,
            observer,
            inner: Mutex::new(inner),
            at_work: StdMutex::default(),
        }))
    }

    /// Notes that `sink` holds every change up to and including `through`. Tells whether it is still attached.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn confirm(&self, sink: &str, through: Seq) -> Result<bool, StoreError> {
        let mut inner = self.inner.lock().await;
        let Some(position) = inner.positions.get_mut(sink).filter(|position| position.attached) else {
            return Ok(false);
        };
        if through > position.confirmed {
            position.confirmed = through;
            let moved: BTreeMap<_, _> = [(sink.to_owned(), position.clone())].into();
            self.store.call(move |store| store.set_sink_positions(&moved)).await?;
        }
        self.publish(&mut inner).await?;
        Ok(true)
    }

    /// Notes that everything of `stream` before `watermark` is in the outbox or was confirmed.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn captured(&self, stream: Stream, watermark: Timestamp) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let last = self.store.call(|store| store.last_seq()).await?;
        inner.marks.note(stream, watermark, last);
        // What was never in the outbox cannot be confirmed: a sink for which nothing waits is as far as the store.
        let positions = self.store.call(|store| store.sink_positions()).await?;
        let idle: BTreeMap<String, SinkPosition> = positions
            .into_iter()
            .filter(|(_, position)| position.attached && position.pending == 0 && position.confirmed < last)
            .map(|(name, position)| (name, SinkPosition { confirmed: last, ..position }))
            .collect();
        if !idle.is_empty() {
            inner.positions.extend(idle.clone());
            self.store.call(move |store| store.set_sink_positions(&idle)).await?;
        }
        self.publish(&mut inner).await
    }

    /// Notes how `sink` fares: its state with the last failure, or `None` once a delivery succeeds. Written when that
    /// changes, and not with every delivery.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn troubled(&self, sink: &str, trouble: Option<(SinkState, ErrorReport)>) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let before = inner.notes.get(sink).and_then(|note| note.trouble.as_ref());
        let since = before.map_or_else(|| self.clock.now(), |before| before.since);
        let now = trouble.map(|(state, error)| SinkTrouble { state, since, error });
        if before == now.as_ref() {
            return Ok(());
        }
        inner.notes.entry(sink.to_owned()).or_default().trouble = now;
        self.save_notes(&inner).await
    }

    /// Every sink's place, freshly counted.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn places(&self) -> Result<BTreeMap<String, SinkPlace>, StoreError> {
        let inner = self.inner.lock().await;
        let positions = self.store.call(|store| store.sink_positions()).await?;
        let place = |(name, position): (String, SinkPosition)| {
            let note = inner.notes.get(&name).cloned().unwrap_or_default();
            (name, SinkPlace { position, note })
        };
        Ok(positions.into_iter().filter(|(name, _)| self.routes.contains_key(name)).map(place).collect())
    }

    /// Everything up to here `sink` has confirmed; `None` when it is detached.
    pub async fn confirmed(&self, sink: &str) -> Option<Seq> {
        let inner = self.inner.lock().await;
        inner.positions.get(sink).filter(|position| position.attached).map(|position| position.confirmed)
    }

    /// Takes the place of `sink` away; `gap` says why, `held` what it is counted from now on.
    async fn set_detached(
        &self,
        inner: &mut Inner,
        sink: &str,
        gap: Option<Gap>,
        held: Option<Stock>,
    ) -> Result<(), StoreError> {
        let streams: Vec<Stream> = inner.positions.get(sink).map(|at| at.streams.clone()).unwrap_or_default();
        let note = inner.notes.entry(sink.to_owned()).or_default();
        note.gaps.extend(gap);
        note.unloaded.extend(streams);
        // The gap is noted before the backlog goes: a crash in between leaves a gap that is none, never the reverse.
        // What the sink held is forgotten last, else the cause would be.
        self.save_notes(inner).await?;
        let Some(position) = inner.positions.get_mut(sink) else { return Ok(()) };
        position.attached = false;
        let moved: BTreeMap<_, _> = [(sink.to_owned(), position.clone())].into();
        self.store.call(move |store| store.set_sink_positions(&moved)).await?;
        let held = held.map(|held| held.only(&position.streams));
        inner.notes.entry(sink.to_owned()).or_default().held = held;
        self.save_notes(inner).await
    }

    /// Moves published watermarks to what is confirmed; saves them when one moved.
    async fn publish(&self, inner: &mut Inner) -> Result<(), StoreError> {
        let mut has_moved = false;
        for (name, position) in inner.positions.iter().filter(|(_, position)| position.attached) {
            let note = inner.notes.entry(name.clone()).or_default();
            for stream in &position.streams {
                let is_with_it = note.loaded_at.get(stream).is_none_or(|at| position.confirmed >= *at);
                if note.unloaded.contains(stream) || !is_with_it {
                    continue;
                }
                let Some(reached) = inner.marks.reached(*stream, position.confirmed) else { continue };
                if note.published.get(stream).is_none_or(|before| *before < reached) {
                    note.published.insert(*stream, reached);
                    has_moved = true;
                }
            }
        }
        if has_moved { self.save_notes(inner).await } else { Ok(()) }
    }

    async fn save_notes(&self, inner: &Inner) -> Result<(), StoreError> {
        let value = serde_json::to_vec(&inner.notes).expect("notes hold nothing that JSON cannot");
        self.store.call(move |store| store.save_snapshot(Snapshot::Sinks, &value)).await
    }
}
