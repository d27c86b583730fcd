//! One row of the ledger, page by page from its position to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::absorb::{Arrival, Batch, Intake};
use super::ending::{Ending, Next, Rigour};
use super::error::WalkError;
use super::lane::Lane;
use super::page_size::PageSize;
use super::scrutiny::Scrutiny;
use super::tally::Tally;
use super::unread;
use crate::record::{Entry, Live, RecordNumber};
use crate::sync::decide::Rules;
use crate::sync::ports::{Answer, BadEntry, CallClass, FieldSet, Page, PageFilter, PageQuery, SourceErrorKind};
use crate::sync::settings::StreamSettings;
use crate::sync::{LedgerRow, Origin, Pass, Span};

/// Libraries have some millions of records of a kind, whose numbers follow each other with few gaps.
const LEAP: u64 = 20_000_000;

/// How a row is asked for.
#[derive(Debug, Clone)]
pub(in crate::sync) struct Question {
    pub(in crate::sync) filter: PageFilter,
    pub(in crate::sync) until: Option<RecordNumber>,
    pub(in crate::sync) fields: FieldSet,
    pub(in crate::sync) class: CallClass,
    pub(in crate::sync) rigour: Rigour,
    pub(in crate::sync) intake: Intake,
    /// What is looked at twice before a page is absorbed; ordinary passes do not.
    pub(in crate::sync) scrutiny: Option<Arc<Scrutiny>>,
    pub(in crate::sync) reading: Reading,
}

/// Where the MARC of a page comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) enum Reading {
    /// The list brings whole records.
    List,
    /// The list brings what is beside the MARC, an export the MARC.
    Export,
}

impl Reading {
    fn fields(self, configured: FieldSet) -> FieldSet {
        match self {
            Self::List => configured,
            Self::Export => FieldSet::BesideMarc,
        }
    }
}

impl Question {
    /// The question of `row` under `settings`.
    pub(in crate::sync) fn of(row: &LedgerRow, settings: &StreamSettings) -> Self {
        let (filter, until, rigour) = match row.span {
            Span::Time(window) => (PageFilter::Updated(window), None, Rigour::Window),
            Span::Days { from, to } => (PageFilter::Deleted { from, to }, None, Rigour::Window),
            Span::Ids { to, .. } => (PageFilter::Live, to, Rigour::Sweep),
        };
        let rigour = if row.pass == Pass::RebuildDeletes { Rigour::Sweep } else { rigour };
        let (fields, class, source) = match row.pass {
            Pass::Load => (FieldSet::Configured, CallClass::Paced, Origin::Load),
            Pass::Update => (FieldSet::Configured, CallClass::Incremental, Origin::Incremental),
            Pass::Deletes => (FieldSet::Tombstones, CallClass::Incremental, Origin::Deletes),
            Pass::Backfill => (FieldSet::Configured, CallClass::Paced, Origin::Backfill),
            Pass::LateSweep => (FieldSet::Configured, CallClass::Paced, Origin::LateSweep),
            Pass::Reconcile => (FieldSet::Identity, CallClass::Paced, Origin::Reconcile),
            Pass::Rebuild => (FieldSet::Configured, CallClass::Paced, Origin::Rebuild),
            Pass::RebuildDeletes => (FieldSet::Tombstones, CallClass::Paced, Origin::Rebuild),
        };
        let rules = match row.pass {
            Pass::Rebuild | Pass::RebuildDeletes => Rules::REBUILD,
            _ => Rules { emit_unchanged: settings.emit_unchanged, ..Rules::default() },
        };
        let intake = Intake { source, rules, only_for: None, seen_before: BTreeMap::new() };
        Self { filter, until, fields, class, rigour, intake, scrutiny: None, reading: Reading::List }
    }

    /// The query for the page after `row`'s position.
    pub(in crate::sync) fn page(&self, row: &LedgerRow, limit: u32, fresh_connection: bool) -> PageQuery {
        PageQuery {
            stream: row.stream,
            filter: self.filter.clone(),
            after: behind(row),
            until: self.until,
            limit,
            fields: self.fields,
            fresh_connection,
            class: self.class,
        }
    }
}

/// The number behind which the rest of `row` begins; `None` when that is the first of all.
pub(in crate::sync) fn behind(row: &LedgerRow) -> Option<RecordNumber> {
    let before_first = match row.span {
        Span::Ids { from, .. } => from.value().checked_sub(1).filter(|before| *before > 0),
        Span::Time(_) | Span::Days { .. } => None,
    };
    row.position.or(before_first.map(RecordNumber::new))
}

impl Lane {
    /// Walks `row` to its end. On an error everything before its position is committed and it may be walked again.
    ///
    /// # Errors
    /// [`WalkError::aftermath`] says what to do.
    pub(in crate::sync) async fn walk(
        &self,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        let question = Question::of(row, &self.settings);
        self.walk_asking(&question, row, tally, cancel).await
    }

