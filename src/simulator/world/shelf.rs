//! All records of one kind, by number: live ones, tombstones, and what readers see of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;

/// When a record was made and last changed, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// `createdDate`.
    pub(crate) created: Timestamp,
    /// `updatedDate`; an edit need not move it, nor need it ever go forward.
    pub(crate) updated: Timestamp,
    /// Fixed field 85.
    pub(crate) revisions: u32,
}

/// One number's place on the shelf.
#[derive(Debug, Clone)]
pub(crate) enum Slot<R> {
    /// A live record.
    Live(Stamps, R),
    /// What is left of a deleted one.
    Deleted(Stamps, Date),
}

impl<R> Slot<R> {
    /// The stamps; a tombstone keeps those of the last edit, for deletion moves nothing (`sierra-api.md` §7 item 7).
    pub(crate) fn stamps(&self) -> &Stamps {
        match self {
            Self::Live(stamps, _) | Self::Deleted(stamps, _) => stamps,
        }
    }

    /// The record, when it is live.
    pub(crate) fn live(&self) -> Option<&R> {
        match self {
            Self::Live(_, record) => Some(record),
            Self::Deleted(..) => None,
        }
    }
}

/// The records of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Shelf<R> {
    slots: BTreeMap<u64, Slot<R>>,
    /// Changes that are committed but not yet visible: what readers still see, and until when.
    veils: BTreeMap<u64, Veil<R>>,
    /// Deleted records of which Sierra keeps nothing.
    forgotten: BTreeMap<u64, Date>,
}

#[derive(Debug, Clone)]
struct Veil<R> {
    until: Timestamp,
    before: Option<Slot<R>>,
}

impl<R: Clone> Shelf<R> {
    pub(crate) fn new() -> Self {
        Self { slots: BTreeMap::new(), veils: BTreeMap::new(), forgotten: BTreeMap::new() }
    }

    /// The slot as committed, whether or not readers can see it yet.
    pub(crate) fn committed(&self, id: u64) -> Option<&Slot<R>> {
        self.slots.get(&id)
    }

    /// Every slot as committed, by number.
    pub(crate) fn all_committed(&self) -> impl Iterator<Item = (u64, &Slot<R>)> {
        self.slots.iter().map(|(id, slot)| (*id, slot))
    }

    /// The slot as readers see it.
    pub(crate) fn visible(&self, id: u64) -> Option<&Slot<R>> {
        self.unveiled(id, self.slots.get(&id)?)
    }

    /// The visible slots whose numbers lie in `from..=to`, ascending.
    pub(crate) fn visible_range(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &Slot<R>)> {
        let range = (from <= to).then(|| self.slots.range(from..=to)).into_iter().flatten();
        range.filter_map(|(id, slot)| Some((*id, self.unveiled(*id, slot)?)))
    }

    fn unveiled<'a>(&'a self, id: u64, slot: &'a Slot<R>) -> Option<&'a Slot<R>> {
        if self.veils.is_empty() {
            return Some(slot);
        }
        self.veils.get(&id).map_or(Some(slot), |veil| veil.before.as_ref())
    }

    /// Lets readers see what was committed to appear by `now`.
    pub(crate) fn lift_veils(&mut self, now: Timestamp) {
        self.veils.retain(|_, veil| veil.until > now);
    }

    /// Puts a slot in its place; `visible_from` hides the change until then.
    pub(crate) fn put(&mut self, id: u64, slot: Slot<R>, visible_from: Option<Timestamp>) {
        let before = self.slots.insert(id, slot);
        self.forgotten.remove(&id);
        if let Some(until) = visible_from {
            // A second change under a veil moves the moment of its lifting; readers go on seeing the first state.
            let veil = self.veils.entry(id).or_insert(Veil { until, before });
            veil.until = veil.until.max(until);
        }
    }

    /// Takes a slot away entirely, remembering only that and when it was deleted.
    pub(crate) fn forget(&mut self, id: u64, day: Date) {
        self.slots.remove(&id);
        self.veils.remove(&id);
        self.forgotten.insert(id, day);
    }

    /// Deleted records of which nothing is kept.
    pub(crate) fn forgotten(&self) -> &BTreeMap<u64, Date> {
        &self.forgotten
    }

    /// The highest number ever given.
    pub(crate) fn last_number(&self) -> Option<u64> {
        let slots = self.slots.last_key_value().map(|(id, _)| *id);
        slots.max(self.forgotten.last_key_value().map(|(id, _)| *id))
    }

    /// The first live record at or above `id`, going round at the end.
    pub(crate) fn live_from(&self, id: u64) -> Option<u64> {
        let live = |(id, slot): (&u64, &Slot<R>)| slot.live().map(|_| *id);
        self.slots.range(id..).find_map(live).or_else(|| self.slots.range(..id).find_map(live))
    }
}
