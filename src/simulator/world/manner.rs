//! How a command leaves its mark: what it does to `updatedDate`, and when readers see it.

use jiff::{SignedDuration, Timestamp};

use super::{Shelf, Slot, Stamps, World, whole_seconds};

/// How commands leave their mark.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// What `updatedDate` becomes.
    pub stamp: Stamp,
    /// How long the change stays invisible after it was stamped: a commit that drags, an index that lags (BR-072).
    pub visible_after: SignedDuration,
}

/// What a command does to `updatedDate`.
#[derive(Debug, Clone, Copy, Default)]
pub enum Stamp {
    /// Sierra's now.
    #[default]
    Now,
    /// Nothing: a change that no window can see (`sierra-api.md` §7 item 11).
    Keep,
    /// This moment, be it in the past: back-dated loads (BR-069).
    At(Timestamp),
}

impl World {
    /// Runs `commands` in another manner, then returns to the former one.
    pub fn in_manner<T>(&mut self, manner: Manner, commands: impl FnOnce(&mut Self) -> T) -> T {
        let former = std::mem::replace(&mut self.manner, manner);
        let result = commands(self);
        self.manner = former;
        result
    }

    /// Runs `commands` without moving any `updatedDate`.
    pub fn silently<T>(&mut self, commands: impl FnOnce(&mut Self) -> T) -> T {
        self.in_manner(Manner { stamp: Stamp::Keep, ..self.manner }, commands)
    }

    /// Runs `commands` so that readers see what they do only after a while, though it is stamped now.
    pub fn visibly_after<T>(&mut self, delay: SignedDuration, commands: impl FnOnce(&mut Self) -> T) -> T {
        self.in_manner(Manner { visible_after: delay, ..self.manner }, commands)
    }

    /// Runs `commands` with another stamp than now.
    pub fn dated<T>(&mut self, stamp: Timestamp, commands: impl FnOnce(&mut Self) -> T) -> T {
        self.in_manner(Manner { stamp: Stamp::At(stamp), ..self.manner }, commands)
    }

    /// The mark that a command leaves now.
    pub(super) fn mark(&self) -> Mark {
        let delay = self.manner.visible_after;
        Mark {
            stamp: self.manner.stamp,
            sierra_now: self.now(),
            visible_from: delay.is_positive().then(|| self.true_now.saturating_add(delay).unwrap_or(Timestamp::MAX)),
        }
    }
}

/// A manner at a certain time. Stamps follow Sierra's clock, visibility follows the true one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    stamp: Stamp,
    sierra_now: Timestamp,
    pub(super) visible_from: Option<Timestamp>,
}

impl Mark {
    fn stamp(self, former: Timestamp) -> Timestamp {
        match self.stamp {
            Stamp::Now => self.sierra_now,
            Stamp::Keep => former,
            Stamp::At(stamp) => whole_seconds(stamp),
        }
    }

    /// The stamps of a new record.
    pub(super) fn fresh(self) -> Stamps {
        let stamp = self.stamp(self.sierra_now);
        Stamps { created: stamp, updated: stamp, revisions: 1 }
    }
}

impl<R: Clone> Shelf<R> {
    /// Changes a live record and its stamps; nothing when there is no such record.
    pub(super) fn alter(&mut self, id: u64, mark: Mark, alteration: impl FnOnce(&mut R)) -> Option<()> {
        let Some(Slot::Live(stamps, record)) = self.committed(id) else { return None };
        let (mut stamps, mut record) = (*stamps, record.clone());
        alteration(&mut record);
        stamps.updated = mark.stamp(stamps.updated);
        if !matches!(mark.stamp, Stamp::Keep) {
            stamps.revisions += 1;
        }
        self.put(id, Slot::Live(stamps, record), mark.visible_from);
        Some(())
    }

    /// Puts a new record at the end of the shelf and returns its number.
    pub(super) fn append(&mut self, first: u64, mark: Mark, make: impl FnOnce(u64) -> R) -> u64 {
        let id = self.last_number().map_or(first, |last| last + 1);
        let record = make(id);
        self.put(id, Slot::Live(mark.fresh(), record), mark.visible_from);
        id
    }
}
