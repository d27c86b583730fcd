//! What staff and machines do to records. Tests, scripts and the demo drive the library with these.
//!
//! Every command stamps with Sierra's now and shows at once, unless it runs in another [`Manner`](super::Manner):
//! then any of them can be silent, back-dated or visible only later.

use jiff::Timestamp;
use jiff::civil::Date;

use super::founding::{FIRST_BIB, FIRST_ITEM, FIRST_PATRON};
use super::{Bib, Item, Patron, Shelf, Slot, VarField, World};
use crate::simulator::invention::invent_note;
use crate::simulator::kind::Kind;
use crate::simulator::site::PATRON_TYPES;

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
                    item.fields.sort_by_key(VarField::rank);
                })
            }
            Kind::Patrons => self.alter_patron(id, |patron| {
                let position = PATRON_TYPES.iter().position(|(code, _)| *code == patron.patron_type).unwrap_or(0);
                patron.patron_type = PATRON_TYPES.get((position + 1) % PATRON_TYPES.len()).map_or(1, |(code, _)| *code);
            }),
        }
    }

    /// Changes the description of a bib.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn edit_bib(&mut self, id: u64) -> Result<(), NoSuchRecord> {
        let revision = self.bibs.committed(id).map_or(0, |slot| slot.stamps().revisions + 1);
        // Silent edits leave the revision as it is; the number of the draw keeps them apart.
        let mut rng = self.generator();
        let label = format!("{revision}.{}", self.draws);
        self.alter_bib(id, |bib| {
            let edited = bib.description().edited(&mut rng, &label);
            bib.describe(edited);
        })
    }

    /// Replaces the fields of a bib; they are put into stored order.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn rewrite_bib(&mut self, id: u64, rewrite: impl FnOnce(&mut Vec<VarField>)) -> Result<(), NoSuchRecord> {
        self.alter_bib(id, |bib| {
            let mut fields = bib.description().fields().to_vec();
            rewrite(&mut fields);
            bib.describe(bib.description().rewritten(fields));
        })
    }

    /// Moves the stamp of a record that stays as it is, as a batch job does that found nothing to change.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn touch(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        match kind {
            Kind::Bibs => self.alter_bib(id, |_| ()),
            Kind::Items => self.alter_item(id, |_| ()),
            Kind::Patrons => self.alter_patron(id, |_| ()),
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

    /// Hides a visible record or shows a hidden one.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn toggle_suppression(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        let is_hidden = match kind {
            Kind::Bibs => self.bibs.committed(id).and_then(Slot::live).is_some_and(|bib| self.suppresses(bib.code3)),
            Kind::Items => {
                self.items.committed(id).and_then(Slot::live).is_some_and(|item| self.suppresses(item.code2))
            }
            Kind::Patrons => self.patrons.committed(id).and_then(Slot::live).is_some_and(|patron| patron.is_suppressed),
        };
        self.set_suppressed(kind, id, !is_hidden)
    }

    fn set_suppressed(&mut self, kind: Kind, id: u64, suppressed: bool) -> Result<(), NoSuchRecord> {
        let hiding = self.suppressing.first().copied().unwrap_or('s');
        let code = if suppressed { hiding } else { '-' };
        match kind {
            Kind::Bibs => self.alter_bib(id, |bib| bib.code3 = code),
            Kind::Items => self.alter_item(id, |item| item.code2 = code),
            Kind::Patrons => self.alter_patron(id, |patron| patron.is_suppressed = suppressed),
        }
    }

    /// Leaves a bib out of the export to MARC, as real ones with a blank MARC type are.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn make_unexportable(&mut self, id: u64) -> Result<(), NoSuchRecord> {
        self.silently(|world| world.alter_bib(id, |bib| bib.is_unexportable = true))
    }

    /// Deletes a record today. Its `updatedDate` stays where it was; items of a deleted bib go on naming it.
    ///
    /// # Errors
    /// When there is no such live record.
    pub fn delete(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        let burial = Burial { day: self.today(), keeps: self.keeps_tombstones, from: self.mark().visible_from };
        match kind {
            Kind::Bibs => burial.bury(&mut self.bibs, id),
            Kind::Items => burial.bury(&mut self.items, id),
            Kind::Patrons => burial.bury(&mut self.patrons, id),
        }
        .ok_or(NoSuchRecord { kind, id })
    }

    /// Gives a deleted number to a new live record. Sierra is not known to do it; a client must bear it all the same
    /// (BR-010).
    ///
    /// # Errors
    /// When the number was never deleted.
    pub fn revive(&mut self, kind: Kind, id: u64) -> Result<(), NoSuchRecord> {
        if !self.deleted(kind).contains_key(&id) {
            return Err(NoSuchRecord { kind, id });
        }
        let mark = self.mark();
        let mut rng = self.generator();
        match kind {
            Kind::Bibs => {
                let bib = self.new_bib(&mut rng);
                self.bibs.put(id, Slot::Live(mark.fresh(), bib), mark.visible_from);
            }
            Kind::Items => {
                let bib = self.bibs.live_from(0);
                let item = self.new_item(&mut rng, id, bib.into_iter().collect());
                self.items.put(id, Slot::Live(mark.fresh(), item), mark.visible_from);
            }
            Kind::Patrons => {
                let patron = self.new_patron(&mut rng, id);
                self.patrons.put(id, Slot::Live(mark.fresh(), patron), mark.visible_from);
            }
        }
        Ok(())
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

    /// Adds a bib and returns its number, the next on the shelf.
    pub fn create_bib(&mut self) -> u64 {
        let mark = self.mark();
        let mut rng = self.generator();
        let bib = self.new_bib(&mut rng);
        self.bibs.append(FIRST_BIB, mark, |_| bib)
    }

    /// Adds an item that hangs from `bib_ids` and returns its number.
    pub fn create_item(&mut self, bib_ids: &[u64]) -> u64 {
        let mark = self.mark();
        let mut rng = self.generator();
        let id = self.items.last_number().map_or(FIRST_ITEM, |last| last + 1);
        let item = self.new_item(&mut rng, id, bib_ids.to_vec());
        self.items.append(FIRST_ITEM, mark, |_| item)
    }

    /// Adds a patron and returns the number.
    pub fn create_patron(&mut self) -> u64 {
        let mark = self.mark();
        let mut rng = self.generator();
        let id = self.patrons.last_number().map_or(FIRST_PATRON, |last| last + 1);
        let patron = self.new_patron(&mut rng, id);
        self.patrons.append(FIRST_PATRON, mark, |_| patron)
    }

    pub(super) fn alter_bib(&mut self, id: u64, alteration: impl FnOnce(&mut Bib)) -> Result<(), NoSuchRecord> {
        let mark = self.mark();
        self.bibs.alter(id, mark, alteration).ok_or(NoSuchRecord { kind: Kind::Bibs, id })
    }

    pub(super) fn alter_item(&mut self, id: u64, alteration: impl FnOnce(&mut Item)) -> Result<(), NoSuchRecord> {
        let mark = self.mark();
        self.items.alter(id, mark, alteration).ok_or(NoSuchRecord { kind: Kind::Items, id })
    }

    fn alter_patron(&mut self, id: u64, alteration: impl FnOnce(&mut Patron)) -> Result<(), NoSuchRecord> {
        let mark = self.mark();
        self.patrons.alter(id, mark, alteration).ok_or(NoSuchRecord { kind: Kind::Patrons, id })
    }
}

struct Burial {
    day: Date,
    keeps: bool,
    from: Option<Timestamp>,
}

impl Burial {
    fn bury<R: Clone>(&self, shelf: &mut Shelf<R>, id: u64) -> Option<()> {
        let Some(Slot::Live(stamps, _)) = shelf.committed(id) else { return None };
        let stamps = *stamps;
        if self.keeps {
            shelf.put(id, Slot::Deleted(stamps, self.day), self.from);
        } else {
            shelf.forget(id, self.day);
        }
        Some(())
    }
}
