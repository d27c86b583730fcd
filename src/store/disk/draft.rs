//! The state of the store beside its trees, and a draft of the next one.

use super::error;
use super::head::{self, Head};
use super::quarantine::Tally;
use super::sinks;
use super::trees::{Batch, Tree, Trees};
use crate::store::backlog::Backlogs;
use crate::sync::StoreError;

/// What is fenced and small: answered from memory, and the base of the next draft.
#[derive(Debug)]
pub(super) struct Fenced {
    pub(super) head: Head,
    pub(super) sinks: Backlogs,
    pub(super) quarantined: Tally,
    /// The last row number handed out; at most `head.row_ids`.
    pub(super) row_id: u64,
}

/// A transaction in the making. Nothing of it shows until it is fenced.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) batch: Batch,
    pub(super) head: Head,
    pub(super) sinks: Backlogs,
    pub(super) quarantined: Tally,
    before: Head,
}

impl Fenced {
    /// Reads what the trees hold.
    pub(super) fn read(trees: &Trees) -> Result<Self, StoreError> {
        let head = match trees.get(Tree::Meta, head::KEY)? {
            Some(bytes) => Head::decode(&bytes).map_err(error::damaged(Tree::Meta))?,
            None => return Err(error::missing(Tree::Meta)),
        };
        let mut backlogs = Backlogs::new();
        for row in trees.range(Tree::Sinks, ..) {
            let (key, bytes) = row?;
            let name = sinks::decode_key(&key).map_err(error::damaged(Tree::Sinks))?;
            backlogs.insert(name, sinks::decode(&bytes).map_err(error::damaged(Tree::Sinks))?);
        }
        Ok(Self { head, sinks: backlogs, quarantined: Tally::count(trees)?, row_id: head.row_ids })
    }

    /// Takes over what a draft became once it is fenced.
    pub(super) fn become_fenced(&mut self, draft: Draft) {
        self.head = draft.head;
        self.sinks = draft.sinks;
        self.quarantined = draft.quarantined;
    }
}

impl Draft {
    /// A draft that changes nothing yet.
    pub(super) fn of(fenced: &Fenced) -> Self {
        Self {
            batch: Batch::default(),
            head: fenced.head,
            sinks: fenced.sinks.clone(),
            quarantined: fenced.quarantined.clone(),
            before: fenced.head,
        }
    }

    /// Writes the draft in one transaction, if the head row is still the one it was made from. The seqs it holds were
    /// taken from that row, so commit order is seq order whatever happens.
    pub(super) fn transact(&mut self, what: &str, trees: &Trees) -> Result<(), StoreError> {
        self.head.commits += 1;
        self.batch.put(Tree::Meta, head::KEY, &self.head.encode());
        trees.transact(what, &self.batch, head::KEY, Some(&self.before.encode()))
    }
}
