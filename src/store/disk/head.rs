//! The head row: the few counters that every transaction carries along.

use super::codec::{Damaged, Reader, Writer};
use crate::store::order::Order;
use crate::sync::Seq;
use crate::sync::ports::OutboxUsage;

/// Its key in the meta tree.
pub(super) const KEY: &[u8] = b"head";

/// Counters that move with the data they count, in the same transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// How many transactions there were. A store that holds fewer than were acknowledged lost its tail.
    pub(super) commits: u64,
    /// The order of changes.
    pub(super) order: Order,
    /// How often the store was opened.
    pub(super) boot: u64,
    /// Row numbers up to this one may have been handed out.
    pub(super) row_ids: u64,
    /// Places in the quarantine up to this one were taken.
    pub(super) places: u64,
    /// What waits in the outbox.
    pub(super) usage: OutboxUsage,
}

impl Head {
    /// The head of a store that holds nothing.
    pub(super) const NEW: Self = Self {
        commits: 0,
        order: Order { last: Seq::ZERO, floor: Seq::ZERO },
        boot: 0,
        row_ids: 0,
        places: 0,
        usage: OutboxUsage { entries: 0, bytes: 0 },
    };

    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { commits, order: Order { last, floor }, boot, row_ids, places, usage } = *self;
        let OutboxUsage { entries, bytes } = usage;
        let mut writer = Writer::new();
        writer.varint(commits).seq(last).seq(floor).varint(boot).varint(row_ids).varint(places);
        writer.varint(entries).varint(bytes);
        writer.finish()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let head = Self {
            commits: reader.varint()?,
            order: Order { last: reader.seq()?, floor: reader.seq()? },
            boot: reader.varint()?,
            row_ids: reader.varint()?,
            places: reader.varint()?,
            usage: OutboxUsage { entries: reader.varint()?, bytes: reader.varint()? },
        };
        reader.end()?;
        Ok(head)
    }
}
