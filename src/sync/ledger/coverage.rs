//! What the ledger says is covered, and what is not: the watermark, holes and gaps of one stream.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{LedgerRow, Pass, RowState, Span};
use crate::record::Stream;
use crate::sync::Window;
use crate::sync::report::status::Gap;

/// What one stream's ledger says about the update pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Sierra's time when the first load began; `None` before one was opened.
    pub pinned: Option<Timestamp>,
    /// Whether the first load is complete.
    pub loaded: bool,
    /// The end of the last contiguous done window: everything before it is captured (WIN-1). `None` before the first
    /// load is complete.
    pub watermark: Option<Timestamp>,
    /// The end of the newest window, whatever its state: the next one starts from here.
    pub newest_end: Option<Timestamp>,
    /// Spans between windows that no row covers: lost rows of the ledger (BR-005).
    pub holes: Vec<Window>,
}

/// Reads the coverage from the rows of one stream, in any order.
#[must_use]
pub fn coverage(rows: &[LedgerRow]) -> Coverage {
    let load = load_of(rows);
    let pinned = load.and_then(pin_of);
    let loaded = load.is_some_and(|row| row.state == RowState::Done);
    let Some(pin) = pinned else {
        return Coverage { pinned, loaded, watermark: None, newest_end: None, holes: Vec::new() };
    };
    let windows = in_order(rows);
    let holes = holes_after(pin, &windows);
    let again = among(&windows, pin);
    let counted = windows.iter().filter(|(row, _)| !row.is_owed() || !again.contains(&row.id));
    let contiguous = counted.take_while(|(row, _)| row.state == RowState::Done).map(|(_, window)| window.end());
    let before_debts = contiguous.fold(pin, Timestamp::max);
    let before_holes = holes.first().map_or(before_debts, |hole| before_debts.min(hole.start()));
    let newest_end = windows.iter().map(|(_, window)| window.end()).fold(pin, Timestamp::max);
    Coverage { pinned, loaded, watermark: loaded.then_some(before_holes), newest_end: Some(newest_end), holes }
}

/// The numbers of the rows that are only read again: their windows lie wholly in what was done before they were opened,
/// as after a step of Sierra's clock. They are owed like any other, but what was captured before stays captured (CUR-1).
/// Before the pin the load covers.
pub(super) fn read_again(rows: &[LedgerRow]) -> BTreeSet<u64> {
    load_of(rows).and_then(pin_of).map_or_else(BTreeSet::new, |pin| among(&in_order(rows), pin))
}

/// The first load: the sweep of a rebuild where nothing else was loaded.
fn load_of(rows: &[LedgerRow]) -> Option<&LedgerRow> {
    let loads = rows.iter().filter(|row| matches!(row.pass, Pass::Load | Pass::Rebuild));
    loads.max_by_key(|row| (row.pass == Pass::Load, row.id))
}

fn pin_of(row: &LedgerRow) -> Option<Timestamp> {
    match row.span {
        Span::Ids { pinned, .. } => Some(pinned),
        Span::Time(_) | Span::Days { .. } => None,
    }
}

/// As [`read_again`]: each window is held against those with lower numbers, in one go through all of them.
fn among(windows: &[(&LedgerRow, Window)], pin: Timestamp) -> BTreeSet<u64> {
    let mut by_id: Vec<(&LedgerRow, Window)> = windows.to_vec();
    by_id.sort_unstable_by_key(|(row, _)| row.id);
    let (mut done, mut again) = (Stretches::default(), BTreeSet::new());
    for (row, window) in by_id {
        if done.reach(window.start().max(pin)) >= window.end() {
            again.insert(row.id);
        }
        if row.state == RowState::Done {
            done.add(window);
        }
    }
    again
}

/// Stretches of time that neither touch nor overlap: start and end.
#[derive(Debug, Default)]
struct Stretches(BTreeMap<Timestamp, Timestamp>);

