//! Keeping the ledger short without losing what it says: neighbours merge.
//!
//! Closed windows that touch become one, but for those that brought nothing: they stay by themselves until a window that
//! reaches as far back brings something. Adjoining failed ones become one too as long as none of their data was
//! captured: during a long outage of an endpoint one failed window grows, instead of hundreds that each fail alone.
//! A window is only ever merged with its neighbour in the order of their ends, so an owed window between two closed
//! ones keeps them apart and the watermark before it.

use std::collections::BTreeSet;

use super::coverage::{in_order, read_again};
use super::{LedgerRow, RowState, Span};
use crate::sync::Window;

/// The rows to rewrite and the ids of those that their neighbours swallowed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Rows that grew.
    pub rows: Vec<LedgerRow>,
    /// Rows that are no longer needed.
    pub removed: Vec<u64>,
}

/// Merges what may be merged among the update windows of one stream.
#[must_use]
pub fn compact(rows: &[LedgerRow]) -> Compaction {
    let mut kept: Vec<(LedgerRow, bool)> = Vec::new();
    let mut removed = Vec::new();
    // A row that has grown bears the number of one that is not among these.
    let again = read_again(rows);
    for (row, _) in in_order(rows) {
        let (mut current, mut grew) = (row.clone(), false);
        // A row that grew towards the past may now touch one before it that it did not touch by itself.
        while let Some(merged) = kept.last().and_then(|(last, _)| merge(last, &current, &again)) {
            removed.extend(kept.pop().map(|(last, _)| last.id.max(current.id)));
            (current, grew) = (merged, true);
        }
        kept.push((current, grew));
    }
    Compaction { rows: kept.into_iter().filter_map(|(row, grew)| grew.then_some(row)).collect(), removed }
}

