//! The sweep of a reconciliation: page by page, compared with what is remembered, and put right where that is wanted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::compare::{Beginning, Identity};
use super::job::{self, Job};
use super::run::Sweeps;
use crate::record::{Entry, Live, RecordNumber, Stream};
use crate::sync::capture::absorb::{Arrival, Intake};
use crate::sync::capture::ending::{Ending, Next, Rigour};
use crate::sync::capture::error::WalkError;
use crate::sync::capture::page_size::PageSize;
use crate::sync::capture::tally::Tally;
use crate::sync::capture::{Known, Manner, Question, Reading, Scrutiny, behind};
use crate::sync::decide::{Rules, Seen};
use crate::sync::ports::{Answer, CallClass, FieldSet, Page, PageFilter, PageQuery, Slice, SourceErrorKind};
use crate::sync::remembered::RememberedState;
use crate::sync::{LedgerRow, Origin, Remembered, RememberedKey, RowState, StoreError};

/// Entries of the quarantine that are looked at: what is set aside is not unknown.
const LOOKED_AT: usize = 10_000;
/// Remembered records read from the store at once.
const READ: usize = 2000;

/// A sweep under way.
pub(super) struct Walk<'a> {
    pub(super) sweeps: &'a Sweeps<'a>,
    pub(super) job: Job,
    /// The records that must come.
    known: Known,
    /// Those of them that did not come.
    pub(super) absent: Vec<RecordNumber>,
    /// Some that came, to be asked for beside those that did not.
    pub(super) witnesses: Vec<RecordNumber>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(sweeps: &'a Sweeps<'a>, job: Job, known: Known) -> Self {
        Self { sweeps, job, known, absent: Vec::new(), witnesses: Vec::new() }
    }

    pub(super) fn into_job(self) -> Job {
        self.job
    }

    /// Walks `row` to its end. On an error everything before its position is compared, and it may be walked again.
    pub(super) async fn run(&mut self, row: &mut LedgerRow, tally: &mut Tally) -> Result<(), WalkError> {
        let (lane, cancel) = (self.sweeps.lane, self.sweeps.cancel);
        tally.windows += 1;
        let mut ending = Ending::new(Rigour::Sweep, row.position.is_some());
        let mut smaller = PageSize::new(lane.settings.page_size);
        let mut fresh_connection = false;
        // A record that spoils whole pages is compared as far as its identity goes.
        let mut is_shallow = false;
        loop {
            lane.ready(cancel).await?;
            let limit = smaller.limit().unwrap_or(lane.settings.page_size);
            let whole = self.job.order.deep && !is_shallow;
            let query = PageQuery {
                stream: lane.stream(),
                filter: PageFilter::Live,
                after: behind(row),
                until: None,
                limit,
                fields: if whole { FieldSet::Configured } else { FieldSet::Identity },
                fresh_connection,
                class: CallClass::Paced,
            };
            let next = match lane.ask(&query, cancel).await {
                Ok(Answer::Nothing { sent, traffic, .. }) => {
                    tally.traffic += traffic;
                    self.job.beginning(sent);
                    ending.on_nothing()
                }
                Ok(Answer::Page(page)) => {
                    tally.traffic += page.traffic;
                    tally.pages += 1;
                    lane.see_that_nothing_is_left_out(&query, &page, tally, cancel).await?;
                    let only_later = self.is_only_later(&page, row).await?;
                    let next = ending.on_page(page.entries.len(), limit, only_later);
                    self.take(page, whole, row, tally).await?;
                    smaller.on_success();
                    is_shallow = false;
                    next
                }
                Err(WalkError::Source(failed)) if failed.kind == SourceErrorKind::Narrow => {
                    tally.traffic += failed.traffic;
                    smaller.on_failure();
                    match smaller.limit() {
                        Some(_) if failed.status_code.is_none() => {}
                        _ if whole => {
                            smaller = PageSize::new(lane.settings.page_size);
                            is_shallow = true;
                        }
                        _ => return Err(failed.into()),
                    }
                    continue;
                }
                Err(WalkError::Source(failed)) => {
                    tally.traffic += failed.traffic;
                    return Err(failed.into());
                }
                Err(error) => return Err(error),
            };
            match next {
                Next::End => return self.look_behind(row).await,
                Next::Page => fresh_connection = false,
                Next::Again { after } => {
                    lane.pause(after, cancel).await?;
                    fresh_connection = true;
                }
            }
        }
    }

    /// Whether the sweep has come to records that were all added since it began: what belongs to the update pass, and
    /// comes behind everything that is known. Else no sweep would end while a load from elsewhere is under way.
    async fn is_only_later(&mut self, page: &Page, row: &LedgerRow) -> Result<bool, StoreError> {
        let beginning = self.job.beginning(page.sent);
        let is_later = |live: &Live| live.updated().is_some_and(|at| at >= beginning.watermark);
        if !page.entries.iter().all(|entry| matches!(entry, Ok(Entry::Live(live)) if is_later(live))) {
            return Ok(false);
        }
        let (after, lane) = (behind(row), self.sweeps.lane);
        if let Known::Held(numbers) = &self.known {
            return Ok(numbers.last().is_none_or(|last| after.is_some_and(|after| *last <= after)));
        }
        let (stream, mut start) = (lane.stream(), after.map(|after| lane.mapper.key(after)));
        let look = move |store: &dyn crate::sync::Store| loop {
            let read = store.remembered_after(stream, start.as_ref(), READ)?;
            let is_known =
                |known: &Remembered| beginning.is_before(known) && matches!(known.state, RememberedState::Live { .. });
            if read.iter().any(|(_, known)| is_known(known)) {
                return Ok(false);
            }
            match read.last() {
                Some((key, _)) if read.len() == READ => start = Some(key.clone()),
                _ => return Ok(true),
            }
        };
        lane.store.call(look).await
    }

    /// Compares one page, puts right what drifted, and moves the position past it.
    async fn take(&mut self, page: Page, whole: bool, row: &mut LedgerRow, tally: &mut Tally) -> Result<(), WalkError> {
        if row.position.is_some_and(|position| page.last_id <= position) {
            return Err(WalkError::Looped);
        }
        let (lane, last_id) = (self.sweeps.lane, page.last_id);
        let beginning = self.job.beginning(page.sent);
        let came: BTreeSet<RecordNumber> = page
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Ok(entry) => Some(entry.id()),
                Err(bad) => bad.id,
            })
            .collect();
        let mut absent = lane.known_between(&self.known, (behind(row), Some(last_id))).await?;
        absent.retain(|number| !came.contains(number));
        self.absent.extend(self.unchanged_since(beginning, absent).await?);
        let checked = u64::try_from(page.entries.len()).unwrap_or(0);
        self.witnesses = witnesses(&page, &self.witnesses);
        let drifted = self.drifted(page, whole, beginning).await?;
        let drift = u64::try_from(drifted.len()).unwrap_or(0);
        let repaired = if self.job.order.repair { self.put_right(&drifted, last_id, row, tally).await? } else { 0 };
        if row.position.is_none_or(|position| position < last_id) {
            self.move_past(last_id, row).await?;
        }
        let found = &mut self.job.found;
        found.checked += checked;
        found.drift += drift;
        found.repaired += repaired;
        let (job, now) = (self.job.clone(), lane.clock.now());
        Ok(lane.store.call(move |store| job::keep(store, job, now)).await?)
    }

    /// What is known behind the last page.
    async fn look_behind(&mut self, row: &LedgerRow) -> Result<(), WalkError> {
        let absent = self.sweeps.lane.known_between(&self.known, (behind(row), None)).await?;
        if let Some(beginning) = self.job.began() {
            self.absent.extend(self.unchanged_since(beginning, absent).await?);
        }
        self.absent.sort_unstable();
        self.absent.dedup();
        Ok(())
    }

    /// Those of `numbers` whose remembered state was not changed since the sweep began.
    async fn unchanged_since(
        &self,
        beginning: Beginning,
        numbers: Vec<RecordNumber>,
    ) -> Result<Vec<RecordNumber>, StoreError> {
        if numbers.is_empty() {
            return Ok(numbers);
        }
        let mapper = Arc::clone(&self.sweeps.lane.mapper);
        let look = move |store: &dyn crate::sync::Store| {
            let keys: Vec<RememberedKey> = numbers.iter().map(|number| mapper.key(*number)).collect();
            let known = store.remembered(&keys)?;
            let unchanged = numbers.into_iter().zip(known);
            let unchanged = unchanged.filter(|(_, known)| known.as_ref().is_some_and(|it| beginning.is_before(it)));
            Ok(unchanged.map(|(number, _)| number).collect())
        };
        self.sweeps.lane.store.call(look).await
    }

    /// The records of a page that have drifted, ascending.
    async fn drifted(&self, page: Page, whole: bool, beginning: Beginning) -> Result<Vec<RecordNumber>, StoreError> {
        let (mapper, stream) = (Arc::clone(&self.sweeps.lane.mapper), self.sweeps.lane.stream());
        let compare = move |store: &dyn crate::sync::Store| {
            let entries: Vec<Entry> = page.entries.into_iter().filter_map(Result::ok).collect();
            let numbers: Vec<RecordNumber> = entries.iter().map(Entry::id).collect();
            let keys: Vec<RememberedKey> = numbers.iter().map(|number| mapper.key(*number)).collect();
            let known = store.remembered(&keys)?;
            let links = if stream == Stream::Items { store.links(&numbers)? } else { vec![Vec::new(); numbers.len()] };
            let set_aside: HashSet<String> = match store.quarantine_count(stream)? {
                0 => HashSet::new(),
                _ => store.quarantine(stream, LOOKED_AT)?.into_iter().map(|entry| entry.record).collect(),
            };
            let mut hasher = mapper.hasher();
            let mut drifted = Vec::new();
            for ((entry, known), links) in entries.into_iter().zip(known).zip(links) {
                let number = entry.id();
                let has_drifted = match entry {
                    // Listed among the living: whatever it is, it is read again by number.
                    Entry::Tombstone(_) => known.as_ref().is_some_and(|known| beginning.is_before(known)),
                    Entry::Live(live) => {
                        let identity = Identity::of(&live);
                        let seen = if whole { mapper.map(Ok(Entry::Live(live)), &mut hasher).ok() } else { None };
                        let seen: Option<Seen> = seen.map(|mapped| mapped.seen);
                        beginning.has_drifted(&identity, seen.as_ref(), known.as_ref(), &links)
                    }
                };
                if has_drifted && !(known.is_none() && set_aside.contains(&mapper.public_id(number))) {
                    drifted.push(number);
                }
            }
            Ok(drifted)
        };
        self.sweeps.lane.store.call(compare).await
    }

    /// Reads `numbers` by explicit list, through ordinary capture; the position moves to `last_id` with them. What looks
    /// older than what is known counts when two answers agree. Tells how many are right now.
    async fn put_right(
        &self,
        numbers: &[RecordNumber],
        last_id: RecordNumber,
        row: &mut LedgerRow,
        tally: &mut Tally,
    ) -> Result<u64, WalkError> {
        if numbers.is_empty() {
            return Ok(0);
        }
        let (lane, cancel) = (self.sweeps.lane, self.sweeps.cancel);
        let manner = Manner { class: CallClass::Paced, fresh_connection: false };
        let arrivals = lane.read_by_list(numbers, manner, tally, cancel).await?;
        self.absorb(arrivals, last_id, row, tally).await
    }

    /// Takes in what explicit lists brought. Tells how many records are right now.
    pub(super) async fn absorb(
        &self,
        arrivals: Vec<Arrival>,
        last_id: RecordNumber,
        row: &mut LedgerRow,
        tally: &mut Tally,
    ) -> Result<u64, WalkError> {
        let scrutiny = Scrutiny { locations: Vec::new(), known: None, settles: true };
        let rules = Rules::default();
        let question = Question {
            filter: PageFilter::Live,
            until: None,
            fields: FieldSet::Configured,
            class: CallClass::Paced,
            rigour: Rigour::Sweep,
            intake: Intake { source: Origin::Reconcile, rules, only_for: None, seen_before: BTreeMap::new() },
            scrutiny: Some(Arc::new(scrutiny)),
            reading: Reading::List,
        };
        let before = tally.entries;
        let lane = self.sweeps.lane;
        lane.take_arrivals_in(arrivals, (last_id, Vec::new()), &question, row, tally, self.sweeps.cancel).await?;
        let right = |entries: crate::sync::capture::tally::EntryTally| {
            entries.changed + entries.unchanged + entries.deleted + entries.deleted_unseen
        };
        Ok(right(tally.entries) - right(before))
    }

    async fn move_past(&self, last_id: RecordNumber, row: &mut LedgerRow) -> Result<(), StoreError> {
        let lane = self.sweeps.lane;
        (row.position, row.state, row.touched) = (Some(last_id), RowState::Partial, lane.clock.now());
        let moved = row.clone();
        lane.store.call(move |store| store.commit(Slice { rows: vec![moved], ..Slice::default() }).map(drop)).await
    }
}

/// Two live records that the sweep showed last.
fn witnesses(page: &Page, before: &[RecordNumber]) -> Vec<RecordNumber> {
    let live = page.entries.iter().rev().filter_map(|entry| match entry {
        Ok(Entry::Live(live)) => Some(live.id()),
        _ => None,
    });
    live.chain(before.iter().copied()).take(2).collect()
}
