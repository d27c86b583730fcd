//! The delete pass in the ledger: ranges of local days.
//!
//! `deletedDate` is a day without a time, in the library's zone (sierra-api.md §7 item 8), so a pass reads whole days
//! and reaches over both ends.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span as Days, Timestamp};

use super::{LedgerRow, Pass, RowState, Span};

/// The closed range of days for a delete pass that starts at `now` by Sierra's clock: from the day on which the last
/// *complete* pass started that brought anything (the load's pin before the first) to today, `overlap` days more on both
/// sides. A pass that brought nothing is not believed (BR-054), and reading its days once more costs no call.
#[must_use]
pub fn days_to_read(rows: &[LedgerRow], pinned: Timestamp, now: Timestamp, overlap: u8, zone: &TimeZone) -> Span {
    let since = last_believed(rows).map_or(pinned, |row| row.opened);
    let (first, last) = (local_day(since.min(now), zone), local_day(now, zone));
    let reach = Days::new().days(i64::from(overlap));
    Span::Days { from: first.saturating_sub(reach), to: last.saturating_add(reach) }
}

/// The row of a delete pass that failed before it came anywhere: the next pass takes it over, since it reads all of
/// its days and more. So a long outage leaves one row.
#[must_use]
pub fn to_take_over(rows: &[LedgerRow]) -> Option<&LedgerRow> {
    rows.iter()
        .filter(|row| row.pass == Pass::Deletes && row.is_owed() && row.position.is_none())
        .min_by_key(|row| row.id)
}

/// The days that a pass reads which takes `row` over and would read `span` by itself: those of both. A person may have
/// put the cursor further back than any pass reaches.
#[must_use]
pub fn joined(row: &LedgerRow, span: Span) -> Span {
    match (row.span, span) {
        (Span::Days { from: first, to: last }, Span::Days { from, to }) => {
            Span::Days { from: first.min(from), to: last.max(to) }
        }
        _ => span,
    }
}

/// Everything deleted before this moment is captured: the start of the last complete pass.
#[must_use]
pub fn deleted_through(rows: &[LedgerRow]) -> Option<Timestamp> {
    last_complete(rows).map(|row| row.opened)
}

/// Rows of complete delete passes that a later complete one has made superfluous.
#[must_use]
pub fn superseded(rows: &[LedgerRow]) -> Vec<u64> {
    let needed = [last_complete(rows), last_believed(rows)].map(|row| row.map(|row| row.id));
    complete(rows).map(|row| row.id).filter(|id| !needed.contains(&Some(*id))).collect()
}

/// The end of a local day, whole seconds: what is shown as the `updated` of a tombstone.
#[must_use]
pub fn end_of_day(day: Date, zone: &TimeZone) -> Option<Timestamp> {
    let midnight = zone.to_ambiguous_timestamp(day.at(23, 59, 59, 0));
    midnight.later().ok()
}

fn complete(rows: &[LedgerRow]) -> impl Iterator<Item = &LedgerRow> {
    rows.iter().filter(|row| row.pass == Pass::Deletes && row.state == RowState::Done)
}

/// The last one to which Sierra did not only say "nothing".
fn last_believed(rows: &[LedgerRow]) -> Option<&LedgerRow> {
    complete(rows).filter(|row| !row.found_nothing).max_by_key(|row| (row.opened, row.id))
}

fn last_complete(rows: &[LedgerRow]) -> Option<&LedgerRow> {
    complete(rows).max_by_key(|row| (row.opened, row.id))
}