/// `earlier` and `later` as one row, when they touch and their states allow it.
fn merge(earlier: &LedgerRow, later: &LedgerRow, again: &BTreeSet<u64>) -> Option<LedgerRow> {
    let (first, second) = (earlier.window()?, later.window()?);
    if second.start() > first.end() {
        return None;
    }
    let unmoved = earlier.position.is_none() && later.position.is_none();
    match (earlier.state, later.state) {
        (RowState::Done, RowState::Done) if earlier.found_nothing == later.found_nothing => {}
        // All of it was read once more, and this time something came.
        (RowState::Done, RowState::Done) if earlier.found_nothing && second.start() <= first.start() => {}
        // What is only read again holds no watermark back, and must not begin to as part of something that does.
        (RowState::Failed, RowState::Failed)
            if unmoved && !again.contains(&earlier.id) && !again.contains(&later.id) => {}
        _ => return None,
    }
    let window = Window::new(first.start().min(second.start()), first.end().max(second.end()))?;
    let resume_at = match (earlier.resume_at, later.resume_at) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => None,
    };
    Some(LedgerRow {
        // The lower number: rows are told apart by what was covered when they were opened.
        id: earlier.id.min(later.id),
        stream: earlier.stream,
        pass: earlier.pass,
        span: Span::Time(window),
        state: earlier.state,
        position: None,
        attempts: earlier.attempts.max(later.attempts),
        last_error: later.last_error.clone().or_else(|| earlier.last_error.clone()),
        opened: earlier.opened.min(later.opened),
        touched: earlier.touched.max(later.touched),
        resume_at,
        found_nothing: earlier.found_nothing && later.found_nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::super::coverage::tests::{load, row};
    use super::super::coverage::{coverage, gaps};
    use std::time::Duration;

    use super::*;
    use crate::record::RecordNumber;
    use RowState::{Done, Failed, Partial, Pending};

    fn apply(rows: &[LedgerRow]) -> Vec<LedgerRow> {
        let compaction = compact(rows);
        let mut after: Vec<LedgerRow> =
            rows.iter().filter(|row| !compaction.removed.contains(&row.id)).cloned().collect();
        for grown in compaction.rows {
            match after.iter_mut().find(|row| row.id == grown.id) {
                Some(slot) => *slot = grown,
                None => panic!("row {} appeared from nowhere", grown.id),
            }
        }
        after
    }

    #[test]
    fn closed_neighbours_become_one() {
        let after = apply(&[load(Done), row(2, -10, 5, Done), row(3, -5, 10, Done), row(4, 10, 20, Done)]);
        assert_eq!(after.len(), 2);
        let merged = after[1].window().expect("a window");
        assert_eq!((merged.length().as_secs() / 60, after[1].id), (30, 2));
    }

    /// BR-054: what brought nothing is told apart until all of it was read once more and something came.
    #[test]
    fn windows_that_brought_nothing_stay_by_themselves_until_they_are_read_once_more() {
        let empty = |id, from, to| LedgerRow { found_nothing: true, ..row(id, from, to, Done) };
        let spans = |rows: &[LedgerRow]| -> Vec<(i64, bool)> {
            apply(rows)[1..]
                .iter()
                .map(|row| (row.window().unwrap().length().as_secs() / 60, row.found_nothing))
                .collect()
        };
        let (before, nothing) = (row(2, -10, 5, Done), empty(3, -5, 10));
        assert_eq!(spans(&[load(Done), before.clone(), nothing.clone()]), [(15, false), (15, true)]);
        assert_eq!(spans(&[load(Done), before.clone(), nothing.clone(), empty(4, -5, 20)]), [(15, false), (25, true)]);
        assert_eq!(spans(&[load(Done), before.clone(), nothing.clone(), row(4, -5, 20, Done)]), [(30, false)]);
        // Something came, and not from all of it.
        assert_eq!(spans(&[load(Done), before, nothing, row(4, 0, 20, Done)]), [(15, false), (15, true), (20, false)]);
    }

    #[test]
    fn an_owed_window_keeps_its_closed_neighbours_apart() {
        for owed in [Failed, Partial, Pending] {
            let rows = [load(Done), row(2, -10, 5, Done), row(3, -5, 10, owed), row(4, 0, 15, Done)];
            assert_eq!(compact(&rows), Compaction::default(), "{owed:?}");
        }
    }

    #[test]
    fn failed_neighbours_merge_until_one_has_moved() {
        let mut rows = [load(Done), row(2, 0, 5, Failed), row(3, 0, 10, Failed), row(4, 5, 15, Failed)];
        (rows[1].attempts, rows[3].attempts) = (4, 1);
        rows[2].last_error = Some("timed out".into());
        rows[3].position = Some(RecordNumber::new(7));
        let after = apply(&rows);
        assert_eq!(after.len(), 3);
        assert_eq!((after[1].attempts, after[1].last_error.as_deref()), (4, Some("timed out")));
        assert_eq!(after[2].position, Some(RecordNumber::new(7)));
    }

    #[test]
    fn windows_that_do_not_touch_are_left_alone() {
        assert_eq!(compact(&[load(Done), row(2, 0, 5, Done), row(3, 6, 10, Done)]), Compaction::default());
    }

    /// Ten times as many rows may take ten times as long and somewhat more, not a hundred times: `status` must still
    /// answer over 500,000 of them. Half of these are read again, and every other one is owed and has moved.
    #[test]
    fn what_a_ledger_says_is_read_in_one_go_however_long_it_is() {
        let ledger = |count: i64| {
            let mut rows = vec![load(Done), row(2, 0, count * 5 / 2, Done)];
            rows.extend((0..count).map(|n| {
                let state = if n % 2 == 0 { Failed } else { Done };
                let position = (n % 4 == 0).then(|| RecordNumber::new(9));
                let id = u64::try_from(n).unwrap_or_default() + 3;
                LedgerRow { position, ..row(id, n * 5, n * 5 + 6, state) }
            }));
            rows
        };
        let took = |rows: &[LedgerRow], times: usize| {
            let began = tokio::time::Instant::now();
            for _ in 0..times {
                assert!(gaps(rows).len() >= rows.len() / 2 - 1 && coverage(rows).loaded);
                assert!(compact(rows).removed.len() < rows.len() / 2);
            }
            began.elapsed()
        };
        // A short one ten times is as much work as a long one once, and meets the same other work on the machine. Were
        // each row looked for among all others, the long one would take ten times as long.
        let (short, long) = (ledger(2_000), ledger(20_000));
        let rounds: Vec<_> = (0..7).map(|_| (took(&short, 10), took(&long, 1))).collect();
        let least = |of: fn(&(Duration, Duration)) -> Duration| rounds.iter().map(of).min().unwrap_or_default();
        let (short, long) = (least(|round| round.0), least(|round| round.1));
        assert!(long < short * 5, "{long:?} for what took {short:?} in ten parts");
    }

    proptest::proptest! {
        /// CUR-1, WIN-1, BR-028: compaction never lowers the watermark, changes neither holes nor what is owed, and
        /// applying it twice is applying it once.
        #[test]
        fn compaction_keeps_watermark_holes_and_debts(
            windows in proptest::collection::vec((-20_i64..60, 1_i64..20, 0_u8..3, proptest::bool::ANY), 0..12)
        ) {
            let mut rows = vec![load(Done)];
            for (index, (start, length, state, moved)) in windows.into_iter().enumerate() {
                let state = [Done, Failed, Partial][usize::from(state)];
                let mut next = row(index as u64 + 2, start, start + length, state);
                next.position = moved.then(|| RecordNumber::new(9));
                rows.push(next);
            }
            let after = apply(&rows);
            let (before_cover, after_cover) = (coverage(&rows), coverage(&after));
            proptest::prop_assert!(before_cover.watermark <= after_cover.watermark);
            proptest::prop_assert_eq!(before_cover.newest_end, after_cover.newest_end);
            proptest::prop_assert_eq!(before_cover.holes, after_cover.holes);
            proptest::prop_assert_eq!(gaps(&rows).is_empty(), gaps(&after).is_empty());
            let owed = |rows: &[LedgerRow]| rows.iter().filter(|row| row.is_owed()).filter_map(LedgerRow::window)
                .flat_map(|window| (window.start().as_second()..window.end().as_second()).step_by(60)).collect::<std::collections::BTreeSet<_>>();
            proptest::prop_assert_eq!(owed(&rows), owed(&after));
            proptest::prop_assert_eq!(compact(&after), Compaction::default());
        }
    }
}
