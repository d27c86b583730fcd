//! The outbox in sled: append, read, confirm, trim.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::chunks;
use super::draft::Draft;
use super::entry::{self, Prepared, Row};
use super::error;
use super::sinks;
use super::squeeze::Squeeze;
use super::trees::{Tree, Trees};
use crate::privacy::Keyring;
use crate::store::backlog::{Backlog, first_needed};
use crate::sync::ports::{OutboxEntry, OutboxUsage, SinkPosition};
use crate::sync::{Change, Seq, StoreError};

/// How many entries one transaction trims at most: sled's transactions share one lock and hold their writes in memory.
const TRIM_AT_ONCE: usize = 500;

/// Gives each prepared change its seq and appends it.
pub(super) fn append(draft: &mut Draft, prepared: Vec<Prepared>) -> Result<Vec<Seq>, StoreError> {
    let seqs = draft.head.order.take(prepared.len())?;
    for (Prepared { mut row, body }, seq) in prepared.into_iter().zip(&seqs) {
        row.entry.seq = *seq;
        row.chunks = chunks::put(&mut draft.batch, Tree::Payloads, &entry::key(*seq), &body)?;
        draft.batch.put(Tree::Outbox, entry::key(*seq), &row.encode());
        draft.head.usage.entries += 1;
        draft.head.usage.bytes += row.entry.bytes;
        for (name, backlog) in &mut draft.sinks {
            backlog.add(name, &row.waiting());
        }
    }
    if !seqs.is_empty() {
        write_sinks(draft);
    }
    Ok(seqs)
}

/// Takes undelivered changes out.
pub(super) fn drop_changes(trees: &Trees, draft: &mut Draft, dropped: &[Seq]) -> Result<(), StoreError> {
    let mut gone = BTreeMap::new();
    for seq in dropped {
        if let Some(row) = row(trees, *seq)? {
            gone.insert(*seq, row);
        }
    }
    for row in gone.values() {
        take(draft, row);
    }
    let mut backlogs = std::mem::take(&mut draft.sinks);
    for (name, backlog) in &mut backlogs {
        let wanted = gone.values().filter(|row| backlog.wants(name, &row.waiting())).count();
        if wanted > 0 {
            backlog.pending = backlog.pending.saturating_sub(u64::try_from(wanted).unwrap_or(u64::MAX));
            backlog.oldest = oldest(trees, name, backlog, |seq| gone.contains_key(&seq))?;
        }
    }
    draft.sinks = backlogs;
    if !gone.is_empty() {
        write_sinks(draft);
    }
    Ok(())
}

/// Moves the positions of `positions`.
pub(super) fn set_positions(
    trees: &Trees,
    draft: &mut Draft,
    positions: &BTreeMap<String, SinkPosition>,
) -> Result<(), StoreError> {
    for (name, position) in positions {
        let backlog = match draft.sinks.remove(name) {
            Some(backlog) if backlog.only_advances_to(position) => advance(trees, name, backlog, position.confirmed)?,
            _ => recount(trees, name, Backlog::at(position))?,
        };
        draft.batch.put(Tree::Sinks, sinks::key(name), &sinks::encode(&backlog));
        draft.sinks.insert(name.clone(), backlog);
    }
    Ok(())
}

/// Removes a sink's position.
pub(super) fn remove_sink(draft: &mut Draft, name: &str) {
    draft.sinks.remove(name);
    draft.batch.remove(Tree::Sinks, sinks::key(name));
}

/// Trims some of what no attached sink waits for; says whether there may be more.
pub(super) fn trim(trees: &Trees, draft: &mut Draft) -> Result<bool, StoreError> {
    let needed = first_needed(&draft.sinks);
    let mut trimmed = 0;
    for row in rows_after(trees, Seq::ZERO, needed).take(TRIM_AT_ONCE) {
        take(draft, &row?);
        trimmed += 1;
    }
    Ok(trimmed == TRIM_AT_ONCE)
}

