//! How far each sink is: the one owner of their positions and of what is noted about them.
//!
//! Deliveries confirm, a full outbox detaches, windows that close publish; all of it goes through here, one at a time,
//! so that no confirmation ever puts a detached sink back and no published watermark runs ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::backpressure::Held;
use super::fullness::{Holder, judge};
use super::observer::{Event, SharedObserver};
use super::ports::{Held as Stock, OutboxEntry, SinkPosition, Slice, Snapshot, Store, StoreError, StoreErrorKind};
use super::published::Marks;
use super::report::status::{Gap, SinkState};
use super::report::summary::ErrorReport;
use super::settings::RouteSettings;
use super::store_handle::StoreHandle;
use super::{Seq, ledger};
use crate::clock::SharedClock;
use crate::record::Stream;

/// The limits beyond which capture waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
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
}

#[derive(Default)]
struct Inner {
    positions: BTreeMap<String, SinkPosition>,
    notes: BTreeMap<String, SinkNote>,
    marks: Marks,
    /// Sinks for which the filling outbox was reported and has not emptied since.
    reported: BTreeSet<String>,
}

/// What is kept about a sink beside its position, in [`Snapshot::Sinks`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkNote {
    /// By stream: everything captured before is confirmed.
    #[serde(default)]
    pub published: BTreeMap<Stream, Timestamp>,
    /// What the sink missed when it lost its place.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// What is wrong with it, until a delivery succeeds: a process that ended must not take it along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<SinkTrouble>,
    /// How much it held when it was last asked; `None` when nothing is known, as while it has no place.
    #[serde(default)]
    pub held: Option<Stock>,
    /// It once held changes up to here that this store never issued, and a rebuild was begun for that.
    #[serde(default)]
    pub ahead: Option<Seq>,
    /// The streams that it must be loaded with before it holds everything again.
    #[serde(default)]
    pub unloaded: BTreeSet<Stream>,
    /// By stream: the load is with the sink, and `published` counts again, once everything up to here is confirmed.
    #[serde(default)]
    pub loaded_at: BTreeMap<Stream, Seq>,
    /// Where its place was fixed when the load that it needs began.
    #[serde(default)]
    pub fixed_at: Seq,
}

/// What is wrong with a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkTrouble {
    /// `retrying` or `open`.
    pub state: SinkState,
    /// Since when, by our own clock.
    pub since: Timestamp,
    /// The last failure; free of private values.
    pub error: ErrorReport,
}

/// A sink's place and what is noted about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkPlace {
    /// Its position, with what the store counts.
    pub position: SinkPosition,
    /// What is noted.
    pub note: SinkNote,
}

impl SinkPlace {
    /// Whether it lacks what only a load can bring.
    #[must_use]
    pub fn needs_reload(&self) -> bool {
        !self.position.attached || !self.note.unloaded.is_empty()
    }
}

