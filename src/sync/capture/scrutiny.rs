//! What a backfill looks at twice before it believes a page: whether every record came that the store knows alive, and
//! whether what looks older than the store knows really is what Sierra holds.
//!
//! An ordinary pass concludes nothing from absence and refuses what is older. A backfill promises more: that every live
//! record of its range was read, and with `--force` that a sink ends with what Sierra says now.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::absorb::{Arrival, Intake};
use super::ending::APART;
use super::error::WalkError;
use super::lane::Lane;
use super::refetch::Manner;
use super::tally::Tally;
use crate::record::{Entry, Live, RecordNumber};
use crate::sync::ports::CallClass;
use crate::sync::remembered::RememberedState;
use crate::sync::route::names_location;
use crate::sync::{RememberedKey, StoreError};

/// Remembered records read from the store at once.
const READ: usize = 2000;

/// What is looked at.
#[derive(Debug, Clone)]
pub(in crate::sync) struct Scrutiny {
    /// Only records at these locations count; empty means all.
    pub(in crate::sync) locations: Vec<String>,
    /// The records that must come; `None` when the question leaves some of them out.
    pub(in crate::sync) known: Option<Known>,
    /// Whether a reading that looks older than what is remembered is asked for twice more, by list: if both answers
    /// agree it counts (design: order and sameness).
    pub(in crate::sync) settles: bool,
}

/// The records of the stream that the store knows alive.
#[derive(Debug, Clone)]
pub(in crate::sync) enum Known {
    /// To be read from the store, stretch by stretch: remembered in the order of their numbers.
    Stored,
    /// In order. Patrons are remembered by pseudonym, so theirs are read once, as a whole.
    Held(Arc<[RecordNumber]>),
}

/// From behind the first number up to and including the second; `None` is open.
pub(in crate::sync) type Stretch = (Option<RecordNumber>, Option<RecordNumber>);

