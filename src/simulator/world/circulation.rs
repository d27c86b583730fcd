//! What happens to items at the desk and on the shelf.

use jiff::SignedDuration;

use super::item::Loan;
use super::{NoSuchRecord, World};
use crate::simulator::site::{STATUSES, find};

impl World {
    /// Replaces the bibs that an item hangs from: bound-withs, unlinking, moving. The item alone is stamped.
    ///
    /// # Errors
    /// When there is no such live item.
    pub fn link_item(&mut self, id: u64, bib_ids: &[u64]) -> Result<(), NoSuchRecord> {
        self.alter_item(id, |item| item.bib_ids = bib_ids.to_vec())
    }

    /// Moves an item from one bib to another (BR-014).
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
        let now = self.now();
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
        let now = self.now();
        self.alter_item(id, |item| {
            if let Some(loan) = item.circulation.loan.take() {
                item.circulation.last_patron = Some(loan.patron);
            }
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
}
