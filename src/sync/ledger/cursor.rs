//! The cursor of a stream as people see it and put it: where its next window begins.
//!
//! A cursor is never moved past anything and nothing is ever taken from the ledger here. Put back, what lies between is
//! owed once more; put ahead, what lies between stays owed as a window of its own. So no order of a person can lose a
//! change, and the watermark never goes back (CUR-1, WIN-1).

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span as Days, Timestamp};
use serde::{Deserialize, Serialize};

use super::coverage::coverage;
use super::days::local_day;
use super::{LedgerRow, Pass, RowState, Span};
use crate::record::Stream;
use crate::sync::Window;
use crate::sync::settings::StreamSettings;

/// One row of the ledger for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorLine {
    /// The stream.
    pub stream: Stream,
    /// What it covers: a half-open span of time, days, or records.
    pub window: String,
    /// How it stands.
    pub state: RowState,
    /// The last record number that is behind it; never of patrons.
    pub position: Option<String>,
    /// How often it failed.
    pub attempts: u32,
    /// The kind of pass.
    pub pass: Pass,
}

impl CursorLine {
    /// What is shown of `row`.
    #[must_use]
    pub fn of(row: &LedgerRow) -> Self {
        let position = row.position.filter(|_| row.stream != Stream::Patrons);
        Self {
            stream: row.stream,
            window: row.span_text(),
            state: row.state,
            position: position.map(|position| position.to_string()),
            attempts: row.attempts,
            pass: row.pass,
        }
    }
}

/// What putting a cursor comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Where the newest window ended before.
    pub from: Timestamp,
    /// What is owed from now on.
    pub owed: Vec<(Pass, Span)>,
}

/// Why a cursor stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Nothing is covered yet.
    #[error(
        "the first load of the stream is not complete, so it has no cursor yet: `sierra-sync sync` goes on with it"
    )]
    NotLoaded,
    /// The time has not come yet.
    #[error("{to} has not come yet: a cursor stands at a time that has been")]
    Future {
        /// What was asked for.
        to: Timestamp,
    },
    /// There is nothing to do.
    #[error("the cursor stands at {at} already")]
    Already {
        /// Where it stands.
        at: Timestamp,
    },
    /// A rewind goes back.
    #[error("the cursor stands at {at}, which is not behind {to}: a rewind goes back; `cursor set` goes either way")]
    NotBack {
        /// Where it stands.
        at: Timestamp,
        /// What was asked for.
        to: Timestamp,
    },
}

/// What is owed once the cursor of a stream with these `rows` is put to `to`. Put back, deletions from that day on are
/// owed too.
///
/// # Errors
/// When there is nothing that may be put there.
pub fn put(
    rows: &[LedgerRow],
    to: Timestamp,
    now: Timestamp,
    settings: &StreamSettings,
    zone: &TimeZone,
) -> Result<Put, PutError> {
    let covered = coverage(rows);
    let Some(from) = covered.newest_end.filter(|_| covered.loaded) else { return Err(PutError::NotLoaded) };
    if to > now {
        return Err(PutError::Future { to });
    }
    if let Some(window) = Window::new(to, from) {
        let reach = Days::new().days(i64::from(settings.deleted_overlap_days));
        let (first, last) = (local_day(to, zone), local_day(now, zone));
        let days = Span::Days { from: first.saturating_sub(reach), to: last.saturating_add(reach) };
        return Ok(Put { from, owed: vec![(Pass::Update, Span::Time(window)), (Pass::Deletes, days)] });
    }
    match Window::new(from, to) {
        Some(_) => Ok(Put { from, owed: between(from, to, settings.overlap) }),
        None => Err(PutError::Already { at: from }),
    }
}

