//! One row of the ledger, page by page from its position to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::absorb::{Arrival, Batch, Intake};
use super::ending::{Ending, Next, Rigour};
use super::error::WalkError;
use super::lane::Lane;
use super::page_size::PageSize;
use super::scrutiny::Scrutiny;
use super::tally::Tally;
use crate::record::{Entry, Live};
use crate::sync::decide::Rules;
use crate::sync::ports::{Answer, CallClass, FieldSet, Page, PageFilter, PageQuery, SourceErrorKind};
use crate::sync::settings::StreamSettings;
use crate::sync::{LedgerRow, Origin, Pass, Span};

/// How a row is asked for.
#[derive(Debug, Clone)]
pub(in crate::sync) struct Question {
    pub(in crate::sync) filter: PageFilter,
    pub(in crate::sync) until: Option<crate::record::RecordNumber>,
    pub(in crate::sync) fields: FieldSet,
    pub(in crate::sync) class: CallClass,
    pub(in crate::sync) rigour: Rigour,
    pub(in crate::sync) intake: Intake,
    /// What is looked at twice before a page is absorbed; ordinary passes do not.
    pub(in crate::sync) scrutiny: Option<Arc<Scrutiny>>,
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
        Self { filter, until, fields, class, rigour, intake, scrutiny: None }
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
pub(in crate::sync) fn behind(row: &LedgerRow) -> Option<crate::record::RecordNumber> {
    let before_first = match row.span {
        Span::Ids { from, .. } => from.value().checked_sub(1).filter(|before| *before > 0),
        Span::Time(_) | Span::Days { .. } => None,
    };
    row.position.or(before_first.map(crate::record::RecordNumber::new))
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
        let mut fresh_connection = false;
        loop {
            self.ready(cancel).await?;
            let limit = smaller.limit().unwrap_or(self.settings.page_size);
            let query = question.page(row, limit, fresh_connection);
            let next = match self.ask(&query, cancel).await {
                Ok(Answer::Nothing { traffic, .. }) => {
                    tally.traffic += traffic;
                    ending.on_nothing()
                }
                Ok(Answer::Page(page)) => {
                    tally.traffic += page.traffic;
                    tally.pages += 1;
                    let next = ending.on_page(page.entries.len(), limit, is_only_later(&page, row));
                    self.take_in(page, question, row, tally, cancel).await?;
                    smaller.on_success();
                    next
                }
                Err(WalkError::Source(failed)) if failed.kind == SourceErrorKind::Narrow => {
                    tally.traffic += failed.traffic;
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
                Next::End => return self.take_rest_in(question, row, tally, cancel).await,
                Next::Page => fresh_connection = false,
                Next::Again { after } => {
                    self.pause(after, cancel).await?;
                    fresh_connection = true;
                }
            }
        }
    }

    /// Absorbs one page, after whatever it lacks was asked for again.
    async fn take_in(
        &self,
        page: Page,
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        if row.position.is_some_and(|position| page.last_id <= position) {
            return Err(WalkError::Looped);
        }
        let (sent, answered, last_id) = (page.sent, page.answered, page.last_id);
        let captured = self.clock.now();
        let mut arrivals: Vec<Arrival> =
            page.entries.into_iter().map(|entry| Arrival { entry, sent, answered }).collect();
        let mut intake = question.intake.clone();
        if let Some(scrutiny) = &question.scrutiny {
            let stretch = (behind(row), Some(last_id));
            self.add_known(scrutiny, stretch, &mut arrivals, question.class, tally, cancel).await?;
            intake = self.scrutinise(scrutiny, intake, &mut arrivals, question.class, tally, cancel).await?;
        }
        self.ask_for_missing_marc(&mut arrivals, question.class, tally, cancel).await?;
        let absorbed = self.absorb(&intake, Batch { arrivals, last_id, captured }, row).await?;
        tally.entries += absorbed.entries;
        Ok(())
    }

    /// After the last page: what the store knows alive behind it.
    pub(in crate::sync) async fn take_rest_in(
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
        self.take_list_in(arrivals, last_id, question, row, tally, cancel).await
    }

    /// Absorbs what explicit lists brought, up to `last_id`.
    pub(in crate::sync) async fn take_list_in(
        &self,
        mut arrivals: Vec<Arrival>,
        last_id: crate::record::RecordNumber,
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
        let absorbed = self.absorb(&intake, Batch { arrivals, last_id, captured }, row).await?;
        tally.entries += absorbed.entries;
        Ok(())
    }
}

/// Whether a sweep has come to records that were all created since it began: see [`Rigour::Sweep`]. One whose date of
/// creation is not known counts as older.
pub(in crate::sync) fn is_only_later(page: &Page, row: &LedgerRow) -> bool {
    let Span::Ids { pinned, .. } = row.span else { return false };
    let is_later =
        |live: &Live| live.created().is_some_and(|at| at >= pinned) && live.updated().is_none_or(|at| at >= pinned);
    page.entries.iter().all(|entry| matches!(entry, Ok(Entry::Live(live)) if is_later(live)))
}