impl Stretches {
    /// Adds a window; whatever it touches becomes one stretch with it.
    fn add(&mut self, window: Window) {
        let (mut start, mut end) = (window.start(), window.end());
        while let Some((first, last)) = self.0.range(..=end).next_back().map(|(first, last)| (*first, *last)) {
            if last < start {
                break;
            }
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }

    /// How far one comes from `from` without leaving them.
    fn reach(&self, from: Timestamp) -> Timestamp {
        self.0.range(..=from).next_back().map_or(from, |(_, end)| from.max(*end))
    }
}

/// What no window covers between `pin` and the end of the last one.
fn holes_after(pin: Timestamp, windows: &[(&LedgerRow, Window)]) -> Vec<Window> {
    let mut by_start: Vec<Window> = windows.iter().map(|(_, window)| *window).collect();
    by_start.sort_unstable();
    let mut reached = pin;
    let mut holes = Vec::new();
    for window in by_start {
        holes.extend(Window::new(reached, window.start()));
        reached = reached.max(window.end());
    }
    holes
}

/// The update windows in the order of their ends: the order in which they were due.
pub(super) fn in_order(rows: &[LedgerRow]) -> Vec<(&LedgerRow, Window)> {
    let mut ordered: Vec<_> = rows
        .iter()
        .filter(|row| row.pass == Pass::Update)
        .filter_map(|row| row.window().map(|window| (row, window)))
        .collect();
    ordered.sort_by_key(|(row, window)| (window.end(), row.id));
    ordered
}

/// What is owed and has failed, as people see it: failed rows of every pass, and holes. A row that is under way, or
/// that waits for quota, is not a gap.
#[must_use]
pub fn gaps(rows: &[LedgerRow]) -> Vec<Gap> {
    let failed = rows.iter().filter(|row| row.state == RowState::Failed).map(gap_of);
    let holes = coverage(rows).holes.into_iter().map(|hole| Gap {
        from: hole.start().to_string(),
        to: hole.end().to_string(),
        attempts: 0,
        error: Some("no window covers this span".into()),
    });
    failed.chain(holes).collect()
}

/// A row as a gap.
#[must_use]
pub fn gap_of(row: &LedgerRow) -> Gap {
    let (from, to) = match row.span {
        Span::Time(window) => (window.start().to_string(), window.end().to_string()),
        Span::Days { from, to } => (from.to_string(), to.tomorrow().unwrap_or(to).to_string()),
        Span::Ids { .. } if row.stream == Stream::Patrons => ("withheld".into(), "withheld".into()),
        Span::Ids { from, to, .. } => (
            row.position.map_or(from, |position| position.next()).to_string(),
            to.map_or_else(|| "end".into(), |to| to.next().to_string()),
        ),
    };
    Gap { from, to, attempts: row.attempts, error: row.last_error.clone() }
}

#[cfg(test)]
pub(in crate::sync) mod tests {
    use super::*;
    use crate::record::RecordNumber;

    /// The moment `minutes` after the pin of [`load`].
    pub(in crate::sync) fn minute(minutes: i64) -> Timestamp {
        let pin: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a timestamp");
        pin + jiff::SignedDuration::from_mins(minutes)
    }

    pub(in crate::sync) fn load(state: RowState) -> LedgerRow {
        let span = Span::Ids { from: RecordNumber::new(1), to: None, pinned: minute(0) };
        LedgerRow { state, ..LedgerRow::opened(1, Stream::Bibs, Pass::Load, span, minute(0)) }
    }

    pub(in crate::sync) fn row(id: u64, from: i64, to: i64, state: RowState) -> LedgerRow {
        let span = Span::Time(Window::new(minute(from), minute(to)).expect("a window"));
        LedgerRow { state, ..LedgerRow::opened(id, Stream::Bibs, Pass::Update, span, minute(to)) }
    }

    use RowState::{Done, Failed, Partial, Pending};

    #[test]
    fn nothing_is_covered_before_the_load_is_complete() {
        assert_eq!(coverage(&[]).newest_end, None);
        let loading = coverage(&[load(Partial)]);
        assert_eq!((loading.loaded, loading.watermark, loading.newest_end), (false, None, Some(minute(0))));
        assert_eq!(coverage(&[load(Done)]).watermark, Some(minute(0)));
    }

    /// BR-007: overlapping edges are no holes, in whatever order the rows stand.
    #[test]
    fn overlapping_windows_leave_no_hole_in_any_order() {
        let rows = [row(2, 8, 18, Done), load(Done), row(4, 5, 9, Done), row(3, 18, 28, Done), row(1, 0, 10, Done)];
        let covered = coverage(&rows);
        assert_eq!((covered.holes, covered.watermark), (Vec::new(), Some(minute(28))));
        assert_eq!(gaps(&rows), Vec::new());
    }

