//! How a library comes to be: its size, its history, and the seed from which all of it follows.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::life::Fate;
use super::{Bib, Item, Manner, Patron, Shelf, Slot, Stamps, World, whole_seconds};
use crate::seed::RootSeed;
use crate::simulator::invention::{chance, pick};

/// How many distinct descriptions a library holds at most. Beyond it bibs share them, so that a million bibs fit in
/// memory; each still has its own number, stamps and 935.
pub(super) const MOST_DESCRIPTIONS: usize = 20_000;

/// First numbers. Bibs and items overlap, as in reality; patrons do not, so that a leaked patron number is recognised.
pub(super) const FIRST_BIB: u64 = 1_000_001;
pub(super) const FIRST_ITEM: u64 = 1_000_014;
pub(super) const FIRST_PATRON: u64 = 7_400_003;

/// The size and the habits of a library.
#[derive(Debug, Clone)]
pub struct LibrarySettings {
    /// Live bibs at the start.
    pub bibs: usize,
    /// Live items at the start.
    pub items: usize,
    /// Live patrons at the start.
    pub patrons: usize,
    /// Tombstones at the start, per hundred records. Real shelves can hold as many as live ones.
    pub tombstones_percent: u32,
    /// Suppressed records at the start, per hundred.
    pub suppressed_percent: u32,
    /// The library's zone.
    pub zone: TimeZone,
    /// The library's now when it opens; every stamp of the first stock lies before it.
    pub opened: Timestamp,
    /// Codes that suppress, in fixed fields 31 (bibs) and 60 (items).
    pub suppressing: BTreeSet<char>,
}

impl LibrarySettings {
    /// The default library: 2,000 bibs, 3,000 items, 200 patrons, in UTC.
    #[must_use]
    pub fn opened_at(opened: Timestamp) -> Self {
        Self {
            bibs: 2_000,
            items: 3_000,
            patrons: 200,
            tombstones_percent: 6,
            suppressed_percent: 4,
            zone: TimeZone::UTC,
            opened,
            suppressing: BTreeSet::from(['s', 'd', 'n']),
        }
    }

    /// The same library in another size.
    #[must_use]
    pub fn sized(mut self, bibs: usize, items: usize, patrons: usize) -> Self {
        (self.bibs, self.items, self.patrons) = (bibs, items, patrons);
        self
    }
}

impl World {
    /// Opens a library; the same settings and seed always open the same one.
    #[must_use]
    pub fn open(settings: &LibrarySettings, seed: RootSeed) -> Self {
        let mut world = Self {
            bibs: Shelf::new(),
            items: Shelf::new(),
            patrons: Shelf::new(),
            true_now: whole_seconds(settings.opened),
            clock_step: SignedDuration::ZERO,
            zone: settings.zone.clone(),
            suppressing: settings.suppressing.clone(),
            keeps_tombstones: true,
            manner: Manner::default(),
            fate: Fate::default(),
            seed,
            draws: 0,
            descriptions: Vec::new(),
            described: 0,
        };
        let history = History { settings, now: world.now(), rng: seed.generator("simulator.history") };
        let (bibs, items, patrons) = history.stock(&mut world);
        (world.bibs, world.items, world.patrons) = (bibs, items, patrons);
        world
    }
}

/// Stocks the shelves as if the library had been at work for years.
struct History<'a> {
    settings: &'a LibrarySettings,
    now: Timestamp,
    rng: StdRng,
}

impl History<'_> {
    fn stock(mut self, world: &mut World) -> (Shelf<Bib>, Shelf<Item>, Shelf<Patron>) {
        let code = |history: &mut Self| {
            if chance(&mut history.rng, history.settings.suppressed_percent) { 's' } else { '-' }
        };
        let bibs = self.shelf(self.settings.bibs, FIRST_BIB, |history, _| {
            let mut bib = world.new_bib(&mut history.rng);
            bib.code3 = code(history);
            bib
        });
        let numbers: Vec<u64> = bibs.all_committed().map(|(id, _)| id).collect();
        let items = self.shelf(self.settings.items, FIRST_ITEM, |history, id| {
            let mut item = {
                let links = history.links(&numbers);
                world.new_item(&mut history.rng, id, links)
            };
            item.code2 = code(history);
            item
        });
        let patrons =
            self.shelf(self.settings.patrons, FIRST_PATRON, |history, id| world.new_patron(&mut history.rng, id));
        (bibs, items, patrons)
    }

    /// A shelf with `live` records made by `make`, and tombstones between them. Numbers ascend with gaps.
    fn shelf<R: Clone>(&mut self, live: usize, first: u64, mut make: impl FnMut(&mut Self, u64) -> R) -> Shelf<R> {
        let mut shelf = Shelf::new();
        let (mut id, mut count) = (first, 0);
        let mut stamps = self.stamps();
        while count < live {
            // A quarter of all records were last touched by a batch job, together with their neighbours.
            let tied = stamps.updated;
            stamps = self.stamps();
            if chance(&mut self.rng, 25) && tied > stamps.created {
                stamps.updated = tied;
            }
            let slot = if chance(&mut self.rng, self.settings.tombstones_percent.min(90)) {
                Slot::Deleted(stamps, self.day_after(stamps.updated))
            } else {
                count += 1;
                Slot::Live(stamps, make(self, id))
            };
            shelf.put(id, slot, None);
            id += self.rng.random_range(1..=4);
        }
        shelf
    }

    fn stamps(&mut self) -> Stamps {
        let age = self.rng.random_range(3_600..12 * 365 * 86_400);
        let since_edit = self.rng.random_range(60..=age);
        let before = |seconds| self.now - SignedDuration::from_secs(seconds);
        Stamps { created: before(age), updated: before(since_edit), revisions: self.rng.random_range(1..40) }
    }

    fn day_after(&mut self, updated: Timestamp) -> Date {
        let age = self.now.duration_since(updated).as_secs().max(0);
        let deleted = self.now - SignedDuration::from_secs(self.rng.random_range(0..=age));
        self.settings.zone.to_datetime(deleted).date()
    }

    /// The bibs that one item hangs from: usually one, sometimes several bound together, among them deleted ones.
    fn links(&mut self, bibs: &[u64]) -> Vec<u64> {
        let count = if chance(&mut self.rng, 3) { self.rng.random_range(2..6) } else { 1 };
        let mut links = Vec::new();
        for _ in 0..count.min(bibs.len()) {
            let bib = *pick(&mut self.rng, bibs);
            if !links.contains(&bib) {
                links.push(bib);
            }
        }
        links
    }
}
