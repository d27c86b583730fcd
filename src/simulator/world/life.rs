//! What happens in a library by itself: rates of random events, and the job that runs every night.
//!
//! Events fall at times of their own, drawn in advance, so that what has happened by a moment does not depend on how
//! often somebody looked.

use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt as _;
use serde::Deserialize;

use super::World;
use crate::simulator::kind::Kind;

/// How lively a library is: events per hour of each sort. The default is a library where nothing moves.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Life {
    /// Cataloguers change bibs.
    pub bib_edits: f64,
    /// Staff change items.
    pub item_edits: f64,
    /// Staff change patrons.
    pub patron_edits: f64,
    /// New bibs, each with an item.
    pub acquisitions: f64,
    /// New patrons.
    pub registrations: f64,
    /// Bibs deleted.
    pub bib_deletions: f64,
    /// Items deleted.
    pub item_deletions: f64,
    /// Patrons deleted.
    pub patron_deletions: f64,
    /// Bibs or items hidden, or shown again.
    pub suppressions: f64,
    /// Items moved to another bib.
    pub moves: f64,
    /// Items lent or returned.
    pub loans: f64,
    /// Uses that move a stamp and a counter, nothing else.
    pub uses: f64,
    /// Stamps moved on bibs that stay as they are.
    pub touches: f64,
    /// Changes of bibs that move no stamp.
    pub silent_edits: f64,
    /// New bibs with stamps of the month before.
    pub back_dated_loads: f64,
    /// Of a hundred edits, how many show late.
    pub late_percent: u32,
    /// At most how late they show, in seconds.
    pub late_seconds: i64,
    /// The nightly job.
    pub night: Option<Night>,
}

/// A batch job that changes many bibs in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Night {
    /// When it runs, in the library's zone.
    pub at: Time,
    /// How many of a hundred bibs it changes.
    pub percent: u32,
}

impl Life {
    /// A town library on an ordinary day: an event every twenty seconds or so.
    #[must_use]
    pub fn town() -> Self {
        Self {
            bib_edits: 30.0,
            item_edits: 20.0,
            patron_edits: 10.0,
            acquisitions: 8.0,
            registrations: 2.0,
            bib_deletions: 2.0,
            item_deletions: 4.0,
            patron_deletions: 0.5,
            suppressions: 4.0,
            moves: 2.0,
            loans: 60.0,
            uses: 30.0,
            touches: 6.0,
            late_percent: 5,
            late_seconds: 25,
            night: Some(Night { at: Time::constant(2, 30, 0, 0), percent: 4 }),
            ..Self::default()
        }
    }

    /// The same life, so many times as fast; the nights stay.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        self.rates_mut().into_iter().for_each(|rate| *rate *= factor);
        self
    }

    fn rates_mut(&mut self) -> [&mut f64; Event::ALL.len()] {
        [
            &mut self.bib_edits,
            &mut self.item_edits,
            &mut self.patron_edits,
            &mut self.acquisitions,
            &mut self.registrations,
            &mut self.bib_deletions,
            &mut self.item_deletions,
            &mut self.patron_deletions,
            &mut self.suppressions,
            &mut self.moves,
            &mut self.loans,
            &mut self.uses,
            &mut self.touches,
            &mut self.silent_edits,
            &mut self.back_dated_loads,
        ]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    BibEdit,
    ItemEdit,
    PatronEdit,
    Acquisition,
    Registration,
    BibDeletion,
    ItemDeletion,
    PatronDeletion,
    Suppression,
    Move,
    Loan,
    Use,
    Touch,
    SilentEdit,
    BackDatedLoad,
}

impl Event {
    /// In the order of the rates.
    const ALL: [Self; 15] = [
        Self::BibEdit,
        Self::ItemEdit,
        Self::PatronEdit,
        Self::Acquisition,
        Self::Registration,
        Self::BibDeletion,
        Self::ItemDeletion,
        Self::PatronDeletion,
        Self::Suppression,
        Self::Move,
        Self::Loan,
        Self::Use,
        Self::Touch,
        Self::SilentEdit,
        Self::BackDatedLoad,
    ];
}

/// What is to come: for each sort of event the next time.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate {
    life: Life,
    coming: Vec<(Timestamp, Event, f64)>,
    night: Option<Timestamp>,
}

impl World {
    /// Lets the library live like this from now on. One that is to stand still finishes its commits first: what was to
    /// show late shows now, and a copy can be compared.
    pub fn live(&mut self, life: Life) {
        let mut rates = life;
        let planned = Event::ALL.into_iter().zip(rates.rates_mut()).filter(|(_, rate)| **rate > 0.0);
        let planned: Vec<_> = planned.map(|(event, rate)| (event, *rate)).collect();
        let coming = planned.into_iter().map(|(event, rate)| (self.next(self.true_now, rate), event, rate)).collect();
        self.fate = Fate { life, coming, night: life.night.and_then(|night| self.next_night(night)) };
        if self.fate.coming.is_empty() && self.fate.night.is_none() {
            self.show_all();
        }
    }

    /// Lets everything happen that is due by `now`, each event at its own time.
    pub(super) fn happen_until(&mut self, now: Timestamp) {
        loop {
            let first = self.fate.coming.iter().enumerate().min_by_key(|(_, (at, ..))| *at);
            let event = first.map(|(position, (at, event, rate))| (position, *at, *event, *rate));
            let night = self.fate.night.filter(|at| event.is_none_or(|(_, next, ..)| *at <= next));
            if let Some(at) = night.filter(|at| *at <= now) {
                self.true_now = self.true_now.max(at);
                self.work_by_night();
            } else if let Some((position, at, event, rate)) = event.filter(|(_, at, ..)| *at <= now) {
                self.true_now = self.true_now.max(at);
                self.happen(event);
                let next = self.next(at, rate);
                if let Some(coming) = self.fate.coming.get_mut(position) {
                    coming.0 = next;
                }
            } else {
                return;
            }
        }
    }