/// The span that lies before a cursor put ahead, with the overlap that the next window would have had.
fn between(from: Timestamp, to: Timestamp, overlap: Duration) -> Vec<(Pass, Span)> {
    let back = SignedDuration::try_from(overlap).unwrap_or(SignedDuration::MAX);
    let start = from.checked_sub(back).unwrap_or(Timestamp::MIN);
    Window::new(start, to).map(|window| (Pass::Update, Span::Time(window))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::super::coverage::gaps;
    use super::super::coverage::tests::{load, minute, row};
    use super::*;
    use crate::record::RecordNumber;
    use crate::sync::ledger::plan::windows_to_open;
    use crate::sync::settings::tests::settings;
    use RowState::{Done, Failed, Partial};

    fn window(from: i64, to: i64) -> Span {
        Span::Time(Window::new(minute(from), minute(to)).expect("a window"))
    }

    fn put_to(rows: &[LedgerRow], to: i64) -> Result<Put, PutError> {
        put(rows, minute(to), minute(120), &settings(Stream::Bibs), &TimeZone::UTC)
    }

    #[test]
    fn put_back_everything_since_is_owed_once_more_and_deletions_with_it() {
        let rows = [load(Done), row(2, -10, 60, Done)];
        let days = Span::Days { from: date(2026, 1, 4), to: date(2026, 1, 6) };
        let put = put_to(&rows, 20).expect("put");
        assert_eq!(put, Put { from: minute(60), owed: vec![(Pass::Update, window(20, 60)), (Pass::Deletes, days)] });
        // Further back than the first load began: what was stamped before is read again too.
        assert_eq!(put_to(&rows, -600).expect("put").owed[0].1, window(-600, 60));
    }

    #[test]
    fn put_ahead_what_lies_between_stays_owed() {
        let rows = [load(Done), row(2, -10, 60, Done)];
        let put = put_to(&rows, 100).expect("put");
        assert_eq!(put.owed, [(Pass::Update, window(50, 100))]);
        let after = [load(Done), row(2, -10, 60, Done), row(3, 50, 100, RowState::Pending)];
        let next = windows_to_open(&after, minute(110), Duration::from_secs(600), SignedDuration::ZERO);
        assert_eq!(next.iter().map(|next| (next.start(), next.end())).collect::<Vec<_>>(), [(minute(90), minute(110))]);
        assert_eq!((coverage(&after).watermark, coverage(&after).holes), (Some(minute(60)), Vec::new()));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(put_to(&[load(Partial)], 20), Err(PutError::NotLoaded));
        assert_eq!(put_to(&[], 20), Err(PutError::NotLoaded));
        let rows = [load(Done), row(2, -10, 60, Failed)];
        assert_eq!(put_to(&rows, 60), Err(PutError::Already { at: minute(60) }));
        assert_eq!(put_to(&rows, 121), Err(PutError::Future { to: minute(121) }));
    }

    #[test]
    fn positions_are_shown_but_not_those_of_patrons() {
        let row = LedgerRow { position: Some(RecordNumber::new(1_024_364)), ..load(Partial) };
        let shown = CursorLine::of(&row);
        assert_eq!((shown.window.as_str(), shown.position.as_deref()), ("all records", Some("1024364")));
        let withheld = CursorLine::of(&LedgerRow { stream: Stream::Patrons, ..row });
        assert_eq!((withheld.window.as_str(), withheld.position), ("all records", None));
    }

    proptest::proptest! {
        /// CUR-1, WIN-1: wherever a person puts it, the watermark stays, the newest end never goes back, no hole appears,
        /// and everything from there on is covered by a row.
        #[test]
        fn no_cursor_loses_anything(
            windows in proptest::collection::vec((1_i64..20, proptest::bool::ANY), 0..8), to in -100_i64..120
        ) {
            let (mut rows, mut end) = (vec![load(Done)], 0);
            for (index, (length, done)) in windows.into_iter().enumerate() {
                rows.push(row(index as u64 + 2, end - 10, end + length, if done { Done } else { Failed }));
                end += length;
            }
            let before = coverage(&rows);
            if let Ok(put) = put_to(&rows, to) {
                for (offset, (pass, span)) in put.owed.into_iter().enumerate() {
                    rows.push(LedgerRow::opened(100 + offset as u64, Stream::Bibs, pass, span, minute(120)));
                }
                let after = coverage(&rows);
                proptest::prop_assert_eq!(after.watermark, before.watermark);
                proptest::prop_assert!(after.newest_end >= before.newest_end);
                proptest::prop_assert_eq!(&after.holes, &before.holes);
                proptest::prop_assert_eq!(gaps(&rows).len(), rows.iter().filter(|row| row.state == Failed).count());
            }
        }
    }
}
