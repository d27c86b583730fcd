//! A library that lives: records, the edits that change them, and the truth to compare a copy with.

mod bib;
mod commands;
mod description;
mod founding;
mod item;
mod newcomer;
mod patron;
mod shelf;
mod truth;
mod varfield;

pub use commands::{Manner, NoSuchRecord, Stamp};
pub use founding::LibrarySettings;
pub use truth::{MarcField, MarcValue, TrueRecord, Truth};
pub use varfield::{Content, VarField};

pub(crate) use bib::{Bib, record_number_field};
pub(crate) use item::Item;
pub(crate) use patron::Patron;
pub(crate) use shelf::{Shelf, Slot, Stamps};

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rand::rngs::StdRng;

use crate::seed::RootSeed;
use crate::simulator::kind::Kind;

/// The library. A clone is a backup: put it back, and Sierra has been restored from one.
#[derive(Debug, Clone)]
pub struct World {
    pub(crate) bibs: Shelf<Bib>,
    pub(crate) items: Shelf<Item>,
    pub(crate) patrons: Shelf<Patron>,
    now: Timestamp,
    zone: TimeZone,
    /// Codes in fixed field 31 (bibs) and 60 (items) that hide a record from readers; site configuration in Sierra.
    suppressing: BTreeSet<char>,
    keeps_tombstones: bool,
    manner: Manner,
    seed: RootSeed,
    /// How many generators were made; each command draws from one of its own, so that a clone replays alike.
    draws: u64,
    /// How many descriptions were handed out.
    invented: u64,
}

impl World {
    /// The library's own time, to the second. Commands stamp with it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The zone in which the library counts its days: `deletedDate` and the other plain dates are local.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Whether Sierra keeps tombstones of what is deleted from here on. Some libraries purge them, and their delete
    /// feed is always empty (BR-049).
    pub fn keep_tombstones(&mut self, keep: bool) {
        self.keeps_tombstones = keep;
    }

    /// Moves the library to `now`: whatever became due in between has happened, and what was committed to appear by
    /// now can be seen. Time never goes back here; a stepped server clock is the simulator's business.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(whole_seconds(now));
        self.bibs.lift_veils(self.now);
        self.items.lift_veils(self.now);
        self.patrons.lift_veils(self.now);
    }

    /// The numbers of all live records of a kind, ascending.
    #[must_use]
    pub fn ids(&self, kind: Kind) -> Vec<u64> {
        fn live<R: Clone>(shelf: &Shelf<R>) -> Vec<u64> {
            shelf.all_committed().filter(|(_, slot)| slot.live().is_some()).map(|(id, _)| id).collect()
        }
        match kind {
            Kind::Bibs => live(&self.bibs),
            Kind::Items => live(&self.items),
            Kind::Patrons => live(&self.patrons),
        }
    }

    /// Whether a code hides its record.
    pub(crate) fn suppresses(&self, code: char) -> bool {
        self.suppressing.contains(&code)
    }

    fn generator(&mut self) -> StdRng {
        self.draws += 1;
        self.seed.generator(&format!("simulator.world.{}", self.draws))
    }

    fn today(&self) -> Date {
        self.zone.to_datetime(self.now).date()
    }
}

/// `stamp` cut to whole seconds, the only resolution Sierra has.
pub(crate) fn whole_seconds(stamp: Timestamp) -> Timestamp {
    Timestamp::from_second(stamp.as_second()).unwrap_or(stamp)
}
