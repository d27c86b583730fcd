//! Which windows to open, and when owed ones are tried again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::coverage::coverage;
use super::{LedgerRow, Pass, RowState};
use crate::sync::Window;

/// The windows that a run of the update pass opens: one for each hole of the ledger, and one that goes on from the
/// newest window to `bound`. Empty when the first load is not complete, or when there is nothing between the newest
/// window and `bound` (BR-073: caught up is a success).
///
/// A window to which Sierra only said "nothing" is not believed (BR-054: an empty answer in spite of records): the one
/// that goes on reaches back over it, and over all like it, until something comes. That costs no call more, since what
/// is empty indeed is one question whatever its length.
///
/// `overlap` is how far the new window reaches back over the one before; the caller adds the size of a step of
/// Sierra's clock to it. With such a step the new window may end before the newest one does: while `reach_back` is
/// set it is opened all the same, since records are being stamped by the stepped clock.
#[must_use]
pub fn windows_to_open(
    rows: &[LedgerRow],
    bound: Timestamp,
    overlap: Duration,
    reach_back: SignedDuration,
) -> Vec<Window> {
    let covered = coverage(rows);
    let Some(newest) = covered.newest_end.filter(|_| covered.loaded) else { return Vec::new() };
    let back = SignedDuration::try_from(overlap).unwrap_or(SignedDuration::MAX).saturating_add(reach_back.abs());
    let usual = newest.checked_sub(back).unwrap_or(Timestamp::MIN);
    let start = doubted(rows).fold(usual, Timestamp::min);
    let moves_on = bound > newest || !reach_back.is_zero();
    let next = if moves_on { Window::new(start, bound) } else { None };
    covered.holes.into_iter().chain(next).collect()
}

/// Where windows begin that brought nothing.
fn doubted(rows: &[LedgerRow]) -> impl Iterator<Item = Timestamp> {
    let empty = rows.iter().filter(|row| row.pass == Pass::Update && row.state == RowState::Done && row.found_nothing);
    empty.filter_map(|row| row.window().map(|window| window.start()))
}

/// The owed rows in the order in which they are worked on: the load, then windows from the oldest, then deletes.
#[must_use]
pub fn owed_in_order(rows: &[LedgerRow]) -> Vec<LedgerRow> {
    let mut owed: Vec<LedgerRow> = rows.iter().filter(|row| row.is_owed()).cloned().collect();
    owed.sort_by_key(|row| {
        let rank = match row.pass {
            Pass::Load => 0,
            Pass::Update => 1,
            Pass::Deletes => 2,
            Pass::LateSweep => 3,
            Pass::Backfill => 4,
            Pass::Reconcile => 5,
            Pass::Rebuild => 6,
            Pass::RebuildDeletes => 7,
        };
        (rank, row.window(), row.id)
    });
    owed
}

