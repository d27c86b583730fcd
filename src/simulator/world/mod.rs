//! A library that lives: records, the edits that change them, and the truth to compare a copy with.

mod bib;
mod circulation;
mod commands;
mod description;
mod founding;
mod item;
mod life;
mod manner;
mod newcomer;
mod oddity;
mod patron;
mod shelf;
mod truth;
mod varfield;

pub use commands::NoSuchRecord;
pub use founding::LibrarySettings;
pub use life::{Life, Night};
pub use manner::{Manner, Stamp};
pub use oddity::Oddity;
pub use truth::{MarcField, MarcValue, TrueRecord, Truth};
pub use varfield::{Content, VarField};

pub(crate) use bib::{Bib, RECORD_NUMBER_TAG, push_record_number_field, record_number_field, staff_number};
use description::LazyDescription;
pub(crate) use item::Item;
pub(crate) use patron::Patron;
pub(crate) use shelf::{Shelf, Slot, Stamps};

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;

use crate::seed::RootSeed;
use crate::simulator::kind::Kind;

/// The library. A clone is a backup: put it back, and Sierra has been restored from one.
#[derive(Debug, Clone)]
pub struct World {
    pub(crate) bibs: Shelf<Bib>,
    pub(crate) items: Shelf<Item>,
    pub(crate) patrons: Shelf<Patron>,
    /// True time; Sierra's clock may be off by `clock_step`.
    true_now: Timestamp,
    clock_step: SignedDuration,
    zone: TimeZone,
    /// Codes in fixed field 31 (bibs) and 60 (items) that hide a record from readers; site configuration in Sierra.
    suppressing: BTreeSet<char>,
    keeps_tombstones: bool,
    manner: Manner,
    fate: life::Fate,
    seed: RootSeed,
    /// How many generators were made; each command draws from one of its own, so that a clone replays alike.
    draws: u64,
    /// The descriptions that bibs began with, and how many were handed out.
    descriptions: Vec<Arc<LazyDescription>>,
    described: usize,
}

impl World {
    /// The time by Sierra's own clock, to the second. Commands stamp with it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        whole_seconds(self.true_now.saturating_add(self.clock_step).unwrap_or(self.true_now))
    }

    /// Steps Sierra's clock: stamps and days follow it from here on, what is due at a certain time does not.
    pub fn step_clock(&mut self, by: SignedDuration) {
        self.clock_step = self.clock_step.saturating_add(by);
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

    /// Moves the library to the true time `now`: whatever became due in between has happened, and what was committed
    /// to appear by now can be seen. True time never goes back.
    pub fn tick(&mut self, now: Timestamp) {
        self.happen_until(now);
        self.true_now = self.true_now.max(now);
        self.lift_veils(self.true_now);
    }

    /// Lets readers see at once whatever was committed to appear later.
    pub fn show_all(&mut self) {
        self.lift_veils(Timestamp::MAX);
    }

    fn lift_veils(&mut self, until: Timestamp) {
        self.bibs.lift_veils(until);
        self.items.lift_veils(until);
        self.patrons.lift_veils(until);
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

    /// Invents every description now. Otherwise each is invented when it is first served, and the first sweep of a
    /// library is slower than the second: call this before measuring.
    pub fn invent_all(&self) {
        for description in &self.descriptions {
            description.get();
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
        self.zone.to_datetime(self.now()).date()
    }
}

/// `stamp` cut to whole seconds, the only resolution Sierra has.
pub(crate) fn whole_seconds(stamp: Timestamp) -> Timestamp {
    Timestamp::from_second(stamp.as_second()).unwrap_or(stamp)
}
