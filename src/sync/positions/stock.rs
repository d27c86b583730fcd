//! What a sink holds, and what it has lost or was given by somebody else.

use jiff::Timestamp;

use super::Positions;
use super::note::gap;
use crate::sync::Seq;
use crate::sync::observer::Event;
use crate::sync::ports::{Held as Stock, StoreError};

impl Positions {
    /// What `sink` held when it was last asked, of the streams that it takes; `None` when nothing is known. A sink
    /// without a place is still counted: it may lose more.
    pub async fn stock(&self, sink: &str) -> Option<Stock> {
        let inner = self.inner.lock().await;
        let position = inner.positions.get(sink)?;
        Some(inner.notes.get(sink)?.held.clone()?.only(&position.streams))
    }

    /// Keeps what `sink` holds now, to be compared with what it holds later.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn take_stock(&self, sink: &str, held: Stock) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        let Some(position) = inner.positions.get(sink) else { return Ok(()) };
        let held = Some(held.only(&position.streams));
        let note = inner.notes.entry(sink.to_owned()).or_default();
        if note.held == held {
            return Ok(());
        }
        note.held = held;
        self.save_notes(&inner).await
    }

    /// Detaches `sink`, which no longer holds what it had confirmed: it must be loaded again. `missing` says what, and
    /// `held` what is left: more of it may go. A sink that is detached already has one more gap.
    ///
    /// # Errors
    /// On any storage error.
    pub async fn lose(&self, sink: &str, missing: &str, held: Option<Stock>) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().await;
        if !inner.positions.contains_key(sink) {
            return Ok(());
        }
        let why = format!("it lacks {missing}");
        let known = inner.notes.get(sink).and_then(|note| note.gaps.last()).and_then(|last| last.error.as_deref());
        // After a crash half-way the same is found a second time.
        let gap = (known != Some(&why)).then(|| gap(Timestamp::UNIX_EPOCH, self.clock.now(), &why));
        self.set_detached(&mut inner, sink, gap, held).await?;
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
}
