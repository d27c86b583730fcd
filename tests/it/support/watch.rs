//! An observer that checks the invariants after every event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sierra_sync::record::Stream;
use sierra_sync::store::MemoryStore;
use sierra_sync::sync::invariant::ledger_moves_on;
use sierra_sync::sync::observer::{Event, Observer};
use sierra_sync::sync::{LedgerRow, Seq, Store};

/// Watches one run, across crashes.
#[derive(Default)]
pub(crate) struct Watch {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    store: Option<Arc<MemoryStore>>,
    ledgers: BTreeMap<Stream, Vec<LedgerRow>>,
    /// Every change seen in the outbox, with the sink that it was meant for, if for one alone.
    committed: Vec<(Seq, Option<String>)>,
    violations: Vec<String>,
    events: Vec<Event>,
    /// Ledger rows are lost on purpose.
    tolerates_holes: bool,
}

impl Watch {
    /// From now on `store` is looked at.
    pub(crate) fn look_at(&self, store: &Arc<MemoryStore>) {
        self.inner.lock().unwrap().store = Some(Arc::clone(store));
    }

    /// A test that tampers with the ledger says so.
    pub(crate) fn tolerate_holes(&self) {
        let mut inner = self.inner.lock().unwrap();
        inner.tolerates_holes = true;
        inner.ledgers.clear();
    }

    /// Every change that was committed for `sink`.
    pub(crate) fn committed(&self, sink: &str) -> Vec<Seq> {
        let inner = self.inner.lock().unwrap();
        let for_it = inner.committed.iter().filter(|(_, only)| only.as_deref().is_none_or(|only| only == sink));
        for_it.map(|(seq, _)| *seq).collect()
    }

    /// Takes what happened so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.inner.lock().unwrap().events)
    }

    pub(crate) fn assert_sound(&self, context: &str) {
        let inner = self.inner.lock().unwrap();
        assert!(inner.violations.is_empty(), "{context}: {:?}", inner.violations);
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event) {
        let mut inner = self.inner.lock().unwrap();
        inner.events.push(event.clone());
        inner.check(event);
    }
}

impl Inner {
    fn check(&mut self, event: &Event) {
        let Some(store) = self.store.clone().filter(|store| !store.is_down()) else { return };
        let last = self.committed.last().map_or(Seq::ZERO, |(seq, _)| *seq);
        let new = store.outbox_entries_after(last, usize::MAX).expect("the store is up");
        self.committed.extend(new.into_iter().map(|entry| (entry.seq, entry.only_for)));
        for stream in Stream::ALL {
            let after = store.ledger(stream).expect("the store is up");
            let before = self.ledgers.insert(stream, after.clone()).unwrap_or_default();
            if let Err(violation) = ledger_moves_on(&before, &after)
                && !self.tolerates_holes
            {
                self.violations.push(format!("after {event:?}: {violation}"));
            }
        }
    }
}
