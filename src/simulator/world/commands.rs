//! What staff, readers and machines do to records. Tests and the demo drive the library with these.
//!
//! Every command stamps with the library's now and shows at once, unless [`World::in_manner`] says otherwise: then
//! any of them can be silent, back-dated or visible only later.

use jiff::{SignedDuration, Timestamp};

use super::item::Loan;
use super::{Item, Shelf, Slot, Stamps, World, whole_seconds};
use crate::simulator::invention::invent_note;
use crate::simulator::kind::Kind;
use crate::simulator::site::{STATUSES, find};

/// How a command leaves its mark.
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
    /// The library's now.
    #[default]
    Now,
    /// Nothing: a change that no window can see (`sierra-api.md` §7 item 11).
    Keep,
    /// This moment, be it in the past: back-dated loads (BR-069).
    At(Timestamp),
}

/// There is no such live record to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no live {} {id} in the library", kind.noun())]
pub struct NoSuchRecord {
    /// The kind asked for.
    pub kind: Kind,
    /// The number asked for.
    pub id: u64,
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

    /// Changes what a record says: a cataloguer at work.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn edit(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        match kind {
            Kind::Bibs => self.edit_bib(id),
            Kind::Items => {
                let note = invent_note(&mut self.generator());
                self.alter_item(id, |item| {
                    item.fields.retain(|field| field.field_tag != 'x');
                    item.fields.push(note);
                    item.fields.sort_by_key(super::VarField::rank);
                })
            }
            Kind::Patrons => {
                let types = crate::simulator::site::PATRON_TYPES;
                let alteration = |patron: &mut super::Patron| {
                    let position = types.iter().position(|(code, _)| *code == patron.patron_type).unwrap_or(0);
                    patron.patron_type = types.get((position + 1) % types.len()).map_or(1, |(code, _)| *code);
                };
                alter(&mut self.patrons, &self.manner, self.now, id, alteration).ok_or(NoSuchRecord { kind, id })
            }
        }
    }

    /// Changes the description of a bib.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn edit_bib(&mut self, id: u64) -> Result<(), NoSuchRecord> {
        let revision = self.bibs.committed(id).map_or(0, |slot| slot.stamps().revisions + 1);
        let mut rng = self.generator();
        alter(&mut self.bibs, &self.manner, self.now, id, |bib| {
            let edited = bib.description().edited(&mut rng, revision);
            bib.describe(edited);
        })
        .ok_or(NoSuchRecord { kind: Kind::Bibs, id })
    }

    /// Moves the stamp of a record that stays as it is, as a batch job does that found nothing to change.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn touch(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        let missing = NoSuchRecord { kind, id };
        match kind {
            Kind::Bibs => alter(&mut self.bibs, &self.manner, self.now, id, |_| ()).ok_or(missing),
            Kind::Items => alter(&mut self.items, &self.manner, self.now, id, |_| ()).ok_or(missing),
            Kind::Patrons => alter(&mut self.patrons, &self.manner, self.now, id, |_| ()).ok_or(missing),
        }
    }

    /// Hides a record from readers, or shows it again.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn set_suppressed(&mut self, kind: Kind, id: u64, suppressed: bool) -> Result<(), NoSuchRecord> {
        let missing = NoSuchRecord { kind, id };
        let hiding = self.suppressing.first().copied().unwrap_or('s');
        let code = if suppressed { hiding } else { '-' };
        match kind {
            Kind::Bibs => alter(&mut self.bibs, &self.manner, self.now, id, |bib| bib.code3 = code).ok_or(missing),
            Kind::Items => alter(&mut self.items, &self.manner, self.now, id, |item| item.code2 = code).ok_or(missing),
            Kind::Patrons => {
                let alteration = |patron: &mut super::Patron| patron.is_suppressed = suppressed;
                alter(&mut self.patrons, &self.manner, self.now, id, alteration).ok_or(missing)
            }
        }
    }

    /// Hides a record from readers.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn suppress(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        self.set_suppressed(kind, id, true)
    }

    /// Shows a hidden record again.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn unsuppress(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        self.set_suppressed(kind, id, false)
    }

    /// Deletes a record today. Its `updatedDate` stays where it was; its items, if any, go on naming it.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn delete(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        fn bury<R: Clone>(
            world_keeps: bool,
            shelf: &mut Shelf<R>,
            id: u64,
            day: jiff::civil::Date,
            from: Option<Timestamp>,
        ) -> Option<()> {
            let Some(Slot::Live(stamps, _)) = shelf.committed(id) else { return None };
            let stamps = *stamps;
            if world_keeps {
                shelf.put(id, Slot::Deleted(stamps, day), from);
            } else {
                shelf.forget(id, day);
            }
            Some(())
        }
        let (day, keeps, from) = (self.today(), self.keeps_tombstones, self.manner.visible_from(self.now));
        match kind {
            Kind::Bibs => bury(keeps, &mut self.bibs, id, day, from),
            Kind::Items => bury(keeps, &mut self.items, id, day, from),
            Kind::Patrons => bury(keeps, &mut self.patrons, id, day, from),
        }
        .ok_or(NoSuchRecord { kind, id })
    }

    /// Adds a bib and returns its number, the next on the shelf.
    pub fn create_bib(&mut self) -> u64 {
        let mut rng = self.generator();
        let bib = self.new_bib(&mut rng);
        let id = self.bibs.last_number().map_or(super::founding::FIRST_BIB, |last| last + 1);
        self.bibs.put(id, Slot::Live(self.fresh_stamps(), bib), self.manner.visible_from(self.now));
        id
    }

    /// Adds an item that hangs from `bib_ids` and returns its number.
    pub fn create_item(&mut self, bib_ids: &[u64]) -> u64 {
        let id = self.items.last_number().map_or(super::founding::FIRST_ITEM, |last| last + 1);
        let mut rng = self.generator();
        let item = self.new_item(&mut rng, id, bib_ids.to_vec());
        self.items.put(id, Slot::Live(self.fresh_stamps(), item), self.manner.visible_from(self.now));
        id
    }

    /// Adds a patron and returns the number.
    pub fn create_patron(&mut self) -> u64 {
        let id = self.patrons.last_number().map_or(super::founding::FIRST_PATRON, |last| last + 1);
        let mut rng = self.generator();
        let patron = self.new_patron(&mut rng, id);
        self.patrons.put(id, Slot::Live(self.fresh_stamps(), patron), self.manner.visible_from(self.now));
        id
    }

    /// Adds a record of any kind; an item hangs from the first live bib, if there is one.
    pub fn create(&mut self, kind: Kind) -> u64 {
        match kind {
            Kind::Bibs => self.create_bib(),
            Kind::Items => {
                let bib = self.bibs.live_from(0);
                self.create_item(bib.as_slice())
            }
            Kind::Patrons => self.create_patron(),
        }
    }

    /// Replaces the bibs that an item hangs from: bound-withs, unlinking, moving. The item alone is stamped.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn link_item(&mut self, id: u64, bib_ids: &[u64]) -> Result<(), NoSuchRecord> {
        self.alter_item(id, |item| item.bib_ids = bib_ids.to_vec())
    }

    /// Moves an item from one bib to another.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn move_item(&mut self, id: u64, from: u64, to: u64) -> Result<(), NoSuchRecord> {
        self.alter_item(id, |item| {
            item.bib_ids.retain(|bib| *bib != from && *bib != to);
            item.bib_ids.push(to);
        })
    }

    /// Takes an item off a bib.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn unlink_item(&mut self, id: u64, from: u64) -> Result<(), NoSuchRecord> {
        self.alter_item(id, |item| item.bib_ids.retain(|bib| *bib != from))
    }

    /// Lends an item for `days`; fixed field 66 then names the patron.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn check_out(&mut self, id: u64, patron: u64, days: u16) -> Result<(), NoSuchRecord> {
        let now = self.now;
        self.alter_item(id, |item| {
            let due = now + SignedDuration::from_hours(24 * i64::from(days));
            item.circulation.loan = Some(Loan { patron, due });
            item.circulation.checkouts += 1;
            item.circulation.last_out = Some(now);
            item.status = &STATUSES[0];
        })
    }

    /// Takes an item back; fixed field 67 goes on naming its last patron.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn check_in(&mut self, id: u64) -> Result<(), NoSuchRecord> {
        let now = self.now;
        self.alter_item(id, |item| {
            item.circulation.last_patron = item.circulation.loan.take().map(|loan| loan.patron);
            item.circulation.last_in = Some(now);
        })
    }

    /// Counts a use inside the library: the stamp and a counter move, nothing that readers care about.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn use_internally(&mut self, id: u64) -> Result<(), NoSuchRecord> {
        self.alter_item(id, |item| item.circulation.internal_uses += 1)
    }

    /// Changes the status of an item: `-`, `m`, `n`, `o`, `t`, `!`; anything else means `-`.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn set_status(&mut self, id: u64, status: char) -> Result<(), NoSuchRecord> {
        let status = find(&STATUSES, status.encode_utf8(&mut [0; 4]));
        self.alter_item(id, |item| item.status = status)
    }

    /// Leaves a bib out of the export to MARC, as real ones with a blank MARC type are.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn make_unexportable(&mut self, id: u64) -> Result<(), NoSuchRecord> {
        self.silently(|world| alter(&mut world.bibs, &world.manner, world.now, id, |bib| bib.is_unexportable = true))
            .ok_or(NoSuchRecord { kind: Kind::Bibs, id })
    }

    /// Replaces the fields of a bib by `fields`, put into stored order.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn rewrite_bib(
        &mut self,
        id: u64,
        rewrite: impl FnOnce(&mut Vec<super::VarField>),
    ) -> Result<(), NoSuchRecord> {
        alter(&mut self.bibs, &self.manner, self.now, id, |bib| {
            let mut fields = bib.description().fields().to_vec();
            rewrite(&mut fields);
            bib.describe(bib.description().rewritten(fields));
        })
        .ok_or(NoSuchRecord { kind: Kind::Bibs, id })
    }

    fn alter_item(&mut self, id: u64, alteration: impl FnOnce(&mut Item)) -> Result<(), NoSuchRecord> {
        alter(&mut self.items, &self.manner, self.now, id, alteration).ok_or(NoSuchRecord { kind: Kind::Items, id })
    }

    fn fresh_stamps(&self) -> Stamps {
        let stamp = self.manner.stamp.apply(self.now, self.now);
        Stamps { created: stamp, updated: stamp, revisions: 1 }
    }
}

impl Manner {
    fn visible_from(&self, now: Timestamp) -> Option<Timestamp> {
        self.visible_after.is_positive().then(|| now + self.visible_after)
    }
}

impl Stamp {
    fn apply(self, former: Timestamp, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::Keep => former,
            Self::At(stamp) => whole_seconds(stamp),
        }
    }
}

fn alter<R: Clone>(
    shelf: &mut Shelf<R>,
    manner: &Manner,
    now: Timestamp,
    id: u64,
    alteration: impl FnOnce(&mut R),
) -> Option<()> {
    let Some(Slot::Live(stamps, record)) = shelf.committed(id) else { return None };
    let (mut stamps, mut record) = (*stamps, record.clone());
    alteration(&mut record);
    stamps.updated = manner.stamp.apply(stamps.updated, now);
    if !matches!(manner.stamp, Stamp::Keep) {
        stamps.revisions += 1;
    }
    shelf.put(id, Slot::Live(stamps, record), manner.visible_from(now));
    Some(())
}
