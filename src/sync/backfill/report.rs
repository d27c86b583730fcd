//! What a backfill leaves: the ranges that could not be had, as people see them.

use crate::sync::LedgerRow;
use crate::sync::ledger::coverage::gap_of;
use crate::sync::report::status::Gap;

/// The rows that are still owed, in order; neighbours that nobody has tried yet are one.
pub(super) fn left_of<'a>(rows: impl IntoIterator<Item = &'a LedgerRow>) -> Vec<Gap> {
    let mut left: Vec<Gap> = Vec::new();
    for row in rows.into_iter().filter(|row| row.is_owed()) {
        let gap = gap_of(row);
        match left.last_mut() {
            Some(last) if last.to == gap.from && last.attempts == 0 && gap.attempts == 0 => last.to = gap.to,
            Some(last) if *last == gap => {}
            _ => left.push(gap),
        }
    }
    left
}