    /// BR-070: window 5 fails, 6 to 20 succeed; the watermark stays at the end of window 4 until 5 heals.
    #[test]
    fn the_watermark_waits_for_a_failed_window_and_jumps_when_it_heals() {
        let mut rows: Vec<LedgerRow> =
            (1..=20).map(|n| row(n as u64, n * 5 - 15, n * 5, if n == 5 { Failed } else { Done })).collect();
        rows.push(load(Done));
        assert_eq!(coverage(&rows).watermark, Some(minute(20)));
        assert_eq!(gaps(&rows).len(), 1);
        assert_eq!(
            (gaps(&rows)[0].from.as_str(), gaps(&rows)[0].to.as_str()),
            (minute(10).to_string().as_str(), minute(25).to_string().as_str())
        );
        rows[4].state = Done;
        assert_eq!((coverage(&rows).watermark, gaps(&rows)), (Some(minute(100)), Vec::new()));
    }

    /// BR-005: rows that went missing are one hole, and the watermark stays before it.
    #[test]
    fn lost_rows_are_one_hole() {
        let rows = [load(Done), row(2, 0, 10, Done), row(9, 4330, 4340, Done)];
        let covered = coverage(&rows);
        assert_eq!(covered.holes, [Window::new(minute(10), minute(4330)).expect("a window")]);
        assert_eq!((covered.watermark, covered.newest_end), (Some(minute(10)), Some(minute(4340))));
        assert_eq!(gaps(&rows).len(), 1);
    }

    #[test]
    fn rows_under_way_are_owed_but_no_gaps_and_hold_the_watermark() {
        let rows = [load(Done), row(2, 0, 10, Pending), row(3, 5, 15, Partial)];
        assert_eq!((coverage(&rows).watermark, gaps(&rows)), (Some(minute(0)), Vec::new()));
    }

    #[test]
    fn what_is_read_again_is_owed_and_does_not_take_the_watermark_back() {
        let rows = [load(Done), row(2, 0, 60, Done), row(3, 40, 61, Failed), row(4, 50, 70, Done)];
        assert_eq!(coverage(&rows).watermark, Some(minute(60)), "its last minute was never done");
        let rows = [load(Done), row(2, -10, 60, Done), row(3, -75, 5, Failed), row(4, 50, 70, Done)];
        assert_eq!((coverage(&rows).watermark, gaps(&rows).len()), (Some(minute(70)), 1));
    }

    proptest::proptest! {
        /// In one go through all rows the same is found as by looking at all the others for each.
        #[test]
        fn what_is_read_again_is_what_earlier_windows_cover(
            windows in proptest::collection::vec((-20_i64..60, 1_i64..20, 0_u8..3), 0..14)
        ) {
            let mut rows = vec![load(Done)];
            for (index, (start, length, state)) in windows.into_iter().enumerate() {
                let state = [Done, Failed, Partial][usize::from(state)];
                rows.push(row(index as u64 + 2, start, start + length, state));
            }
            let is_covered = |row: &LedgerRow| row.window().is_some_and(|window| {
                let minutes = (window.start().as_second()..window.end().as_second()).step_by(60);
                minutes.into_iter().all(|second| {
                    let done = |other: &&LedgerRow| other.id < row.id && other.state == Done;
                    let holds = |window: Window| (window.start().as_second()..window.end().as_second()).contains(&second);
                    second < minute(0).as_second()
                        || rows.iter().filter(done).filter_map(LedgerRow::window).any(holds)
                })
            });
            let expected: BTreeSet<u64> = rows.iter().filter(|row| is_covered(row)).map(|row| row.id).collect();
            proptest::prop_assert_eq!(read_again(&rows), expected);
        }
    }

    #[test]
    fn a_failed_id_range_shows_numbers_but_never_those_of_patrons() {
        let mut failed = LedgerRow { position: Some(RecordNumber::new(41)), ..load(Failed) };
        assert_eq!((gap_of(&failed).from.as_str(), gap_of(&failed).to.as_str()), ("42", "end"));
        failed.stream = Stream::Patrons;
        assert_eq!((gap_of(&failed).from.as_str(), gap_of(&failed).to.as_str()), ("withheld", "withheld"));
    }
}
