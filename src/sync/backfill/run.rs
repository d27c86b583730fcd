//! Running a backfill: from its order to its end, or to what it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::book::{Book, Job, JobRange, JobState};
use super::order::{BackfillOrder, Numbers, Via};
use super::report::left_of;
use crate::record::{RecordNumber, Stream};
use crate::sync::capture::ending::Rigour;
use crate::sync::capture::error::{Aftermath, WalkError};
use crate::sync::capture::pass::{Listed, PassReport};
use crate::sync::capture::{Course, Known, Lane, Question, Reading, Scrutiny};
use crate::sync::exit::Trouble;
use crate::sync::ledger::coverage::coverage;
use crate::sync::ledger::own_rows;
use crate::sync::meaning;
use crate::sync::observer::Event;
use crate::sync::ports::PageFilter;
use crate::sync::{LedgerRow, Pass, Seq, Span, StoreError};

/// A backfill under way.
pub(in crate::sync) struct Backfill<'a> {
    pub(in crate::sync) lane: &'a Lane,
    pub(in crate::sync) book: &'a Book,
    pub(in crate::sync) order: &'a BackfillOrder,
    /// Sierra's time at its start.
    pub(in crate::sync) now: Timestamp,
    pub(in crate::sync) cancel: &'a CancellationToken,
}

