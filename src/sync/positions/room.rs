//! Whether there is room for more changes, and what is done when there is none.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::note::{SinkNote, gap};
use super::{Inner, Positions};
use crate::record::Stream;
use crate::sync::Seq;
use crate::sync::backpressure::{Behind, Held};
use crate::sync::fullness::{ALERT_PERCENT, Fullness, Holder, judge};
use crate::sync::observer::Event;
use crate::sync::pause::Pauses;
use crate::sync::ports::{OutboxEntry, SinkPosition, Slice, Store, StoreError};

impl Positions {
    /// Whether there is room for more changes. Detaches what a full outbox makes it detach.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn room(&self) -> Result<Result<(), Held>, StoreError> {
        let mut inner = self.inner.lock().await;
        let (fullness, held) = self.look(&mut inner).await?;
        if fullness.percent < ALERT_PERCENT && held.is_none() {
            inner.reported.clear();
        }
        for sink in &fullness.filling {
            if inner.reported.insert(sink.clone()) {
                let percent = fullness.percent;
                self.observer.observe(&Event::OutboxFilling { sink: sink.clone(), percent });
            }
        }
        for sink in &fullness.detach {
            self.detach(&mut inner, sink).await?;
        }
        Ok(held.map_or(Ok(()), Err))
    }

    /// Why there is no room for more changes, by the state as it is; `None` when there is. Changes nothing.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn held(&self) -> Result<Option<Held>, StoreError> {
        let mut inner = self.inner.lock().await;
        Ok(self.look(&mut inner).await?.1)
    }

    /// From now on `sinks` deliver until they are drained, and nobody delivers after that; until [`Self::all_rest`].
    pub(in crate::sync) fn are_at_work(&self, sinks: impl Iterator<Item = String>) {
        *self.at_work() = Some(sinks.collect());
    }

    /// `sink` delivers no more, for whatever reason.
    pub(in crate::sync) fn rests(&self, sink: &str) {
        if let Some(at_work) = self.at_work().as_mut() {
            at_work.remove(sink);
        }
    }

    /// The deliveries are over.
    pub(in crate::sync) fn all_rest(&self) {
        *self.at_work() = None;
    }

    /// Whether deliveries under way can end `held`; `None` where they come and go by themselves, as in a service. What a
    /// sink frees of a disk is known only once nothing waits for it any more.
    ///
    /// # Errors
    /// On any storage error.
    pub(in crate::sync) async fn is_being_freed(&self, held: &Held) -> Result<Option<bool>, StoreError> {
        let Some(at_work) = self.at_work().clone() else { return Ok(None) };
        if let Held::OutboxFull { sinks, .. } = held {
            return Ok(Some(sinks.iter().any(|sink| at_work.contains(sink))));
        }
        let positions = self.store.call(|store| store.sink_positions()).await?;
        let drains = |(name, at): (&String, &SinkPosition)| at.attached && at.pending > 0 && at_work.contains(name);
        Ok(Some(positions.iter().any(drains)))
    }

    fn at_work(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of undelivered changes at which `when_full` acts.
    #[must_use]
    pub fn outbox_max_bytes(&self) -> u64 {
        self.limits.outbox_max_bytes
    }

    async fn look(&self, inner: &mut Inner) -> Result<(Fullness, Option<Held>), StoreError> {
        let read = |store: &dyn Store| Ok::<_, StoreError>((store.free_bytes()?, store.outbox_usage()?));
        let (free_bytes, usage) = self.store.call(read).await?;
        if let Some(free_bytes) = free_bytes.filter(|free| *free < self.limits.min_free_bytes) {
            let (place, min_bytes) = (self.limits.place.clone(), self.limits.min_free_bytes);
            return Ok((Fullness::default(), Some(Held::DiskLow { place, free_bytes, min_bytes })));
        }
        let (bytes, max_bytes) = (usage.bytes, self.limits.outbox_max_bytes);
        if bytes.saturating_mul(100) / max_bytes.max(1) < ALERT_PERCENT {
            return Ok((Fullness::default(), None));
        }
        let read = |store: &dyn Store| Ok::<_, StoreError>((store.sink_positions()?, Pauses::kept(store)?));
        let (positions, pauses) = self.store.call(read).await?;
        inner.positions = positions;
        let holders: Vec<Holder> = inner.positions.iter().filter_map(|(name, at)| self.holder(name, at)).collect();
        let fullness = judge(bytes, max_bytes, &holders);
        if !fullness.hold {
            return Ok((fullness, None));
        }
        let sinks = fullness.filling.clone();
        let remedies = sinks.iter().map(|sink| self.why_behind(inner, &pauses, sink).remedy(sink));
        let remedy = remedies.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ");
        let held = Held::OutboxFull { place: self.limits.place.clone(), bytes, max_bytes, sinks, remedy };
        Ok((fullness, Some(held)))
    }

    fn why_behind(&self, inner: &Inner, pauses: &Pauses, sink: &str) -> Behind {
        let is_down = |note: &SinkNote| note.trouble.is_some();
        match self.routes.get(sink) {
            Some(route) if route.paused => Behind::Unconfigured,
            _ if pauses.sinks.contains_key(sink) => Behind::Paused,
            _ if inner.notes.get(sink).is_some_and(is_down) => Behind::Down,
            _ => Behind::Slow,
        }
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
            let count = expired.iter().filter(|entry| entry.is_awaited_by(sink, position)).count();
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

    fn holder(&self, name: &str, position: &SinkPosition) -> Option<Holder> {
        let route = self.routes.get(name)?;
        let (confirmed, is_behind) = (position.confirmed, position.pending > 0);
        position.attached.then(|| Holder { name: name.into(), confirmed, is_behind, when_full: route.when_full })
    }

    async fn detach(&self, inner: &mut Inner, sink: &str) -> Result<(), StoreError> {
        let Some(position) = inner.positions.get(sink) else { return Ok(()) };
        let from = position.oldest_pending.unwrap_or_else(|| self.clock.now());
        let gap = gap(from, self.clock.now(), "its backlog filled the outbox");
        self.set_detached(inner, sink, Some(gap), None).await?;
        self.observer.observe(&Event::SinkDetached { sink: sink.into() });
        Ok(())
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