/// How long a row rests after its `attempts`-th failure: one minute, doubling up to half an hour. A failed window is
/// retried for ever (BR-001), beside the windows that follow it.
#[must_use]
pub fn rest_after(attempts: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(60);
    const LONGEST: Duration = Duration::from_secs(1800);
    FIRST.saturating_mul(2_u32.saturating_pow(attempts.saturating_sub(1))).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::super::coverage::tests::{load, minute, row};
    use super::super::{RowState, Span};
    use super::*;
    use RowState::{Done, Failed, Partial, Pending};

    const OVERLAP: Duration = Duration::from_secs(600);
    const NO_STEP: SignedDuration = SignedDuration::ZERO;

    fn window(from: i64, to: i64) -> Window {
        Window::new(minute(from), minute(to)).expect("a window")
    }

    #[test]
    fn the_first_window_follows_from_the_pin_of_the_load() {
        assert_eq!(windows_to_open(&[load(Done)], minute(60), OVERLAP, NO_STEP), [window(-10, 60)]);
        assert_eq!(windows_to_open(&[load(Partial)], minute(60), OVERLAP, NO_STEP), []);
        assert_eq!(windows_to_open(&[], minute(60), OVERLAP, NO_STEP), []);
    }

    /// BR-059, BR-030: each run starts from the newest window of the ledger, whatever its state.
    #[test]
    fn the_next_window_starts_at_the_newest_one_whatever_its_state() {
        for state in [Done, Failed, Partial, Pending] {
            let rows = [load(Done), row(2, -10, 60, state)];
            assert_eq!(windows_to_open(&rows, minute(65), OVERLAP, NO_STEP), [window(50, 65)], "{state:?}");
        }
    }

    /// BR-073: nothing between the newest window and the bound is success without a window.
    #[test]
    fn caught_up_opens_nothing() {
        let rows = [load(Done), row(2, -10, 60, Done)];
        assert_eq!(windows_to_open(&rows, minute(60), OVERLAP, NO_STEP), []);
        assert_eq!(windows_to_open(&rows, minute(55), OVERLAP, NO_STEP), []);
    }

    /// BR-005: rows that went missing are opened again.
    #[test]
    fn holes_are_opened_again() {
        let rows = [load(Done), row(2, -10, 10, Done), row(3, 40, 60, Done)];
        assert_eq!(windows_to_open(&rows, minute(60), OVERLAP, NO_STEP), [window(10, 40)]);
        assert_eq!(windows_to_open(&rows, minute(61), OVERLAP, NO_STEP), [window(10, 40), window(50, 61)]);
    }

    /// BR-054: "nothing" is said once more before it is believed, however long ago it was.
    #[test]
    fn a_window_that_brought_nothing_is_reached_back_over() {
        let empty = |id, from, to| LedgerRow { found_nothing: true, ..row(id, from, to, Done) };
        let rows = [load(Done), row(2, -10, 20, Done), empty(3, 10, 60)];
        assert_eq!(windows_to_open(&rows, minute(65), OVERLAP, NO_STEP), [window(10, 65)]);
        // Also when others came after it, and never less than the overlap.
        let rows = [load(Done), empty(2, -10, 20), row(3, 10, 60, Done), empty(4, 55, 60)];
        assert_eq!(windows_to_open(&rows, minute(65), OVERLAP, NO_STEP), [window(-10, 65)]);
        let rows = [load(Done), row(2, -10, 60, Done), empty(3, 55, 60)];
        assert_eq!(windows_to_open(&rows, minute(65), OVERLAP, NO_STEP), [window(50, 65)]);
        // What failed is owed for itself.
        let failed = LedgerRow { found_nothing: true, ..row(3, -10, 60, Failed) };
        assert_eq!(windows_to_open(&[load(Done), failed], minute(65), OVERLAP, NO_STEP), [window(50, 65)]);
    }

    #[test]
    fn a_step_of_sierras_clock_reaches_back_by_its_size() {
        let rows = [load(Done), row(2, -10, 120, Done)];
        let hour = SignedDuration::from_hours(1);
        assert_eq!(windows_to_open(&rows, minute(180), OVERLAP, hour), [window(50, 180)]);
        // Stepped back: the bound lies before the newest window, and yet new edits are stamped there.
        assert_eq!(windows_to_open(&rows, minute(62), OVERLAP, -hour), [window(50, 62)]);
    }

    #[test]
    fn owed_rows_are_worked_on_from_the_oldest() {
        let span = Span::Days { from: jiff::civil::date(2026, 1, 4), to: jiff::civil::date(2026, 1, 6) };
        let deletes = LedgerRow::opened(2, crate::record::Stream::Bibs, Pass::Deletes, span, minute(0));
        let rows = [deletes, row(9, 5, 10, Failed), row(4, 8, 20, Pending), row(5, 0, 3, Done), load(Partial)];
        assert_eq!(owed_in_order(&rows).iter().map(|row| row.id).collect::<Vec<_>>(), [1, 9, 4, 2]);
    }

    #[test]
    fn failed_rows_rest_longer_each_time_up_to_half_an_hour() {
        let minutes: Vec<u64> = (1..8).map(|attempts| rest_after(attempts).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(rest_after(u32::MAX), rest_after(9));
    }
}