/// Whole changes after `after`, up to and including `last`.
pub(super) fn changes_after(
    trees: &Trees,
    keyring: &Keyring,
    squeeze: &Squeeze,
    (after, last): (Seq, Seq),
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<Change>, StoreError> {
    let budget = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    let mut changes = Vec::new();
    let mut bytes = 0_u64;
    for row in rows_after(trees, after, Some(last.next())) {
        if changes.len() >= limit {
            break;
        }
        let row = row?;
        bytes = bytes.saturating_add(row.plain_bytes);
        if !changes.is_empty() && bytes > budget {
            break;
        }
        let seq = row.entry.seq;
        match chunks::get(trees, Tree::Payloads, &entry::key(seq)) {
            Ok(Some(body)) => changes.push(row.change(keyring, squeeze, &body)?),
            // Trimmed while we read: this reader holds no lock, and nobody waits for the change any more.
            Ok(None) | Err(_) if self::row(trees, seq)?.is_none() => {}
            Ok(None) => return Err(error::missing(Tree::Payloads)),
            Err(error) => return Err(error),
        }
    }
    Ok(changes)
}

/// Entries after `after`, up to and including `last`.
pub(super) fn entries_after(
    trees: &Trees,
    (after, last): (Seq, Seq),
    limit: usize,
) -> Result<Vec<OutboxEntry>, StoreError> {
    rows_after(trees, after, Some(last.next())).take(limit).map(|row| row.map(|row| row.entry)).collect()
}

/// Every change there is, each with its own fate.
pub(super) fn each_change(
    trees: &Trees,
    keyring: &Keyring,
    squeeze: &Squeeze,
) -> impl Iterator<Item = Result<Change, StoreError>> {
    rows_after(trees, Seq::ZERO, None).map(|row| {
        let row = row?;
        let body = chunks::get(trees, Tree::Payloads, &entry::key(row.entry.seq))?;
        row.change(keyring, squeeze, &body.ok_or_else(|| error::missing(Tree::Payloads))?)
    })
}

/// What waits, counted.
pub(super) fn count(trees: &Trees) -> Result<OutboxUsage, StoreError> {
    let mut usage = OutboxUsage::default();
    for row in rows_after(trees, Seq::ZERO, None) {
        usage.entries += 1;
        usage.bytes += row?.entry.bytes;
    }
    Ok(usage)
}

/// Rows with a seq greater than `after` and less than `before`, in order.
fn rows_after(trees: &Trees, after: Seq, before: Option<Seq>) -> impl Iterator<Item = Result<Row, StoreError>> {
    let first = entry::key(after.next());
    let end = before.map_or_else(|| vec![0xff; 8], entry::key);
    // An empty range is asked as one: sled takes a start beyond the end for a mistake.
    let range = if first <= end { first..end } else { end.clone()..end };
    trees.range(Tree::Outbox, range).map(|row| {
        let (key, bytes) = row?;
        Row::decode(&key, &bytes).map_err(error::damaged(Tree::Outbox))
    })
}

fn row(trees: &Trees, seq: Seq) -> Result<Option<Row>, StoreError> {
    let key = entry::key(seq);
    let bytes = trees.get(Tree::Outbox, &key)?;
    bytes.map(|bytes| Row::decode(&key, &bytes).map_err(error::damaged(Tree::Outbox))).transpose()
}

fn take(draft: &mut Draft, row: &Row) {
    let key = entry::key(row.entry.seq);
    chunks::remove_counted(&mut draft.batch, Tree::Payloads, &key, row.chunks);
    draft.batch.remove(Tree::Outbox, key);
    let usage = &mut draft.head.usage;
    usage.entries = usage.entries.saturating_sub(1);
    usage.bytes = usage.bytes.saturating_sub(row.entry.bytes);
}

fn advance(trees: &Trees, name: &str, mut backlog: Backlog, confirmed: Seq) -> Result<Backlog, StoreError> {
    if backlog.pending > 0 {
        for row in rows_after(trees, backlog.confirmed, Some(confirmed.next())) {
            if backlog.wants(name, &row?.waiting()) {
                backlog.pending = backlog.pending.saturating_sub(1);
            }
        }
    }
    backlog.confirmed = confirmed;
    backlog.oldest = oldest(trees, name, &backlog, |_| false)?;
    Ok(backlog)
}

fn recount(trees: &Trees, name: &str, mut backlog: Backlog) -> Result<Backlog, StoreError> {
    if backlog.attached {
        for row in rows_after(trees, backlog.confirmed, None) {
            backlog.add(name, &row?.waiting());
        }
    }
    Ok(backlog)
}

fn oldest(
    trees: &Trees,
    name: &str,
    backlog: &Backlog,
    is_gone: impl Fn(Seq) -> bool,
) -> Result<Option<(Seq, Timestamp)>, StoreError> {
    if backlog.pending == 0 {
        return Ok(None);
    }
    for row in rows_after(trees, backlog.confirmed, None) {
        let row = row?;
        if !is_gone(row.entry.seq) && backlog.wants(name, &row.waiting()) {
            return Ok(Some((row.entry.seq, row.entry.captured)));
        }
    }
    Ok(None)
}

/// Writes every sink's row: they count what waits.
fn write_sinks(draft: &mut Draft) {
    for (name, backlog) in &draft.sinks {
        draft.batch.put(Tree::Sinks, sinks::key(name), &sinks::encode(backlog));
    }
}
