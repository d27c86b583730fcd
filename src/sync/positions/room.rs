//! Whether there is room for more changes, and what is done when there is none.

use jiff::{SignedDuration, Timestamp};

use super::note::gap;
use super::{Inner, Positions};
use crate::record::Stream;
use crate::sync::Seq;
use crate::sync::backpressure::Held;
use crate::sync::fullness::{ALERT_PERCENT, Holder, judge};
use crate::sync::observer::Event;
use crate::sync::ports::{OutboxEntry, SinkPosition, Slice, Store, StoreError};

impl Positions {
    /// Whether there is room for more changes. Detaches what a full outbox makes it detach.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn room(&self) -> Result<Result<(), Held>, StoreError> {
        let mut inner = self.inner.lock().await;
        let room = self.judge_room(&mut inner).await?;
        inner.held = room.clone().err();
        Ok(room)
    }

    /// Why there was no room for more changes when it was last asked for; `None` when there was.
    pub async fn held(&self) -> Option<Held> {
        self.inner.lock().await.held.clone()
    }

    /// Bytes of undelivered changes at which `when_full` acts.
    #[must_use]
    pub fn outbox_max_bytes(&self) -> u64 {
        self.limits.outbox_max_bytes
    }

    async fn judge_room(&self, inner: &mut Inner) -> Result<Result<(), Held>, StoreError> {
        let read = |store: &dyn Store| Ok::<_, StoreError>((store.free_bytes()?, store.outbox_usage()?));
        let (free_bytes, usage) = self.store.call(read).await?;
        if let Some(free_bytes) = free_bytes.filter(|free| *free < self.limits.min_free_bytes) {
            return Ok(Err(Held::DiskLow { free_bytes, min_bytes: self.limits.min_free_bytes }));
        }
        if usage.bytes.saturating_mul(100) / self.limits.outbox_max_bytes.max(1) < ALERT_PERCENT {
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
            self.detach(inner, sink).await?;
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
