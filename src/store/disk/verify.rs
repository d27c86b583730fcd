//! A full reading of the store: every envelope, every waiting change, every counter.

use super::error;
use super::outbox;
use super::store::SledStore;
use super::trees::Tree;
use crate::sync::ports::{OutboxUsage, Store};
use crate::sync::{Seq, StoreError};

/// What [`SledStore::verify`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The trees, by name.
    pub trees: Vec<TreeVerified>,
    /// Waiting changes that could not be read whole.
    pub unreadable_changes: u64,
    /// What waits, as it is kept.
    pub kept: OutboxUsage,
    /// What waits, counted.
    pub counted: OutboxUsage,
}

/// One tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeVerified {
    /// Its name.
    pub tree: &'static str,
    /// How many values it holds.
    pub values: u64,
    /// How many of them are damaged.
    pub damaged: u64,
}

impl Verified {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.unreadable_changes == 0 && self.kept == self.counted && self.trees.iter().all(|tree| tree.damaged == 0)
    }
}

impl SledStore {
    /// Reads everything there is, and marks what is not sound as damaged. Writers wait only while the outbox is counted.
    ///
    /// # Errors
    /// When the database fails to read at all; damaged values are counted and not an error.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let mut trees = Vec::new();
        for tree in Tree::ALL {
            let verified = self.contained("verify the state database", || self.trees.verify(tree))?;
            trees.push(verified);
        }
        let (kept, counted) =
            self.read("count the outbox", |fenced| Ok((fenced.head.usage, outbox::count(&self.trees)?)))?;
        let mut unreadable_changes = 0;
        let mut after = Seq::ZERO;
        loop {
            let page = self.outbox_entries_after(after, 500)?;
            let Some(last) = page.last() else { break };
            for entry in &page {
                let before = Seq::new(entry.seq.value().saturating_sub(1)).unwrap_or_default();
                unreadable_changes += u64::from(self.outbox_after(before, 1, usize::MAX).is_err());
            }
            after = last.seq;
        }
        let verified = Verified { trees, unreadable_changes, kept, counted };
        if !verified.is_sound() {
            self.mark_damaged(&error::unsound(&verified));
        }
        Ok(verified)
    }
}