impl Positions {
    /// Takes the sinks of `routes` in: known ones keep their place, those no longer configured lose it, new ones begin
    /// at the beginning. A sink that takes a stream since after its first load began must be loaded with it.
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
        let inner = store.call(move |store| Inner::open(store, &configured)).await?;
        let routes = routes.iter().map(|route| (route.name.clone(), route.clone())).collect();
        Ok(Arc::new(Self { routes, limits, store, clock, observer, inner: Mutex::new(inner) }))
    }

    /// Whether there is room for more changes. Detaches what a full outbox makes it detach.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn room(&self) -> Result<Result<(), Held>, StoreError> {
        let mut inner = self.inner.lock().await;
        let read = |store: &dyn Store| Ok::<_, StoreError>((store.free_bytes()?, store.outbox_usage()?));
        let (free_bytes, usage) = self.store.call(read).await?;
        if let Some(free_bytes) = free_bytes.filter(|free| *free < self.limits.min_free_bytes) {
            return Ok(Err(Held::DiskLow { free_bytes, min_bytes: self.limits.min_free_bytes }));
        }
        if usage.bytes.saturating_mul(100) / self.limits.outbox_max_bytes.max(1) < super::fullness::ALERT_PERCENT {
            inner.reported.clear();
            return Ok(Ok(()));
        }
        inner.positions = self.store.call(|store| store.sink_positions()).await?;
        let holders: Vec<Holder> = inner.positions.iter().filter_map(|(name, at)| self.holder(name, at)).collect();
        let fullness = judge(usage.bytes, self.limits.outbox_max_bytes, &holders);
        for sink in &fullness.filling {
            if inner.reported.insert(sink.clone()) {
                let percent = fullness.percent;
                self.observer.observe(&Event::OutboxFilling { sink: sink.clone(), percent });
            }
        }
        for sink in &fullness.detach {
            self.detach(&mut inner, sink).await?;
        }
        Ok(if fullness.hold { Err(Held::OutboxFull { sinks: fullness.filling.join(", ") }) } else { Ok(()) })
    }

    /// Takes the changes of patrons that have waited longer than the retention out of the outbox (A12), with a gap for
    /// each sink that was still to get them.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn expire(&self) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let now = self.clock.now();
        let retention = SignedDuration::try_from(self.limits.retention).unwrap_or(SignedDuration::MAX);
        let Ok(limit) = now.checked_sub(retention) else { return Ok(()) };
        let read = move |store: &dyn Store| Ok::<_, StoreError>((expired(store, limit)?, store.sink_positions()?));
        let (expired, positions) = self.store.call(read).await?;
        let (Some(first), Some(last)) = (expired.first(), expired.last()) else { return Ok(()) };
        let (from, to) = (first.captured, last.captured);
        for (sink, position) in &positions {
            let count = expired.iter().filter(|entry| awaits(sink, position, entry)).count();
            if count > 0 {
                let why = format!("{count} changes of patrons waited longer than privacy.retention and were removed");
                inner.notes.entry(sink.clone()).or_default().gaps.push(gap(from, to, &why));
                self.observer.observe(&Event::ChangesExpired { sink: sink.clone(), count: count as u64 });
            }
        }
        // The gaps are noted before the changes go: a crash in between leaves a gap that is told twice, never none.
        self.save_notes(&inner).await?;
        let dropped: Vec<Seq> = expired.iter().map(|entry| entry.seq).collect();
        for part in dropped.chunks(200) {
            let slice = Slice { dropped: part.to_vec(), ..Slice::default() };
            self.store.call(move |store| store.commit(slice)).await?;
        }
        Ok(())
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

    /// What `sink` held when it was last asked, of the streams that it takes; `None` when it is detached or nothing is
    /// known.
    pub async fn stock(&self, sink: &str) -> Option<Stock> {
        let inner = self.inner.lock().await;
        let position = inner.positions.get(sink).filter(|position| position.attached)?;
        Some(inner.notes.get(sink)?.held.clone()?.only(&position.streams))
    }

    /// Keeps what `sink` holds now, to be compared with what it holds later.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn take_stock(&self, sink: &str, held: Stock) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let Some(position) = inner.positions.get(sink).filter(|position| position.attached) else { return Ok(()) };
        let held = Some(held.only(&position.streams));
        let note = inner.notes.entry(sink.to_owned()).or_default();
        if note.held == held {
            return Ok(());
        }
        note.held = held;
        self.save_notes(&inner).await
    }

    /// Detaches `sink`, which no longer holds what it had confirmed: it must be loaded again. `missing` says what.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn lose(&self, sink: &str, missing: &str) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        if !inner.positions.get(sink).is_some_and(|position| position.attached) {
            return Ok(());
        }
        let why = format!("it lacks {missing}");
        let known = inner.notes.get(sink).and_then(|note| note.gaps.last()).and_then(|last| last.error.as_deref());
        // After a crash half-way the same is found a second time.
        let gap = (known != Some(&why)).then(|| gap(Timestamp::UNIX_EPOCH, self.clock.now(), &why));
        self.set_detached(&mut inner, sink, gap).await?;
        self.observer.observe(&Event::SinkLacks { sink: sink.into(), missing: missing.into() });
        Ok(())
    }

    /// Whether `sink`, which holds changes up to `held`, has been given changes that this store never issued, and no
    /// rebuild was begun for that yet. Ask before anything is confirmed in its name.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn is_ahead(&self, sink: &str, held: Seq) -> Result<bool, StoreError> {
        let inner = self.inner.lock().await;
        if inner.notes.get(sink).and_then(|note| note.ahead).is_some_and(|known| known >= held) {
            return Ok(false);
        }
        let confirmed = inner.positions.get(sink).filter(|position| position.attached).map(|at| at.confirmed);
        self.store
            .call(move |store| {
                if held > store.last_seq()? {
                    return Ok(true);
                }
                // What it was given and did not confirm still waits for it, else it came from somewhere else.
                let Some(before) = Seq::new(held.value().saturating_sub(1)) else { return Ok(false) };
                let is_waiting =
                    || store.outbox_entries_after(before, 1).map(|next| next.first().map(|entry| entry.seq));
                Ok::<_, StoreError>(confirmed.is_some_and(|confirmed| held > confirmed) && is_waiting()? != Some(held))
            })
            .await
    }

    /// Notes that a rebuild was begun because `sink` held changes up to `held`: it never begins twice for one cause.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn note_ahead(&self, sink: &str, held: Seq) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        inner.notes.entry(sink.to_owned()).or_default().ahead = Some(held);
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

    /// Prepares the load of `sink` with `stream`. A sink without a place gets one at the end of the order as it now is,
    /// and must then be loaded with everything it takes. Tells where its place was fixed; `None` when there is no such
    /// sink.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn begin_reload(&self, sink: &str, stream: Stream) -> Result<Option<Seq>, StoreError> {
        let mut inner = self.inner.lock().await;
        let Inner { positions, notes, .. } = &mut *inner;
        let Some(position) = positions.get_mut(sink) else { return Ok(None) };
        let note = notes.entry(sink.to_owned()).or_default();
        if !position.attached {
            let last = self.store.call(|store| store.last_seq()).await?;
            (position.attached, position.confirmed) = (true, last);
            note.unloaded = position.streams.iter().copied().collect();
            note.loaded_at.clear();
            note.published.clear();
            note.fixed_at = last;
        } else if !note.unloaded.insert(stream) {
            return Ok(Some(note.fixed_at));
        }
        note.published.remove(&stream);
        let fixed_at = note.fixed_at;
        let moved: BTreeMap<_, _> = [(sink.to_owned(), position.clone())].into();
        // What it lacks is noted before it counts as attached: a crash in between leaves it detached.
        self.save_notes(&inner).await?;
        self.store.call(move |store| store.set_sink_positions(&moved)).await?;
        Ok(Some(fixed_at))
    }

    /// Notes that every live record and every deletion of `stream` is in the outbox for `sink`.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn complete_reload(&self, sink: &str, stream: Stream) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let last = self.store.call(|store| store.last_seq()).await?;
        if !inner.positions.get(sink).is_some_and(|position| position.attached) {
            return Ok(());
        }
        let note = inner.notes.entry(sink.to_owned()).or_default();
        note.unloaded.remove(&stream);
        note.loaded_at.insert(stream, last);
        if note.unloaded.is_empty() {
            note.gaps.clear();
        }
        self.save_notes(&inner).await?;
        self.publish(&mut inner).await
    }

    /// The attached sinks that are still to be loaded with `stream`.
    pub async fn unloaded(&self, stream: Stream) -> Vec<String> {
        let inner = self.inner.lock().await;
        let waits = |name: &String| {
            inner.notes.get(name).is_some_and(|note| note.unloaded.contains(&stream))
                && inner.positions.get(name).is_some_and(|position| position.attached)
        };
        self.routes.keys().filter(|name| waits(name)).cloned().collect()
    }

    fn holder(&self, name: &str, position: &SinkPosition) -> Option<Holder> {
        let route = self.routes.get(name)?;
        let (confirmed, is_behind) = (position.confirmed, position.pending > 0);
        position.attached.then(|| Holder { name: name.into(), confirmed, is_behind, when_full: route.when_full })
    }

    async fn detach(&self, inner: &mut Inner, sink: &str) -> Result<(), StoreError> {
        let Some(position) = inner.positions.get(sink) else { return Ok(()) };
        let from = position.oldest_pending.unwrap_or_else(|| self.clock.now());
        let gap = gap(from, self.clock.now(), "its backlog filled the outbox");
        self.set_detached(inner, sink, Some(gap)).await?;
        self.observer.observe(&Event::SinkDetached { sink: sink.into() });
        Ok(())
    }

    /// Takes the place of `sink` away; `gap` says why.
    async fn set_detached(&self, inner: &mut Inner, sink: &str, gap: Option<Gap>) -> Result<(), StoreError> {
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
        inner.notes.entry(sink.to_owned()).or_default().held = None;
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

impl Inner {
    fn open(store: &dyn Store, routes: &[RouteSettings]) -> Result<Self, StoreError> {
        let mut inner = Self { notes: read_notes(store)?, ..Self::default() };
        let stored = store.sink_positions()?;
        for name in stored.keys().filter(|name| !routes.iter().any(|route| route.name == **name)) {
            store.remove_sink(name)?;
            inner.notes.remove(name);
        }
        let mut has_begun = BTreeMap::new();
        for stream in Stream::ALL {
            let rows = ledger::own_rows(store, stream)?;
            has_begun.insert(stream, !rows.is_empty());
            if let Some(watermark) = ledger::coverage::coverage(&rows).watermark {
                inner.marks.note(stream, watermark, store.last_seq()?);
            }
        }
        for route in routes {
            let before = stored.get(&route.name);
            let is_late = |stream: &&Stream| {
                has_begun.get(*stream).copied().unwrap_or(false)
                    && before.is_none_or(|before| !before.streams.contains(stream))
            };
            let mut position = before.cloned().unwrap_or(SinkPosition { attached: true, ..SinkPosition::default() });
            position.streams = route.streams.clone();
            let late: Vec<Stream> = route.streams.iter().filter(is_late).copied().collect();
            let note = inner.notes.entry(route.name.clone()).or_default();
            note.unloaded.retain(|stream| route.streams.contains(stream));
            note.unloaded.extend(if position.attached { &late } else { &route.streams });
            if before.is_none() && !late.is_empty() {
                let last = store.last_seq()?;
                (position.confirmed, note.fixed_at) = (last, last);
            }
            if !position.attached
                && let Some(note) = inner.notes.get_mut(&route.name)
            {
                note.held = None;
            }
            inner.positions.insert(route.name.clone(), position);
        }
        let notes = serde_json::to_vec(&inner.notes).expect("notes hold nothing that JSON cannot");
        store.save_snapshot(Snapshot::Sinks, &notes)?;
        store.set_sink_positions(&inner.positions)?;
        Ok(inner)
    }
}

/// The waiting changes of patrons that were captured before `limit`, in order. Stops at the first change that is
/// younger: what follows was captured later.
fn expired(store: &dyn Store, limit: Timestamp) -> Result<Vec<OutboxEntry>, StoreError> {
    let mut expired = Vec::new();
    let mut after = Seq::ZERO;
    loop {
        let page = store.outbox_entries_after(after, 500)?;
        let Some(last) = page.last() else { return Ok(expired) };
        after = last.seq;
        let has_younger = page.iter().any(|entry| entry.captured >= limit);
        let old = page.into_iter().filter(|entry| entry.stream == Stream::Patrons && entry.captured < limit);
        expired.extend(old);
        if has_younger {
            return Ok(expired);
        }
    }
}

/// Whether `sink` is still to get `entry`.
fn awaits(sink: &str, position: &SinkPosition, entry: &OutboxEntry) -> bool {
    position.attached
        && position.confirmed < entry.seq
        && position.streams.contains(&entry.stream)
        && entry.only_for.as_ref().is_none_or(|only| only == sink)
}

fn read_notes(store: &dyn Store) -> Result<BTreeMap<String, SinkNote>, StoreError> {
    let Some(bytes) = store.snapshot(Snapshot::Sinks)? else { return Ok(BTreeMap::new()) };
    serde_json::from_slice(&bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, "read what is noted of sinks").caused_by(error))
}

fn gap(from: Timestamp, to: Timestamp, why: &str) -> Gap {
    Gap { from: from.to_string(), to: to.to_string(), attempts: 0, error: Some(why.into()) }
}
