//! What capture set aside is asked for again by itself. Sierra may be mended without a new stamp on the record: then no
//! window would ever show it, and sinks would keep the version before.
//!
//! Three times: with the next pass, after an hour and after a day. Then the entry is parked, until a newer version of
//! the record arrives in the ordinary way. Patrons are left out: the quarantine knows their pseudonyms only.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::absorb::{Arrival, Batch, Intake, NO_ROW};
use super::error::WalkError;
use super::lane::Lane;
use super::tally::Tally;
use super::unread;
use crate::record::RecordNumber;
use crate::sync::decide::Rules;
use crate::sync::ports::{
    Answer, CallClass, FieldSet, Page, PageFilter, PageQuery, QuarantineEntry, QuarantineState, Slice, SourceErrorKind,
};
use crate::sync::{LedgerRow, Origin, Pass, Span, StoreError};

/// How long after its first sight an entry is replayed.
const AFTER: [SignedDuration; 3] =
    [SignedDuration::ZERO, SignedDuration::from_hours(1), SignedDuration::from_hours(24)];
/// Numbers in one list: fewer than a page of which every entry is bad may hold before it stops a stream.
const LIST: usize = 19;
/// Entries replayed in one pass: the rest has its turn in the next one.
const IN_A_PASS: usize = 5 * LIST;
/// Entries looked at.
const LOOKED_AT: usize = 10_000;
/// Records that fail whenever they are asked for cost many calls each: so many end the replays of a pass.
const POISONED: u32 = 2;

/// An entry that is due.
#[derive(Debug, Clone)]
struct Due {
    number: RecordNumber,
    entry: QuarantineEntry,
}