impl Lane {
    /// Asks by list for every record of `stretch` that the store knows alive and that is not among `arrivals`, and puts
    /// what comes in its place among them. Tells the last number that was asked for.
    pub(in crate::sync) async fn add_known(
        &self,
        scrutiny: &Scrutiny,
        stretch: Stretch,
        arrivals: &mut Vec<Arrival>,
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Option<RecordNumber>, WalkError> {
        let Some(known) = &scrutiny.known else { return Ok(None) };
        let came: BTreeSet<RecordNumber> = arrivals.iter().filter_map(number_of).collect();
        let mut missing = self.known_between(known, stretch).await?;
        missing.retain(|number| !came.contains(number));
        let Some(last) = missing.last().copied() else { return Ok(None) };
        let manner = Manner { class, fresh_connection: true };
        let found = self.read_by_list(&missing, manner, tally, cancel).await?;
        tally.not_found += u64::try_from(missing.len().saturating_sub(found.len())).unwrap_or(0);
        arrivals.extend(found);
        put_in_order(arrivals);
        Ok(Some(last))
    }

    /// Leaves out what is elsewhere, and settles what looks older than what is remembered. Gives the intake back with
    /// what the first of two answers said.
    pub(super) async fn scrutinise(
        &self,
        scrutiny: &Scrutiny,
        mut intake: Intake,
        arrivals: &mut Vec<Arrival>,
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Intake, WalkError> {
        let before = arrivals.len();
        arrivals.retain(|arrival| is_at(&scrutiny.locations, arrival));
        tally.passed_over += u64::try_from(before - arrivals.len()).unwrap_or(0);
        if !scrutiny.settles {
            return Ok(intake);
        }
        let older = self.older_than_remembered(arrivals).await?;
        if older.is_empty() {
            return Ok(intake);
        }
        let first = self.read_by_list(&older, Manner { class, fresh_connection: false }, tally, cancel).await?;
        let mut hasher = self.mapper.hasher();
        let mut sent_first = std::collections::BTreeMap::new();
        for arrival in first {
            if let Ok(mapped) = self.mapper.admit(arrival.entry, &mut hasher) {
                intake.seen_before.insert(mapped.number, mapped.seen);
                sent_first.insert(mapped.number, arrival.sent);
            }
        }
        self.pause(APART, cancel).await?;
        let second = self.read_by_list(&older, Manner { class, fresh_connection: true }, tally, cancel).await?;
        for mut again in second {
            let Some(number) = number_of(&again) else { continue };
            // Both must have been sent after the stored reading's answer, so the earlier one counts.
            if let (Ok(Entry::Live(_)), Some(sent)) = (&again.entry, sent_first.get(&number)) {
                again.sent = *sent;
            }
            if let Some(arrival) = arrivals.iter_mut().find(|arrival| number_of(arrival) == Some(number)) {
                *arrival = again;
            }
        }
        Ok(intake)
    }

    /// The live ones among `arrivals` whose stamp lies before the remembered one.
    async fn older_than_remembered(&self, arrivals: &[Arrival]) -> Result<Vec<RecordNumber>, StoreError> {
        let stamped = arrivals.iter().filter_map(|arrival| match &arrival.entry {
            Ok(Entry::Live(live)) => live.updated().map(|updated| (live.id(), updated)),
            _ => None,
        });
        let stamped: Vec<(RecordNumber, jiff::Timestamp)> = stamped.collect();
        let keys: Vec<RememberedKey> = stamped.iter().map(|(number, _)| self.mapper.key(*number)).collect();
        let remembered = self.store.call(move |store| store.remembered(&keys)).await?;
        let older = stamped.into_iter().zip(remembered).filter_map(|((number, updated), known)| match known?.state {
            RememberedState::Live { updated: Some(stored), .. } if updated < stored => Some(number),
            _ => None,
        });
        Ok(older.collect())
    }

    /// The records of a stretch that the store knows alive.
    ///
    /// # Errors
    /// On any storage error.
    pub(in crate::sync) async fn known_between(
        &self,
        known: &Known,
        (after, through): Stretch,
    ) -> Result<Vec<RecordNumber>, StoreError> {
        match known {
            Known::Held(numbers) => {
                let start = numbers.partition_point(|number| after.is_some_and(|after| *number <= after));
                let end = numbers.partition_point(|number| through.is_none_or(|through| *number <= through));
                Ok(numbers.get(start..end).unwrap_or_default().to_vec())
            }
            Known::Stored => {
                let (stream, start) = (self.stream(), after.map(|after| self.mapper.key(after)));
                let end = through.map(|through| self.mapper.key(through));
                self.store
                    .call(move |store| {
                        let (mut numbers, mut start) = (Vec::new(), start);
                        loop {
                            let read = store.remembered_after(stream, start.as_ref(), READ)?;
                            let is_last = read.len() < READ;
                            for (key, remembered) in read {
                                if end.as_ref().is_some_and(|end| key > *end) {
                                    return Ok(numbers);
                                }
                                numbers.extend(alive(&key, remembered.state));
                                start = Some(key);
                            }
                            if is_last {
                                return Ok(numbers);
                            }
                        }
                    })
                    .await
            }
        }
    }
}

fn alive(key: &RememberedKey, state: RememberedState) -> Option<RecordNumber> {
    match (key, state) {
        (RememberedKey::Bib(number) | RememberedKey::Item(number), RememberedState::Live { .. }) => Some(*number),
        _ => None,
    }
}

/// The number of the record, as far as it could be read.
pub(in crate::sync) fn number_of(arrival: &Arrival) -> Option<RecordNumber> {
    match &arrival.entry {
        Ok(entry) => Some(entry.id()),
        Err(bad) => bad.id,
    }
}

/// Sorts by number; a bad entry without one stays behind the one it came after.
pub(super) fn put_in_order(arrivals: &mut Vec<Arrival>) {
    let mut last = RecordNumber::new(0);
    let mut keyed: Vec<(RecordNumber, Arrival)> = std::mem::take(arrivals)
        .into_iter()
        .map(|arrival| {
            last = number_of(&arrival).unwrap_or(last);
            (last, arrival)
        })
        .collect();
    keyed.sort_by_key(|(number, _)| *number);
    arrivals.extend(keyed.into_iter().map(|(_, arrival)| arrival));
}

/// Whether the record is at one of `locations`. What has no location to look at is not left out for that: tombstones,
/// entries that cannot be read, patrons.
fn is_at(locations: &[String], arrival: &Arrival) -> bool {
    if locations.is_empty() {
        return true;
    }
    let names = |code: &String| names_location(locations, code);
    match &arrival.entry {
        // What lacks the field is for the mapping to judge.
        Ok(Entry::Live(Live::Bib(bib))) => bib.fields.get("locations").is_none() || bib.locations.iter().any(names),
        Ok(Entry::Live(Live::Item(item))) => item.fields.get("location").is_none() || item.location.iter().any(names),
        Ok(Entry::Live(Live::Patron(_)) | Entry::Tombstone(_)) | Err(_) => true,
    }
}
