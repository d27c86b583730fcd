//! Makes records that nobody has seen before.

use std::sync::Arc;

use jiff::SignedDuration;
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::description::LazyDescription;
use super::founding::MOST_DESCRIPTIONS;
use super::item::{Circulation, Loan};
use super::{Bib, Item, Patron, World};
use crate::simulator::invention::{chance, invent_holding, invent_member, pick};
use crate::simulator::site::{Code, ITEM_TYPES, LOCATIONS, PATRON_TYPES, STATUSES};

impl World {
    /// A bib with a description of its own.
    pub(super) fn new_bib(&mut self, rng: &mut StdRng) -> Bib {
        let description = self.next_description();
        let today = self.today();
        let first: &'static Code = pick(rng, &LOCATIONS);
        let mut locations = vec![first];
        if chance(rng, 15) {
            locations.extend([pick(rng, &LOCATIONS)].into_iter().filter(|second| *second != first));
        }
        let age = SignedDuration::from_hours(24 * rng.random_range(0..4_000));
        let catalogued = (!chance(rng, 5)).then(|| today.saturating_sub(age));
        Bib { description, code3: '-', locations, catalogued, is_unexportable: false }
    }

    /// A description that nobody has yet, or, when there are as many as there may be, one that somebody has.
    fn next_description(&mut self) -> Arc<LazyDescription> {
        let position = self.described % MOST_DESCRIPTIONS;
        self.described += 1;
        if let Some(description) = self.descriptions.get(position) {
            return Arc::clone(description);
        }
        let number = 1 + u64::try_from(position).expect("positions are below the number of descriptions");
        let description = Arc::new(LazyDescription::new(self.seed, number));
        self.descriptions.push(Arc::clone(&description));
        description
    }

    /// An item that hangs from `bib_ids`, with some loans behind it.
    pub(super) fn new_item(&self, rng: &mut StdRng, id: u64, bib_ids: Vec<u64>) -> Item {
        let now = self.now();
        let holding = invent_holding(rng, id);
        let mut circulation = Circulation::default();
        if chance(rng, 55) {
            circulation.checkouts = rng.random_range(1..90);
            circulation.renewals = rng.random_range(0..20);
            circulation.internal_uses = rng.random_range(0..9);
            circulation.last_patron = Some(super::founding::FIRST_PATRON + rng.random_range(0..500));
            let out = now - SignedDuration::from_hours(rng.random_range(24..40_000));
            circulation.last_out = Some(out);
            circulation.last_in = Some(out + SignedDuration::from_hours(rng.random_range(1..20)));
        }
        if chance(rng, 8) {
            let patron = super::founding::FIRST_PATRON + rng.random_range(0..500);
            let due = now + SignedDuration::from_hours(rng.random_range(24..700));
            circulation.loan = Some(Loan { patron, due });
        }
        let status = if chance(rng, 90) { &STATUSES[0] } else { pick(rng, &STATUSES) };
        Item {
            bib_ids,
            location: pick(rng, &LOCATIONS),
            status,
            item_type: if chance(rng, 70) { &ITEM_TYPES[0] } else { pick(rng, &ITEM_TYPES) },
            code2: '-',
            copy: rng.random_range(1..4),
            barcode: holding.barcode,
            call_number: holding.call_number,
            fields: holding.fields,
            circulation,
        }
    }

    /// A patron with a card.
    pub(super) fn new_patron(&self, rng: &mut StdRng, id: u64) -> Patron {
        let today = self.today();
        Patron {
            member: invent_member(rng, id),
            patron_type: pick(rng, &PATRON_TYPES).0,
            home: pick(rng, &LOCATIONS),
            expires: today.saturating_add(SignedDuration::from_hours(24 * rng.random_range(1..1_500))),
            is_suppressed: chance(rng, 2),
            block: if chance(rng, 4) { 'b' } else { '-' },
            owed: if chance(rng, 10) { rng.random_range(25..5_000) } else { 0 },
        }
    }
}