impl Lane {
    /// Asks again for what was set aside before `began` and is due. What Sierra does not answer now is left for a later
    /// pass: nothing is owed here.
    ///
    /// # Errors
    /// Only when the store fails.
    pub(super) async fn replay(
        &self,
        began: Timestamp,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), StoreError> {
        let (stream, now) = (self.stream(), self.clock.now());
        let set_aside = self.store.call(move |store| match store.quarantine_count(stream)? {
            0 => Ok(Vec::new()),
            _ => store.quarantine(stream, LOOKED_AT),
        });
        let due: Vec<Due> =
            set_aside.await?.into_iter().filter(|entry| is_due(entry, began, now)).filter_map(number).collect();
        let mut lists: Vec<Vec<Due>> = due.chunks(LIST).take(IN_A_PASS / LIST).map(<[Due]>::to_vec).collect();
        let mut poisoned = 0;
        while let Some(list) = lists.pop() {
            let numbers: Vec<RecordNumber> = {
                let mut numbers: Vec<RecordNumber> = list.iter().map(|due| due.number).collect();
                numbers.sort_unstable();
                numbers.dedup();
                numbers
            };
            match self.ask(&by_list(stream, &numbers), cancel).await {
                Ok(Answer::Page(page)) if numbers.len() > 1 && unread::has_any(&page.entries) => {
                    // Which of them it is shows when they are asked for apart.
                    tally.traffic += page.traffic;
                    let (left, right) = list.split_at(list.len() / 2);
                    lists.extend([right.to_vec(), left.to_vec()]);
                }
                Ok(Answer::Page(page)) => {
                    tally.traffic += page.traffic;
                    self.take_again(page, tally).await?;
                    self.still_aside(list, now).await?;
                }
                Ok(Answer::Nothing { traffic, .. }) => {
                    tally.traffic += traffic;
                    self.still_aside(list, now).await?;
                }
                Err(WalkError::Store(error)) => return Err(error),
                Err(WalkError::Source(error))
                    if matches!(error.kind, SourceErrorKind::Narrow | SourceErrorKind::Permanent) =>
                {
                    tally.traffic += error.traffic;
                    if numbers.len() > 1 {
                        let (left, right) = list.split_at(list.len() / 2);
                        lists.extend([right.to_vec(), left.to_vec()]);
                        continue;
                    }
                    self.still_aside(list, now).await?;
                    poisoned += 1;
                    if poisoned >= POISONED {
                        return Ok(());
                    }
                }
                Err(WalkError::Source(error)) => {
                    tally.traffic += error.traffic;
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Judges what came as any other reading.
    async fn take_again(&self, page: Page, tally: &mut Tally) -> Result<(), StoreError> {
        let (sent, answered, last_id, now) = (page.sent, page.answered, page.last_id, self.clock.now());
        let arrivals = page.entries.into_iter().map(|entry| Arrival { entry, sent, answered }).collect();
        let rules = Rules { emit_unchanged: self.settings.emit_unchanged, ..Rules::default() };
        let intake = Intake { source: Origin::Replay, rules, only_for: None, seen_before: BTreeMap::new() };
        let span = Span::Ids { from: last_id, to: Some(last_id), pinned: now };
        let mut nowhere = LedgerRow::opened(NO_ROW, self.stream(), Pass::Update, span, now);
        match self.absorb(&intake, Batch { arrivals, last_id, unread: Vec::new(), captured: now }, &mut nowhere).await {
            Ok(absorbed) => tally.entries += absorbed.entries,
            Err(WalkError::Store(error)) => return Err(error),
            // The stream has met too much that is bad: that is for its walks to tell.
            Err(_) => {}
        }
        Ok(())
    }

    /// Notes that the entries of `list` that still stand were tried, and parks those that were tried for the last time.
    async fn still_aside(&self, list: Vec<Due>, now: Timestamp) -> Result<(), StoreError> {
        let stream = self.stream();
        let note = move |store: &dyn crate::sync::Store| {
            let standing: Vec<QuarantineEntry> = store.quarantine(stream, LOOKED_AT)?;
            let mut again = Vec::new();
            for Due { entry, .. } in list {
                let Some(stands) = standing.iter().find(|stands| stands.key() == entry.key()) else { continue };
                let is_last = AFTER.last().is_some_and(|after| reaches(&entry, *after, now));
                let was_counted = stands.last_seen > entry.last_seen;
                if was_counted && !is_last {
                    continue;
                }
                let state = if is_last { QuarantineState::Parked } else { entry.state };
                again.push(QuarantineEntry { attempts: u32::from(!was_counted), last_seen: now, state, ..entry });
            }
            if again.is_empty() {
                return Ok(());
            }
            store.commit(Slice { quarantined: again, ..Slice::default() }).map(drop)
        };
        self.store.call(note).await
    }
}

/// Whether an entry is to be asked for at `now`: a moment of [`AFTER`] has come since it was seen last.
fn is_due(entry: &QuarantineEntry, began: Timestamp, now: Timestamp) -> bool {
    let is_ours = entry.sink.is_none() && entry.state == QuarantineState::Open && entry.last_seen < began;
    let is_first = entry.last_seen == entry.first_seen;
    let has_come = |after: &SignedDuration| !reaches(entry, *after, entry.last_seen) && reaches(entry, *after, now);
    is_ours && (is_first || AFTER.iter().any(has_come))
}

/// Whether `at` lies so long after the first sight of `entry`.
fn reaches(entry: &QuarantineEntry, after: SignedDuration, at: Timestamp) -> bool {
    at.duration_since(entry.first_seen) >= after
}

/// The entry with the number to ask for; none for patrons, and for what came without a number.
fn number(entry: QuarantineEntry) -> Option<Due> {
    let number = entry.record.parse().ok().map(RecordNumber::new)?;
    Some(Due { number, entry })
}

fn by_list(stream: crate::record::Stream, numbers: &[RecordNumber]) -> PageQuery {
    PageQuery {
        stream,
        filter: PageFilter::Ids(numbers.to_vec()),
        after: None,
        until: None,
        limit: u32::try_from(numbers.len()).unwrap_or(u32::MAX),
        fields: FieldSet::Configured,
        fresh_connection: false,
        class: CallClass::Paced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stream;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    /// When an entry first seen at ten is replayed, if a pass runs every five minutes and it never heals.
    #[test]
    fn an_entry_is_replayed_with_the_next_pass_after_an_hour_and_after_a_day() {
        let first = at("2026-01-05T10:00:00Z");
        let mut entry = QuarantineEntry {
            stream: Stream::Bibs,
            record: "1001".into(),
            reason: "odd".into(),
            fingerprint: "f".into(),
            attempts: 1,
            last_status: None,
            first_seen: first,
            last_seen: first,
            state: QuarantineState::Open,
            sink: None,
            payload: None,
        };
        let mut replays = Vec::new();
        for minutes in (0..10_000).step_by(5) {
            let now = first + SignedDuration::from_mins(minutes);
            if is_due(&entry, now, now) {
                replays.push(minutes);
                entry.last_seen = now;
            }
        }
        assert_eq!(replays, [5, 60, 24 * 60]);
        let (of_a_sink, parked) = (
            QuarantineEntry { sink: Some("archive".into()), ..entry.clone() },
            QuarantineEntry { state: QuarantineState::Parked, ..entry },
        );
        let later = at("2027-01-01T00:00:00Z");
        assert!(!is_due(&of_a_sink, later, later) && !is_due(&parked, later, later));
    }
}
