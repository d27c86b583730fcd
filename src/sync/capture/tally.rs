//! Counting what a pass did to a stream.

use crate::marc::{Loss, LossKind, loss};
use crate::sync::decide::Verdict;
use crate::sync::ports::Traffic;

/// What happened so far. `fetched` is the sum of the others but the last, always (BR-091).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Windows and sweeps worked on.
    pub windows: u64,
    /// Pages read.
    pub pages: u64,
    /// What the calls cost.
    pub traffic: Traffic,
    /// How the entries were judged.
    pub entries: EntryTally,
    /// Entries read and passed over, because a backfill asked for other locations. Not among the fetched ones.
    pub passed_over: u64,
    /// Record numbers that were asked for by list and of which Sierra knows nothing.
    pub not_found: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.windows += other.windows;
        self.pages += other.pages;
        self.traffic += other.traffic;
        self.entries += other.entries;
        self.passed_over += other.passed_over;
        self.not_found += other.not_found;
    }
}

/// How entries were judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryTally {
    /// Emitted as upserts, or as deletes for leaving the configured set.
    pub changed: u64,
    /// Nothing new.
    pub unchanged: u64,
    /// Older than what is remembered.
    pub stale: u64,
    /// Emitted as deletes.
    pub deleted: u64,
    /// Tombstones that no sink needs to hear of.
    pub deleted_unseen: u64,
    /// Set aside.
    pub quarantined: u64,
    /// Those of the set aside that were not set aside for the same cause before.
    pub newly_quarantined: u64,
    /// What the mapping to MARC repaired or left out of the emitted ones.
    pub losses: LossTally,
}

impl EntryTally {
    /// Entries read.
    #[must_use]
    pub fn fetched(&self) -> u64 {
        self.changed + self.unchanged + self.stale + self.deleted + self.deleted_unseen + self.quarantined
    }

    /// Counts a verdict.
    pub fn count(&mut self, verdict: Verdict) {
        use crate::sync::DeleteReason::Filtered;
        match verdict {
            Verdict::Upsert | Verdict::Delete(Filtered) => self.changed += 1,
            Verdict::Delete(_) => self.deleted += 1,
            Verdict::Unchanged => self.unchanged += 1,
            Verdict::Stale => self.stale += 1,
            Verdict::DeletedUnseen => self.deleted_unseen += 1,
        }
    }
}

impl std::ops::AddAssign for EntryTally {
    fn add_assign(&mut self, other: Self) {
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.stale += other.stale;
        self.deleted += other.deleted;
        self.deleted_unseen += other.deleted_unseen;
        self.quarantined += other.quarantined;
        self.newly_quarantined += other.newly_quarantined;
        self.losses += other.losses;
    }
}

/// Losses by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossTally([u64; LossKind::ALL.len()]);

impl LossTally {
    /// Counts the losses of one record, those included that are only summed up.
    pub fn count(&mut self, losses: &[Loss]) {
        for (kind, more) in loss::counts(losses) {
            for (count, _) in self.0.iter_mut().zip(LossKind::ALL).filter(|(_, slot)| *slot == kind) {
                *count += more;
            }
        }
    }

    /// The kinds that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (LossKind, u64)> {
        LossKind::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl std::ops::AddAssign for LossTally {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_by_kind() {
        let loss = |kind, detail: &str| Loss { kind, field: "245".to_owned(), detail: detail.to_owned() };
        let further = loss(LossKind::FurtherLosses, "8 more: 7 tag-repaired, 1 field-empty");
        let mut tally = LossTally::default();
        tally.count(&[loss(LossKind::TagRepaired, ""), loss(LossKind::TagRepaired, ""), further]);
        let mut sum = tally;
        sum += tally;
        assert_eq!(sum.iter().collect::<Vec<_>>(), [(LossKind::TagRepaired, 18), (LossKind::FieldEmpty, 2)]);
    }
}