/// The day that `at` falls on in `zone`.
#[must_use]
pub fn local_day(at: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(at).date()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stream;
    use jiff::civil::date;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn row(id: u64, opened: &str, state: RowState) -> LedgerRow {
        let span = Span::Days { from: date(2026, 1, 1), to: date(2026, 1, 2) };
        LedgerRow { state, ..LedgerRow::opened(id, Stream::Bibs, Pass::Deletes, span, at(opened)) }
    }

    /// BR-012: the days are those of the library's zone, one more on both sides.
    #[test]
    fn a_pass_reads_local_days_and_one_more_on_both_sides() {
        let zone = TimeZone::get("Europe/London").expect("in the time zone database");
        // 23:30Z in summer is half past midnight of the next local day.
        let days = days_to_read(&[], at("2026-07-01T10:00:00Z"), at("2026-07-03T23:30:00Z"), 1, &zone);
        assert_eq!(days, Span::Days { from: date(2026, 6, 30), to: date(2026, 7, 5) });
        let none = days_to_read(&[], at("2026-07-01T10:00:00Z"), at("2026-07-03T23:30:00Z"), 0, &zone);
        assert_eq!(none, Span::Days { from: date(2026, 7, 1), to: date(2026, 7, 4) });
    }

    #[test]
    fn a_pass_goes_on_from_the_last_complete_one_and_not_from_a_failed_one() {
        let rows = [
            row(1, "2026-01-03T10:00:00Z", RowState::Done),
            row(2, "2026-01-05T10:00:00Z", RowState::Done),
            row(3, "2026-01-07T10:00:00Z", RowState::Failed),
        ];
        let days = days_to_read(&rows, at("2026-01-01T00:00:00Z"), at("2026-01-08T10:00:00Z"), 1, &TimeZone::UTC);
        assert_eq!(days, Span::Days { from: date(2026, 1, 4), to: date(2026, 1, 9) });
        assert_eq!((deleted_through(&rows), superseded(&rows)), (Some(at("2026-01-05T10:00:00Z")), vec![1]));
        assert_eq!((deleted_through(&[]), superseded(&[])), (None, Vec::new()));
    }

    /// BR-054: a pass that brought nothing may have been told a lie.
    #[test]
    fn a_pass_goes_on_from_the_last_one_that_brought_something() {
        let empty = |id, opened| LedgerRow { found_nothing: true, ..row(id, opened, RowState::Done) };
        let rows = [
            row(1, "2026-01-03T10:00:00Z", RowState::Done),
            empty(2, "2026-01-10T10:00:00Z"),
            empty(3, "2026-01-17T10:00:00Z"),
        ];
        let pin = at("2026-01-01T00:00:00Z");
        let days = |rows: &[LedgerRow]| days_to_read(rows, pin, at("2026-01-24T10:00:00Z"), 1, &TimeZone::UTC);
        assert_eq!(days(&rows), Span::Days { from: date(2026, 1, 2), to: date(2026, 1, 25) });
        assert_eq!(days(&rows[1..]), Span::Days { from: date(2025, 12, 31), to: date(2026, 1, 25) });
        assert_eq!((deleted_through(&rows), superseded(&rows)), (Some(at("2026-01-17T10:00:00Z")), vec![2]));
    }

    #[test]
    fn a_pass_that_came_nowhere_is_taken_over() {
        use crate::record::RecordNumber;
        let moved =
            LedgerRow { position: Some(RecordNumber::new(7)), ..row(1, "2026-01-03T10:00:00Z", RowState::Failed) };
        let rows =
            [moved, row(2, "2026-01-05T10:00:00Z", RowState::Failed), row(3, "2026-01-05T10:00:00Z", RowState::Done)];
        assert_eq!(to_take_over(&rows).map(|row| row.id), Some(2));
        assert_eq!(to_take_over(&rows[2..]), None);
    }

    #[test]
    fn who_takes_a_row_over_reads_its_days_too() {
        let days = |from: i8, to: i8| Span::Days { from: date(2026, 1, from), to: date(2026, 1, to) };
        let rewound = LedgerRow { span: days(2, 9), ..row(2, "2026-01-08T10:00:00Z", RowState::Pending) };
        assert_eq!(joined(&rewound, days(7, 10)), days(2, 10));
    }

    #[test]
    fn a_clock_that_went_back_still_gives_a_range_in_order() {
        let rows = [row(1, "2026-01-09T10:00:00Z", RowState::Done)];
        let days = days_to_read(&rows, at("2026-01-01T00:00:00Z"), at("2026-01-05T10:00:00Z"), 1, &TimeZone::UTC);
        assert_eq!(days, Span::Days { from: date(2026, 1, 4), to: date(2026, 1, 6) });
    }

    #[test]
    fn the_end_of_a_day_is_its_last_second_in_the_zone() {
        let zone = TimeZone::get("America/New_York").expect("in the time zone database");
        assert_eq!(end_of_day(date(2024, 3, 9), &zone), Some(at("2024-03-10T04:59:59Z")));
        assert_eq!(end_of_day(date(2024, 3, 9), &TimeZone::UTC), Some(at("2024-03-09T23:59:59Z")));
    }
}