impl Backfill<'_> {
    /// Runs it to its end, or as far as it goes. What it leaves is taken up by the same order again.
    ///
    /// # Errors
    /// Only when the store fails; everything else is in the report.
    pub(in crate::sync) async fn run(&self) -> Result<PassReport, StoreError> {
        let _turn = self.book.turn(self.lane.stream()).await;
        let _in_hand = self.book.take_in_hand(&id_of(self.lane, self.order));
        let fixed_at = match &self.order.sink {
            Some(sink) if self.order.is_reload() => {
                self.lane.positions.begin_reload(sink, self.lane.stream()).await?.unwrap_or_default()
            }
            _ => Seq::ZERO,
        };
        let (mut job, held) = self.job(fixed_at).await?;
        let mut running = Course::default();
        self.tell_of_the_dead(&mut job, &mut running).await?;
        let known = self.known(held).await?;
        self.moved(&job).await?;
        for range in job.ranges.clone() {
            if running.ended_by.is_some() {
                break;
            }
            let Some(row) = self.rows().await?.into_iter().find(|row| row.id == range.row) else { continue };
            if row.is_owed() {
                self.walk(row, &known, &mut running).await?;
                self.moved(&job).await?;
            }
        }
        self.end(job, running).await
    }

    /// The job of this order: the one that is under way, or a new one. Rows that failed are tried again.
    async fn job(&self, fixed_at: Seq) -> Result<(Job, Option<Arc<[RecordNumber]>>), StoreError> {
        let stream = self.lane.stream();
        let id = id_of(self.lane, self.order);
        let id_of_new = id.clone();
        let touched = self.lane.clock.now();
        if let Some(job) = self.book.find(&id).await?.filter(|job| job.fixed_at == fixed_at) {
            let job = Job { state: JobState::Running, resume_at: None, touched, ..job };
            self.book.keep(job.clone()).await?;
            return Ok((job, None));
        }
        if self.order.meaning.is_some() {
            // Whatever ran under older settings is of no use any more; sinks that were being loaded begin anew.
            self.book.close(move |job| job.stream == stream && job.id != id_of_new).await?;
        }
        let plan = self.lane.cut(&self.order.selection, self.order.via, self.now).await?;
        let (mut rows, mut ranges) = (Vec::new(), Vec::new());
        for cut in &plan.cuts {
            let row = self.lane.store.call(|store| store.next_row_id()).await?;
            let span = Span::Ids { from: cut.from, to: cut.to, pinned: self.now };
            rows.push(LedgerRow::opened(row, stream, Pass::Backfill, span, touched));
            // What is kept with the job is not sealed, as positions are.
            let known = cut.known.filter(|_| stream != Stream::Patrons);
            ranges.push(JobRange { row, records: cut.records, calls: cut.calls, known });
        }
        let job = Job {
            id,
            stream,
            sink: self.order.sink.clone(),
            fixed_at,
            ranges,
            is_measured: plan.is_measured,
            dead_are_told: false,
            meaning: self.order.meaning.clone(),
            state: JobState::Running,
            resume_at: None,
            touched,
        };
        self.book.open(job.clone(), rows).await?;
        Ok((job, plan.held))
    }

    /// A sink that is loaded may hold what is gone by now.
    async fn tell_of_the_dead(&self, job: &mut Job, running: &mut Course) -> Result<(), StoreError> {
        let selection = &self.order.selection;
        let Some(sink) = self.order.sink.as_deref().filter(|_| self.order.force) else { return Ok(()) };
        if job.dead_are_told || selection.has_times() || !selection.locations.is_empty() {
            return Ok(());
        }
        match self.lane.tell_of_the_dead(sink, selection, self.cancel).await {
            Ok(_) => {
                job.dead_are_told = true;
                self.book.keep(job.clone()).await
            }
            Err(WalkError::Store(error)) => Err(error),
            Err(error) => {
                running.note(&error, self.lane);
                running.ended_by = Some(Aftermath::LeaveRow);
                Ok(())
            }
        }
    }

    /// The records that must come; none can be named where times are selected.
    async fn known(&self, held: Option<Arc<[RecordNumber]>>) -> Result<Option<Known>, StoreError> {
        let selection = &self.order.selection;
        if selection.has_times() || matches!(selection.numbers, Numbers::List(_)) {
            return Ok(None);
        }
        if self.lane.stream() != Stream::Patrons {
            return Ok(Some(Known::Stored));
        }
        let held = match held {
            Some(held) => held,
            None => self.lane.held_numbers(selection, None).await?,
        };
        Ok(Some(Known::Held(held)))
    }

    async fn walk(&self, mut row: LedgerRow, known: &Option<Known>, running: &mut Course) -> Result<(), StoreError> {
        let question = self.question(&row, known.clone());
        loop {
            let tally = &mut running.tally;
            let not_found = tally.not_found;
            let walked = match &self.order.selection.numbers {
                Numbers::List(list) => self.lane.walk_list(list, &question, &mut row, tally, self.cancel).await,
                _ => self.lane.walk_asking(&question, &mut row, tally, self.cancel).await,
            };
            if tally.not_found > not_found {
                let count = tally.not_found - not_found;
                self.lane.observer.observe(&Event::NotFound { stream: row.stream, count });
            }
            let wait = self.order.wait_for_quota;
            match running.conclude(self.lane, row, walked, wait, self.cancel).await? {
                Some(again) => row = again,
                None => return Ok(()),
            }
        }
    }

    fn question(&self, row: &LedgerRow, known: Option<Known>) -> Question {
        let mut question = Question::of(row, &self.lane.settings);
        let selection = &self.order.selection;
        let window = selection.window(self.now);
        if let Some(window) = window {
            question.filter = PageFilter::Updated(window);
        }
        if window.is_some() || question.until.is_some() {
            question.rigour = Rigour::Window;
        }
        question.intake.only_for.clone_from(&self.order.sink);
        question.intake.rules.emit_unchanged |= self.order.force;
        question.intake.seen_before = BTreeMap::new();
        let locations = selection.locations.clone();
        question.reading = match self.order.via {
            Via::List => Reading::List,
            Via::MarcExport => Reading::Export,
        };
        question.scrutiny = Some(Arc::new(Scrutiny { locations, known, settles: self.order.force }));
        question
    }

    async fn rows(&self) -> Result<Vec<LedgerRow>, StoreError> {
        let stream = self.lane.stream();
        self.lane.store.call(move |store| store.ledger(stream)).await
    }

    async fn moved(&self, job: &Job) -> Result<(), StoreError> {
        let progress = job.progress(&self.rows().await?);
        self.lane.observer.observe(&Event::BackfillMoved { stream: job.stream, id: job.id.clone(), progress });
        Ok(())
    }

    async fn end(&self, job: Job, mut running: Course) -> Result<PassReport, StoreError> {
        let rows = self.rows().await?;
        let mine = rows.iter().filter(|row| job.ranges.iter().any(|range| range.row == row.id));
        let left: Vec<&LedgerRow> = mine.filter(|row| row.is_owed()).collect();
        let is_whole = left.is_empty() && running.ended_by.is_none();
        if is_whole {
            self.complete(&job).await?;
        } else {
            let resume_at = running.resume_at();
            let state = if resume_at.is_some() { JobState::WaitingQuota } else { JobState::Parked };
            let touched = self.lane.clock.now();
            self.book.keep(Job { state, resume_at, touched, ..job.clone() }).await?;
            running.leaves_something();
            if let Some(error) = &mut running.error {
                // Nothing else tries it again: what is owed on schedule is of the stream.
                let first = error.hint.take().filter(|hint| !hint.starts_with("nothing to do"));
                let again = self.order.again();
                error.hint = Some(first.map_or_else(|| again.clone(), |first| format!("{first}; then {again}")));
            }
        }
        if running.tally.entries.newly_quarantined > 0 {
            running.troubles.insert(Trouble::NewlyQuarantined);
        }
        let (outcome, resume_at) = (running.outcome(is_whole), running.resume_at());
        let stream = self.lane.stream();
        let own = self.lane.store.call(move |store| own_rows(store, stream)).await?;
        Ok(PassReport {
            outcome,
            tally: running.tally,
            gaps: left_of(left),
            watermark: coverage(&own).watermark,
            error: running.error,
            resume_at,
            asked_to_wait_until: running.asked_to_wait_until,
            reached_back: false,
            listed: Listed::default(),
            needs_person: running.needs_person,
            troubles: running.troubles,
        })
    }

    /// The sink counts as loaded before the job is forgotten: a crash in between completes it once more.
    async fn complete(&self, job: &Job) -> Result<(), StoreError> {
        if let Some(sink) = self.order.sink.as_deref().filter(|_| self.order.is_reload()) {
            self.lane.positions.complete_reload(sink, job.stream).await?;
            self.lane.observer.observe(&Event::SinkLoaded { sink: sink.to_owned(), stream: job.stream });
        }
        if let Some(meaning) = job.meaning.clone() {
            let stream = job.stream;
            self.lane.store.call(move |store| meaning::keep(store, stream, &meaning)).await?;
        }
        let id = job.id.clone();
        self.book.close(move |other| other.id == id).await
    }
}

