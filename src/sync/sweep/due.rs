//! When sweeps are due: pure, from the rows of the ledger.
//!
//! The last complete sweep of each kind stays in the ledger, so that its time is stored with what it did. A finished
//! first load counts as both.

use jiff::{SignedDuration, Timestamp};

use crate::sync::ledger::coverage::coverage;
use crate::sync::settings::Repeat;
use crate::sync::{LedgerRow, Pass, RowState, Window};

/// A sweep may be so early: a nightly cron job then meets it every night, also when it starts a little sooner than the
/// night before, or when the clocks change.
const EARLY: SignedDuration = SignedDuration::from_hours(2);
/// How far a late sweep reaches back over the last one. Batch jobs and replicas have been seen to commit hours late.
const REACH: SignedDuration = SignedDuration::from_hours(48);

/// When the last sweep of this kind was done, by our own clock: the start of the last complete one, or the end of the
/// first load. `None` before that.
#[must_use]
pub fn last_success(rows: &[LedgerRow], pass: Pass) -> Option<Timestamp> {
    let done = rows.iter().filter(|row| row.state == RowState::Done);
    let counted = done.filter_map(|row| match row.pass {
        Pass::Load => Some(row.touched),
        other if other == pass => Some(row.opened),
        _ => None,
    });
    counted.max()
}

/// Whether a sweep of this kind is due. A clock that was set back by more than a period does not put it off for ever.
#[must_use]
pub fn is_due(rows: &[LedgerRow], pass: Pass, repeat: Option<Repeat>, now: Timestamp) -> bool {
    let (Some(repeat), true) = (repeat, coverage(rows).loaded) else { return false };
    last_success(rows, pass).is_none_or(|last| now.duration_since(last).abs() >= period(repeat) - EARLY)
}

/// The window of a late sweep: from 48 hours before where the last one ended, or where the first load began, to the
/// watermark. `None` before the first load is complete.
#[must_use]
pub fn late_window(rows: &[LedgerRow]) -> Option<Window> {
    let covered = coverage(rows);
    let done = rows.iter().filter(|row| row.pass == Pass::LateSweep && row.state == RowState::Done);
    let ended = done.filter_map(LedgerRow::window).map(Window::end).max();
    let since = ended.or(covered.pinned)?;
    Window::new(since.checked_sub(REACH).unwrap_or(Timestamp::MIN), covered.watermark?)
}

fn period(repeat: Repeat) -> SignedDuration {
    match repeat {
        Repeat::Daily => SignedDuration::from_hours(24),
        Repeat::Weekly => SignedDuration::from_hours(7 * 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stream;
    use crate::sync::Span;
    use crate::sync::ledger::coverage::tests::{load, minute, row};
    use RowState::{Done, Failed, Partial};

    const HOUR: i64 = 60;

    fn swept(id: u64, from: i64, to: i64, state: RowState) -> LedgerRow {
        let span = Span::Time(Window::new(minute(from), minute(to)).expect("a window"));
        LedgerRow { state, ..LedgerRow::opened(id, Stream::Bibs, Pass::LateSweep, span, minute(to)) }
    }

    fn due_at(rows: &[LedgerRow], repeat: Option<Repeat>, minutes: i64) -> bool {
        is_due(rows, Pass::LateSweep, repeat, minute(minutes))
    }

    #[test]
    fn a_finished_load_counts_as_a_sweep_and_an_unfinished_one_keeps_it_off() {
        let daily = Some(Repeat::Daily);
        let loaded = [LedgerRow { touched: minute(5 * HOUR), ..load(Done) }, row(2, 0, 50 * HOUR, Done)];
        assert!(!due_at(&loaded, daily, 26 * HOUR) && due_at(&loaded, daily, 27 * HOUR));
        assert!(!due_at(&loaded, None, 1000 * HOUR) && !due_at(&[load(Partial)], daily, 1000 * HOUR));
        assert!(
            !due_at(&loaded, Some(Repeat::Weekly), 170 * HOUR) && due_at(&loaded, Some(Repeat::Weekly), 171 * HOUR)
        );
    }

    /// A nightly cron job starts a few seconds sooner or later than the night before, and the clocks change.
    #[test]
    fn a_nightly_pass_meets_a_daily_sweep_every_night() {
        let mut rows = vec![load(Done)];
        for (night, start) in [24 * HOUR, 48 * HOUR - 1, 71 * HOUR - 2, 96 * HOUR].into_iter().enumerate() {
            assert!(due_at(&rows, Some(Repeat::Daily), start), "night {night}");
            rows.push(swept(10 + night as u64, start - 60, start, Done));
            assert!(!due_at(&rows, Some(Repeat::Daily), start + 12 * HOUR));
        }
    }

    #[test]
    fn a_clock_set_back_puts_it_off_by_one_period_at_most() {
        let rows = [load(Done), swept(2, 0, 10_000 * HOUR, Done)];
        assert!(due_at(&rows, Some(Repeat::Daily), 30 * HOUR));
        assert!(!due_at(&rows, Some(Repeat::Daily), 9_990 * HOUR));
    }

    #[test]
    fn a_sweep_that_failed_does_not_count() {
        let rows = [load(Done), swept(2, 0, 30 * HOUR, Failed)];
        assert!(due_at(&rows, Some(Repeat::Daily), 31 * HOUR));
    }

    #[test]
    fn a_late_sweep_reaches_back_two_days_over_the_last_one() {
        let window = |from, to| Window::new(minute(from), minute(to));
        let loaded = [load(Done), row(2, -10, 60 * HOUR, Done)];
        assert_eq!(late_window(&loaded), window(-48 * HOUR, 60 * HOUR));
        let again = [load(Done), row(2, -10, 90 * HOUR, Done), swept(3, 0, 60 * HOUR, Done)];
        assert_eq!(late_window(&again), window(12 * HOUR, 90 * HOUR));
        assert_eq!(late_window(&[load(Partial)]), None);
    }
}