    /// The same with a question of the caller's.
    ///
    /// # Errors
    /// As [`Lane::walk`].
    pub(in crate::sync) async fn walk_asking(
        &self,
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        tally.windows += 1;
        let mut ending = Ending::new(question.rigour, row.position.is_some());
        let mut smaller = PageSize::new(self.settings.page_size);
        let (mut fresh_connection, mut reading, mut unread_before) = (false, question.reading, false);
        let mut tail = None;
        loop {
            self.ready(cancel).await?;
            let limit = smaller.limit().unwrap_or(self.settings.page_size);
            let fields = reading.fields(question.fields);
            let query = PageQuery { fields, ..question.page(row, limit, fresh_connection) };
            let next = match self.ask(&query, cancel).await {
                Ok(Answer::Nothing { traffic, .. }) => {
                    tally.traffic += traffic;
                    ending.on_nothing()
                }
                Ok(Answer::Page(page)) if unread::is_all(&page.entries) => {
                    tally.traffic += page.traffic;
                    tally.pages += 1;
                    if page.entries.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                        // There may be more behind it, and nothing says from where on.
                        return Err(WalkError::Unread);
                    }
                    if unread_before {
                        tail = None;
                        let (_, unread) = unread::take_out(page.entries, behind(row));
                        self.owe(unread, question, row, tally).await?;
                        Next::End
                    } else {
                        unread_before = true;
                        Next::Again { after: Duration::ZERO }
                    }
                }
                Ok(Answer::Page(page)) => {
                    tally.traffic += page.traffic;
                    tally.pages += 1;
                    unread_before = false;
                    self.see_that_nothing_is_left_out(&query, &page, tally, cancel).await?;
                    tail = unread::tail(&page.entries, page.last_id);
                    let next = ending.on_page(page.entries.len(), limit, is_only_later(&page, row));
                    self.take_in(page, &mut reading, question, row, tally, cancel).await?;
                    smaller.on_success();
                    next
                }
                Err(WalkError::Source(failed)) if failed.kind == SourceErrorKind::Narrow => {
                    tally.traffic += failed.traffic;
                    if reading == Reading::Export {
                        // A page that cannot be had as a whole is taken apart, which only the lists can do.
                        reading = Reading::List;
                        ending = Ending::new(question.rigour, row.position.is_some());
                        continue;
                    }
                    smaller.on_failure();
                    match smaller.limit() {
                        Some(_) if failed.status_code.is_none() => {}
                        // It fails whatever its size, or for a reason that size does not touch.
                        _ => {
                            self.take_apart(question, row, &failed, tally, cancel).await?;
                            smaller = PageSize::new(self.settings.page_size);
                            ending = Ending::new(question.rigour, true);
                        }
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
                Next::End => {
                    if let Some(tail) = tail {
                        self.owe(vec![tail], question, row, tally).await?;
                    }
                    return self.take_rest_in(question, row, tally, cancel).await;
                }
                Next::Page => fresh_connection = false,
                Next::Again { after } => {
                    self.pause(after, cancel).await?;
                    fresh_connection = true;
                }
            }
        }
    }

    /// Completes one page, and absorbs it. Leaves the export for the lists when nothing comes of it.
    async fn take_in(
        &self,
        page: Page,
        reading: &mut Reading,
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        if row.position.is_some_and(|position| page.last_id <= position) {
            return Err(WalkError::Looped);
        }
        let (sent, answered, last_id) = (page.sent, page.answered, page.last_id);
        let (entries, unread) = unread::take_out(page.entries, behind(row));
        let mut arrivals: Vec<Arrival> = entries.into_iter().map(|entry| Arrival { entry, sent, answered }).collect();
        if *reading == Reading::Export {
            let is_worth_while;
            (arrivals, is_worth_while) = self.with_marc(arrivals, question.class, tally, cancel).await?;
            if !is_worth_while {
                *reading = Reading::List;
            }
        }
        if let Some(scrutiny) = &question.scrutiny {
            let stretch = (behind(row), Some(last_id));
            self.add_known(scrutiny, stretch, &mut arrivals, question.class, tally, cancel).await?;
        }
        self.take_arrivals_in(arrivals, (last_id, unread), question, row, tally, cancel).await
    }

    /// Fails unless a page holds every number before its greatest. One that is full and out of order does where Sierra
    /// chose by number and only then mixed (BR-134); it does not where Sierra lists by another key. Each half of its
    /// stretch is asked for its numbers: if there are no others than the page has, the limit cuts none of them off.
    /// One that leaps where no library has a gap may hold an entry that does not belong there: what was leapt over is
    /// asked for.
    ///
    /// # Errors
    /// [`WalkError::Unordered`], and as [`Lane::walk`].
    pub(in crate::sync) async fn see_that_nothing_is_left_out(
        &self,
        query: &PageQuery,
        page: &Page,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        for (before, number) in leaps(query.after, page) {
            let last = RecordNumber::new(number.value().saturating_sub(1));
            let over = PageQuery {
                after: before,
                until: Some(last),
                fields: FieldSet::IdOnly,
                limit: 1,
                fresh_connection: true,
                ..query.clone()
            };
            match self.ask(&over, cancel).await? {
                Answer::Nothing { traffic, .. } => tally.traffic += traffic,
                Answer::Page(page) => {
                    tally.traffic += page.traffic;
                    return Err(WalkError::Unordered);
                }
            }
        }
        let is_full = page.entries.len() >= usize::try_from(query.limit).unwrap_or(usize::MAX);
        if !(page.was_out_of_order && is_full) {
            return Ok(());
        }
        let came: BTreeSet<RecordNumber> = page.entries.iter().filter_map(number_of_entry).collect();
        let Some(middle) = came.iter().nth(came.len() / 2).copied() else { return Ok(()) };
        for (after, until) in [(query.after, middle), (Some(middle), page.last_id)] {
            if after.is_some_and(|after| after >= until) {
                continue;
            }
            let half = PageQuery { after, until: Some(until), fields: FieldSet::IdOnly, ..query.clone() };
            let there = match self.ask(&half, cancel).await? {
                Answer::Nothing { traffic, .. } => {
                    tally.traffic += traffic;
                    BTreeSet::new()
                }
                Answer::Page(page) => {
                    tally.traffic += page.traffic;
                    page.entries.iter().filter_map(number_of_entry).collect()
                }
            };
            if !there.is_subset(&came) {
                return Err(WalkError::Unordered);
            }
        }
        Ok(())
    }

    /// No number of the last page can be read: whatever lies behind the position is owed.
    async fn owe(
        &self,
        unread: Vec<unread::Stretch>,
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
    ) -> Result<(), WalkError> {
        let last_id = row.position.unwrap_or(RecordNumber::new(0));
        let batch = Batch { arrivals: Vec::new(), last_id, unread, captured: self.clock.now() };
        tally.entries += self.absorb(&question.intake, batch, row).await?.entries;
        Ok(())
    }

    /// After the last page: what the store knows alive behind it.
    async fn take_rest_in(
        &self,
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        let Some(scrutiny) = &question.scrutiny else { return Ok(()) };
        let mut arrivals = Vec::new();
        let stretch = (behind(row), question.until);
        let Some(last_id) = self.add_known(scrutiny, stretch, &mut arrivals, question.class, tally, cancel).await?
        else {
            return Ok(());
        };
        self.take_arrivals_in(arrivals, (last_id, Vec::new()), question, row, tally, cancel).await
    }

    /// Absorbs what was brought, up to `last_id` and with what is `unread` before it, after whatever it lacks was asked for again.
    pub(in crate::sync) async fn take_arrivals_in(
        &self,
        mut arrivals: Vec<Arrival>,
        (last_id, unread): (RecordNumber, Vec<unread::Stretch>),
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        let mut intake = question.intake.clone();
        if let Some(scrutiny) = &question.scrutiny {
            intake = self.scrutinise(scrutiny, intake, &mut arrivals, question.class, tally, cancel).await?;
        }
        self.ask_for_missing_marc(&mut arrivals, question.class, tally, cancel).await?;
        let captured = self.clock.now();
        let absorbed = self.absorb(&intake, Batch { arrivals, last_id, unread, captured }, row).await?;
        tally.entries += absorbed.entries;
        Ok(())
    }
}

/// Where the numbers of a page leap by more than [`LEAP`], from the one before it on: the numbers on both sides.
fn leaps(after: Option<RecordNumber>, page: &Page) -> Vec<(Option<RecordNumber>, RecordNumber)> {
    let mut before = after;
    let numbers = page.entries.iter().filter_map(number_of_entry);
    let sides = numbers.map(|number| (before.replace(number), number));
    let is_leap = |(before, number): &(Option<RecordNumber>, RecordNumber)| {
        number.value().saturating_sub(before.map_or(0, RecordNumber::value)) > LEAP
    };
    sides.filter(is_leap).collect()
}

fn number_of_entry(entry: &Result<Entry, BadEntry>) -> Option<RecordNumber> {
    match entry {
        Ok(entry) => Some(entry.id()),
        Err(bad) => bad.id,
    }
}

/// Whether a sweep has come to records that were all created since it began: see [`Rigour::Sweep`]. One whose date of
/// creation is not known counts as older.
fn is_only_later(page: &Page, row: &LedgerRow) -> bool {
    let Span::Ids { pinned, .. } = row.span else { return false };
    let is_later =
        |live: &Live| live.created().is_some_and(|at| at >= pinned) && live.updated().is_none_or(|at| at >= pinned);
    page.entries.iter().all(|entry| matches!(entry, Ok(Entry::Live(live)) if is_later(live)))
}
