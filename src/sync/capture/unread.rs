//! Entries whose own record number cannot be read: what lies in the stretch where they stood is owed and asked for
//! again, until it can be told which records they are.
//!
//! Nothing says which record such an entry is, but its neighbours say where it lies, since pages rise. The stretch is
//! put into the ledger as a failed row, in the commit that moves the position past it (CUR-2): it is a gap, it is asked
//! for again like any other, and it is gone as soon as every number in it can be read.

use jiff::{SignedDuration, Timestamp};

use crate::record::{Entry, RecordNumber};
use crate::sync::ledger::plan::rest_after;
use crate::sync::ports::BadEntry;
use crate::sync::{LedgerRow, Pass, RowState, Span, Store, StoreError};

/// Stretches of one page that have rows of their own. More than these become one.
const MOST: usize = 20;

/// A stretch of record numbers with entries in it that cannot be told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// It begins behind this number; `None` is the first of all.
    pub(super) after: Option<RecordNumber>,
    /// It ends before this number; `None` is open.
    pub(super) before: Option<RecordNumber>,
    /// How many entries.
    pub(super) entries: usize,
    /// Why the first of them cannot be read; free of values.
    pub(super) reason: String,
}

/// Where the entries stand that end a page and have no number. They are left to the next page, which begins with them;
/// when none comes although they were there, they are owed.
pub(super) fn tail(entries: &[Result<Entry, BadEntry>], last_id: RecordNumber) -> Option<Stretch> {
    let nameless = entries.iter().rev().map_while(|entry| entry.as_ref().err().filter(|bad| bad.id.is_none()));
    let (entries, first) = nameless.fold((0, None), |(count, _), bad| (count + 1, Some(bad)));
    first.map(|bad| Stretch { after: Some(last_id), before: None, entries, reason: bad.reason.clone() })
}

/// Takes the entries without a number out of a page that was asked for behind `after`, and tells where they stood.
///
/// Those behind the last number that could be read are left to the next page; see [`tail`].
pub(super) fn take_out(
    entries: Vec<Result<Entry, BadEntry>>,
    after: Option<RecordNumber>,
) -> (Vec<Result<Entry, BadEntry>>, Vec<Stretch>) {
    let (mut kept, mut stretches) = (Vec::with_capacity(entries.len()), Vec::new());
    let (mut last, mut open): (_, Option<Stretch>) = (after, None);
    for entry in entries {
        let number = match &entry {
            Ok(entry) => Some(entry.id()),
            Err(bad) => bad.id,
        };
        match (number, entry) {
            (Some(number), entry) => {
                stretches.extend(open.take().map(|stretch| Stretch { before: Some(number), ..stretch }));
                last = Some(number);
                kept.push(entry);
            }
            (None, Err(bad)) => {
                let stretch = Stretch { after: last, before: None, entries: 0, reason: bad.reason };
                open.get_or_insert(stretch).entries += 1;
            }
            // A record that was understood has a number.
            (None, Ok(_)) => {}
        }
    }
    if kept.is_empty() {
        stretches.extend(open);
    }
    if stretches.len() > MOST
        && let (Some(first), Some(last)) = (stretches.first().cloned(), stretches.last())
    {
        let entries = stretches.iter().map(|stretch| stretch.entries).sum();
        stretches = vec![Stretch { before: last.before, entries, ..first }];
    }
    (kept, stretches)
}

/// Whether no entry of a page has a number.
pub(super) fn is_all(entries: &[Result<Entry, BadEntry>]) -> bool {
    !entries.is_empty() && entries.iter().all(|entry| matches!(entry, Err(bad) if bad.id.is_none()))
}

/// Whether an entry of a page has no number.
pub(super) fn has_any(entries: &[Result<Entry, BadEntry>]) -> bool {
    entries.iter().any(|entry| matches!(entry, Err(bad) if bad.id.is_none()))
}

