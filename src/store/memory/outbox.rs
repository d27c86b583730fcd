//! The outbox in memory, with what waits for each sink counted as it changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::store::backlog::{Backlog, Backlogs, Waiting, first_needed};
use crate::sync::ports::{OutboxEntry, OutboxUsage, SinkPosition};
use crate::sync::{Change, Seq};

/// Waiting changes and the sinks that they wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    held: BTreeMap<Seq, Arc<Change>>,
    usage: OutboxUsage,
    sinks: Backlogs,
}

impl Outbox {
    pub(super) fn append(&mut self, change: Change) {
        for (name, backlog) in &mut self.sinks {
            backlog.add(name, &waiting(&change));
        }
        self.usage.entries += 1;
        self.usage.bytes += size(&change);
        self.held.insert(change.seq, Arc::new(change));
    }

    pub(super) fn after(&self, after: Seq, limit: usize, max_bytes: usize) -> Vec<Change> {
        let mut taken = Vec::new();
        let mut bytes = 0_u64;
        for change in self.range_after(after).take(limit) {
            bytes += size(change);
            if !taken.is_empty() && bytes > u64::try_from(max_bytes).unwrap_or(u64::MAX) {
                break;
            }
            taken.push(Change::clone(change));
        }
        taken
    }

    pub(super) fn entries_after(&self, after: Seq, limit: usize) -> Vec<OutboxEntry> {
        self.range_after(after).take(limit).map(|change| entry(change)).collect()
    }

    pub(super) fn usage(&self) -> OutboxUsage {
        self.usage
    }

    pub(super) fn sinks(&self) -> &Backlogs {
        &self.sinks
    }

    pub(super) fn set_positions(&mut self, positions: BTreeMap<String, SinkPosition>) {
        for (name, position) in positions {
            let mut backlog = match self.sinks.remove(&name) {
                Some(backlog) if backlog.only_advances_to(&position) => self.advanced(&name, backlog, &position),
                _ => self.recounted(&name, Backlog::at(&position)),
            };
            backlog.streams = position.streams;
            self.sinks.insert(name, backlog);
        }
        self.trim();
    }

    pub(super) fn remove_sink(&mut self, name: &str) {
        self.sinks.remove(name);
        self.trim();
    }

    /// Takes changes out that will never be delivered.
    pub(super) fn drop_changes(&mut self, dropped: &[Seq]) {
        let gone: Vec<_> = dropped.iter().filter_map(|seq| self.take(*seq)).collect();
        let mut sinks = std::mem::take(&mut self.sinks);
        for (name, backlog) in &mut sinks {
            let wanted = gone.iter().filter(|change| backlog.wants(name, &waiting(change))).count();
            if wanted > 0 {
                backlog.pending -= u64::try_from(wanted).unwrap_or(backlog.pending).min(backlog.pending);
                backlog.oldest = self.oldest_for(name, backlog);
            }
        }
        self.sinks = sinks;
    }

    fn advanced(&self, name: &str, mut backlog: Backlog, position: &SinkPosition) -> Backlog {
        let passed = self.held.range((Bound::Excluded(backlog.confirmed), Bound::Included(position.confirmed)));
        let confirmed = passed.filter(|(_, change)| backlog.wants(name, &waiting(change))).count();
        backlog.pending -= u64::try_from(confirmed).unwrap_or(backlog.pending).min(backlog.pending);
        backlog.confirmed = position.confirmed;
        backlog.oldest = self.oldest_for(name, &backlog);
        backlog
    }

    fn recounted(&self, name: &str, mut backlog: Backlog) -> Backlog {
        for change in self.range_after(backlog.confirmed) {
            backlog.add(name, &waiting(change));
        }
        backlog
    }

    fn oldest_for(&self, name: &str, backlog: &Backlog) -> Option<(Seq, jiff::Timestamp)> {
        if backlog.pending == 0 {
            return None;
        }
        let first = self.range_after(backlog.confirmed).find(|change| backlog.wants(name, &waiting(change)))?;
        Some((first.seq, first.captured))
    }

    fn trim(&mut self) {
        let needed = first_needed(&self.sinks);
        while let Some(first) = self.held.keys().next().copied() {
            if needed.is_some_and(|needed| first >= needed) {
                break;
            }
            self.take(first);
        }
    }

    fn take(&mut self, seq: Seq) -> Option<Arc<Change>> {
        let change = self.held.remove(&seq)?;
        self.usage.entries -= 1;
        self.usage.bytes -= size(&change);
        Some(change)
    }

    fn range_after(&self, after: Seq) -> impl Iterator<Item = &Arc<Change>> {
        self.held.range((Bound::Excluded(after), Bound::Unbounded)).map(|(_, change)| change)
    }
}

fn waiting(change: &Change) -> Waiting<'_> {
    Waiting { seq: change.seq, stream: change.stream, captured: change.captured, only_for: change.only_for.as_deref() }
}

fn entry(change: &Change) -> OutboxEntry {
    OutboxEntry {
        seq: change.seq,
        stream: change.stream,
        id: change.id.clone(),
        op: change.op.name(),
        hash: change.hash,
        captured: change.captured,
        source: change.source,
        bytes: size(change),
        only_for: change.only_for.clone(),
    }
}

fn size(change: &Change) -> u64 {
    u64::try_from(change.payload.size() + 64).unwrap_or(u64::MAX)
}
