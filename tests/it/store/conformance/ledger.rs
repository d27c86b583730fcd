//! Ledger rows and their numbers.

use std::collections::BTreeSet;

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::Slice;
use sierra_sync::sync::{LedgerRow, Pass, RowState, Span};

use crate::store::changes::{at, number, row};
use crate::store::subject::each_store;

#[test]
fn rows_of_every_shape_come_back_by_number_and_per_stream() {
    each_store(|subject| {
        let ids = Span::Ids { from: number(5), to: None, pinned: at(3) };
        let closed = Span::Ids { from: number(5), to: Some(number(1 << 40)), pinned: at(3) };
        let days = Span::Days { from: jiff::civil::date(2025, 12, 31), to: jiff::civil::date(2026, 1, 2) };
        let rows = vec![
            LedgerRow { span: days, pass: Pass::Deletes, state: RowState::Done, ..row(Stream::Items, 300) },
            LedgerRow { span: ids, pass: Pass::Load, state: RowState::Pending, position: None, ..row(Stream::Bibs, 2) },
            LedgerRow { span: closed, pass: Pass::Backfill, last_error: None, ..row(Stream::Patrons, 3) },
            LedgerRow { last_error: Some("why ".repeat(5_000)), resume_at: None, ..row(Stream::Bibs, 1) },
            LedgerRow { pass: Pass::Reconcile, state: RowState::Failed, attempts: 0, ..row(Stream::Bibs, 256) },
            LedgerRow { pass: Pass::LateSweep, ..row(Stream::Bibs, 257) },
            LedgerRow { span: ids, pass: Pass::Rebuild, ..row(Stream::Bibs, 258) },
            LedgerRow { span: days, pass: Pass::RebuildDeletes, ..row(Stream::Bibs, 259) },
        ];
        subject.store().commit(Slice { rows: rows.clone(), ..Slice::default() }).unwrap();
        subject.reopen();
        let bibs = [3, 1, 4, 5, 6, 7].map(|place: usize| rows[place].clone());
        assert_eq!(subject.store().ledger(Stream::Bibs).unwrap(), bibs);
        assert_eq!(subject.store().ledger(Stream::Items).unwrap(), rows[..1]);
        assert_eq!(subject.store().ledger(Stream::Patrons).unwrap(), rows[2..3]);
    });
}

#[test]
fn rows_are_rewritten_and_neighbours_swallowed_in_one_slice() {
    each_store(|subject| {
        let rows = (1..=4).map(|id| row(Stream::Bibs, id)).chain([row(Stream::Items, 2)]).collect();
        subject.store().commit(Slice { rows, ..Slice::default() }).unwrap();
        let merged = LedgerRow { state: RowState::Done, position: None, ..row(Stream::Bibs, 1) };
        let removed_rows = vec![(Stream::Bibs, 1), (Stream::Bibs, 2), (Stream::Bibs, 3), (Stream::Bibs, 99)];
        subject.store().commit(Slice { rows: vec![merged.clone()], removed_rows, ..Slice::default() }).unwrap();
        subject.reopen();
        assert_eq!(subject.store().ledger(Stream::Bibs).unwrap(), [merged, row(Stream::Bibs, 4)]);
        assert_eq!(subject.store().ledger(Stream::Items).unwrap(), [row(Stream::Items, 2)]);
    });
}

#[test]
fn no_row_number_is_ever_given_twice() {
    each_store(|subject| {
        let mut given = BTreeSet::new();
        let mut last = 0;
        for round in 0..4 {
            for _ in 0..150 {
                let id = subject.store().next_row_id().unwrap();
                assert!(given.insert(id), "{id} in round {round}");
                assert!(id > last);
                last = id;
            }
            subject.reopen();
        }
    });
}