/// The rows that `stretches` of the walk over `row` add to the ledger, without those that are owed already.
pub(super) fn rows(
    store: &dyn Store,
    row: &LedgerRow,
    stretches: &[Stretch],
    now: Timestamp,
) -> Result<Vec<LedgerRow>, StoreError> {
    let Some(first) = stretches.first() else { return Ok(Vec::new()) };
    let known = store.ledger(row.stream)?;
    let is_owed = |pass: Pass, covers: &dyn Fn(&LedgerRow) -> bool| {
        known.iter().any(|other| other.id != row.id && other.pass == pass && other.is_owed() && covers(other))
    };
    let mut opened = Vec::new();
    match row.span {
        // Asked for by time, the window alone tells which of the records in between are meant.
        Span::Time(_) | Span::Days { .. } if row.pass != Pass::Backfill => {
            // A row that has moved, so that none of its neighbours takes it over.
            let position = first.after.or(Some(RecordNumber::new(0)));
            let covers = |other: &LedgerRow| other.span == row.span && other.position <= position;
            if !is_owed(row.pass, &covers) {
                let entries = stretches.iter().map(|stretch| stretch.entries).sum();
                let owed = LedgerRow { position, ..row.clone() };
                opened.push(failed(owed, store.next_row_id()?, entries, &first.reason, now));
            }
        }
        span => {
            let (end, pinned) = match span {
                Span::Ids { to, pinned, .. } => (to, pinned),
                Span::Time(_) | Span::Days { .. } => (None, row.opened),
            };
            for stretch in stretches {
                let (from, to) = numbers_of(stretch, end);
                let covers = |other: &LedgerRow| match other.span {
                    Span::Ids { from: first, to: last, .. } => {
                        first <= from && last.is_none_or(|last| to.is_some_and(|to| to <= last))
                    }
                    Span::Time(_) | Span::Days { .. } => false,
                };
                if !is_owed(Pass::Update, &covers) {
                    let span = Span::Ids { from, to, pinned };
                    let owed = LedgerRow { pass: Pass::Update, span, position: None, ..row.clone() };
                    opened.push(failed(owed, store.next_row_id()?, stretch.entries, &stretch.reason, now));
                }
            }
        }
    }
    Ok(opened)
}

/// The first and the last number of a stretch; where its neighbours leave no room, they are asked for with it.
fn numbers_of(stretch: &Stretch, end: Option<RecordNumber>) -> (RecordNumber, Option<RecordNumber>) {
    let from = stretch.after.map_or(RecordNumber::new(1), RecordNumber::next);
    let to = stretch.before.map(|before| RecordNumber::new(before.value().saturating_sub(1))).or(end);
    match to {
        Some(to) if to < from => (to, Some(from)),
        to => (from, to),
    }
}

fn failed(row: LedgerRow, id: u64, entries: usize, reason: &str, now: Timestamp) -> LedgerRow {
    let attempts = row.attempts.saturating_add(1);
    let rest = SignedDuration::try_from(rest_after(attempts)).unwrap_or(SignedDuration::MAX);
    let came = if entries == 1 { "an entry".to_owned() } else { format!("{entries} entries") };
    LedgerRow {
        id,
        state: RowState::Failed,
        attempts,
        last_error: Some(format!(
            "{came} came whose record number cannot be read ({reason}): asked for again by itself"
        )),
        touched: now,
        resume_at: now.checked_add(rest).ok(),
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Tombstone;

    fn number(value: u64) -> RecordNumber {
        RecordNumber::new(value)
    }

    fn page(numbers: &[Option<u64>]) -> Vec<Result<Entry, BadEntry>> {
        let entry = |value: &Option<u64>| match value {
            Some(value) => Ok(Entry::Tombstone(Tombstone { id: number(*value), deleted_on: None, updated: None })),
            None => Err(BadEntry { id: None, reason: "id: expected a record number".into(), payload: None }),
        };
        numbers.iter().map(entry).collect()
    }

    /// Where one begins and ends, and its entries.
    type Plain = (Option<u64>, Option<u64>, usize);

    fn stretches(numbers: &[Option<u64>], after: Option<u64>) -> (usize, Vec<Plain>) {
        let (kept, stretches) = take_out(page(numbers), after.map(number));
        let plain = |bound: Option<RecordNumber>| bound.map(RecordNumber::value);
        (kept.len(), stretches.iter().map(|it| (plain(it.after), plain(it.before), it.entries)).collect())
    }

    #[test]
    fn neighbours_bound_what_cannot_be_read() {
        let found = stretches(&[None, Some(3), None, None, Some(9), Some(10)], Some(1));
        assert_eq!(found, (3, vec![(Some(1), Some(3), 1), (Some(3), Some(9), 2)]));
    }

    /// The next page is asked for behind the last number, and begins with it.
    #[test]
    fn what_ends_a_page_is_left_to_the_next_one() {
        assert_eq!(stretches(&[Some(3), None], None), (1, vec![]));
        assert_eq!(stretches(&[None, None], Some(3)), (0, vec![(Some(3), None, 2)]));
    }

    #[test]
    fn many_stretches_become_one() {
        let numbers: Vec<Option<u64>> = (0..50).map(|place| (place % 2 == 1).then_some(place)).collect();
        assert_eq!(stretches(&numbers, None).1, [(None, Some(49), 25)]);
    }

    #[test]
    fn neighbours_that_leave_no_room_are_asked_for_with_it() {
        let stretch = |after, before| Stretch {
            after: Some(number(after)),
            before: Some(number(before)),
            entries: 1,
            reason: String::new(),
        };
        assert_eq!(numbers_of(&stretch(3, 9), None), (number(4), Some(number(8))));
        assert_eq!(numbers_of(&stretch(3, 4), None), (number(3), Some(number(4))));
    }
}
