//! Loading a sink from the beginning: where its place is fixed, and when it holds everything again.

use std::collections::BTreeMap;

use super::{Inner, Positions};
use crate::record::Stream;
use crate::sync::Seq;
use crate::sync::ports::StoreError;

impl Positions {
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
            // What it lacks until now the load brings; old files may be taken away before it begins.
            note.held = None;
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
}
