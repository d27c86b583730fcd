//! Taking the configured sinks in.

use std::collections::BTreeMap;

use super::{Inner, note};
use crate::record::Stream;
use crate::sync::ledger;
use crate::sync::ports::{SinkPosition, Snapshot, Store, StoreError};
use crate::sync::settings::RouteSettings;

impl Inner {
    pub(super) fn open(store: &dyn Store, routes: &[RouteSettings]) -> Result<Self, StoreError> {
        let mut inner = Self { notes: note::read(store)?, ..Self::default() };
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
            if note.was_told_otherwise(route) {
                // What it holds was chosen otherwise. The load has another place than one of the choice before, so that
                // it does not go on where that one stopped.
                let begun = route.streams.iter().filter(|stream| has_begun.get(*stream).copied().unwrap_or(false));
                for stream in begun {
                    note.unloaded.insert(*stream);
                    note.loaded_at.remove(stream);
                    note.published.remove(stream);
                }
                note.fixed_at = store.last_seq()?;
                inner.changed.push(route.name.clone());
            }
            note.choice = Some(route.choice());
            inner.positions.insert(route.name.clone(), position);
        }
        let notes = serde_json::to_vec(&inner.notes).expect("notes hold nothing that JSON cannot");
        store.save_snapshot(Snapshot::Sinks, &notes)?;
        store.set_sink_positions(&inner.positions)?;
        Ok(inner)
    }
}