/// The id of the job that carries out `order`.
fn id_of(lane: &Lane, order: &BackfillOrder) -> String {
    let hash = lane.mapper.keyed_hash(&[b"backfill", order.signature().as_bytes()]);
    let digits: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digits}", lane.stream())
}

/// The loads that are owed for the stream of `lane`, once its own first load is complete: of every sink where the
/// settings changed, and of sinks that lack the stream.
pub(in crate::sync) async fn owed_loads(lane: &Lane, wait_for_quota: bool) -> Result<Vec<BackfillOrder>, StoreError> {
    let stream = lane.stream();
    let sinks = lane.positions.unloaded(stream).await;
    let mut orders = Vec::new();
    if let Some(meaning) = lane.meaning.clone() {
        let kept = lane.store.call(move |store| meaning::kept(store).map(|kept| kept.get(&stream).cloned())).await?;
        if kept.is_some_and(|kept| kept != meaning) {
            orders.push(BackfillOrder::resettle(stream, &meaning, wait_for_quota));
        }
    }
    orders.extend(sinks.iter().map(|sink| BackfillOrder::reload(stream, sink, wait_for_quota)));
    if orders.is_empty() {
        return Ok(orders);
    }
    let rows = lane.store.call(move |store| own_rows(store, stream)).await?;
    Ok(if coverage(&rows).loaded { orders } else { Vec::new() })
}