    fn happen(&mut self, event: Event) {
        // An empty shelf has nothing to happen to; that is no failure of a random life.
        let _nothing_to_act_on = match event {
            Event::BibEdit => self.at_random(Kind::Bibs, |world, id| world.perhaps_late(Kind::Bibs, id)),
            Event::ItemEdit => self.at_random(Kind::Items, |world, id| world.perhaps_late(Kind::Items, id)),
            Event::PatronEdit => self.at_random(Kind::Patrons, |world, id| world.perhaps_late(Kind::Patrons, id)),
            Event::Acquisition => {
                let bib = self.create_bib();
                Some(self.create_item(&[bib]))
            }
            Event::Registration => Some(self.create_patron()),
            Event::BibDeletion => self.at_random(Kind::Bibs, |world, id| world.delete(Kind::Bibs, id).ok()),
            Event::ItemDeletion => self.at_random(Kind::Items, |world, id| world.delete(Kind::Items, id).ok()),
            Event::PatronDeletion => self.at_random(Kind::Patrons, |world, id| world.delete(Kind::Patrons, id).ok()),
            Event::Suppression => {
                let kind = if self.generator().random_bool(0.5) { Kind::Bibs } else { Kind::Items };
                self.at_random(kind, |world, id| world.toggle_suppression(kind, id).ok())
            }
            Event::Move => self.at_random(Kind::Items, |world, id| {
                let to = world.random_live(Kind::Bibs)?;
                let from = world.items.committed(id)?.live()?.bib_ids.first().copied().unwrap_or(to);
                world.move_item(id, from, to).ok()
            }),
            Event::Loan => self.at_random(Kind::Items, |world, id| {
                let patron = world.random_live(Kind::Patrons)?;
                let is_lent = world.items.committed(id)?.live()?.circulation.loan.is_some();
                if is_lent { world.check_in(id).ok() } else { world.check_out(id, patron, 21).ok() }
            }),
            Event::Use => self.at_random(Kind::Items, |world, id| world.use_internally(id).ok()),
            Event::Touch => self.at_random(Kind::Bibs, |world, id| world.touch(Kind::Bibs, id).ok()),
            Event::SilentEdit => {
                self.at_random(Kind::Bibs, |world, id| world.silently(|world| world.edit_bib(id)).ok())
            }
            Event::BackDatedLoad => {
                let age = SignedDuration::from_hours(self.generator().random_range(24..720));
                let stamp = self.now().saturating_sub(age).unwrap_or(self.now());
                Some(self.dated(stamp, Self::create_bib))
            }
        };
    }

    fn at_random(&mut self, kind: Kind, act: impl FnOnce(&mut Self, u64) -> Option<()>) -> Option<u64> {
        let id = self.random_live(kind)?;
        act(self, id)?;
        Some(id)
    }

    fn perhaps_late(&mut self, kind: Kind, id: u64) -> Option<()> {
        let mut rng = self.generator();
        let life = self.fate.life;
        let is_late = rng.random_ratio(life.late_percent.min(100), 100) && life.late_seconds > 0;
        let delay = if is_late { rng.random_range(1..=life.late_seconds) } else { 0 };
        self.visibly_after(SignedDuration::from_secs(delay), |world| world.edit(kind, id)).ok()
    }

    fn work_by_night(&mut self) {
        let percent = self.fate.life.night.map_or(0, |night| night.percent);
        let mut rng = self.generator();
        for id in self.ids(Kind::Bibs) {
            if rng.random_ratio(percent.min(100), 100) {
                self.edit_bib(id).expect("the number was on the shelf a moment ago");
            }
        }
        self.fate.night = self.fate.life.night.and_then(|night| self.next_night(night));
    }

    /// A live record by chance; nothing when there is none.
    pub fn random_live(&mut self, kind: Kind) -> Option<u64> {
        let mut rng = self.generator();
        let mut pick = |first: u64, last: Option<u64>| rng.random_range(first..=last.unwrap_or(first).max(first));
        match kind {
            Kind::Bibs => self.bibs.live_from(pick(super::founding::FIRST_BIB, self.bibs.last_number())),
            Kind::Items => self.items.live_from(pick(super::founding::FIRST_ITEM, self.items.last_number())),
            Kind::Patrons => self.patrons.live_from(pick(super::founding::FIRST_PATRON, self.patrons.last_number())),
        }
    }

    /// The next time of an event that comes `rate` times an hour, exponentially distributed.
    fn next(&mut self, from: Timestamp, rate: f64) -> Timestamp {
        let chance: f64 = self.generator().random_range(f64::EPSILON..1.0);
        let seconds = -chance.ln() / rate * 3_600.0;
        let wait = SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::MAX);
        from.saturating_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// The next time the nightly job runs, strictly after now.
    fn next_night(&self, night: Night) -> Option<Timestamp> {
        let today = self.zone.to_datetime(self.true_now).date();
        let at = |date: jiff::civil::Date| self.zone.to_timestamp(date.to_datetime(night.at)).ok();
        at(today).filter(|at| *at > self.true_now).or_else(|| at(today.tomorrow().ok()?))
    }
}
