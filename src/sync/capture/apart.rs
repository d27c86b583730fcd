//! Taking a page apart that fails whenever it is asked for, until the record that spoils it stands alone (BR-045).
//!
//! First the page is asked for `id` alone, which Sierra can often answer when it cannot render a record. Closed ranges
//! of these numbers are then halved. What can be read is kept, what cannot is set aside (B10), and all of it is judged
//! as the one page that it is. When not even the numbers come, smaller pages bring what stands before the record; then
//! ranges grow from the position until one fails, and that one is halved.
//!
//! A range is read when Sierra says that nothing is left in it, or when its last number came: a page may be shorter
//! than it was asked for, and what it holds back would be passed by for ever. For the same reason the first "nothing"
//! is asked again. And no number is set aside that Sierra did not name and that was not proved to be the matter.
//!
//! The source asks each of these questions once and leaves the breaker out of it, as long as they fail as the page
//! did.

use tokio_util::sync::CancellationToken;

use super::absorb::{Arrival, Batch};
use super::error::WalkError;
use super::lane::Lane;
use super::tally::Tally;
use super::tripwire::Tripped;
use super::unread;
use super::walk::Question;
use crate::record::RecordNumber;
use crate::sync::observer::Event;
use crate::sync::ports::{Answer, BadEntry, FieldSet, PageFilter, PageQuery, SourceError, SourceErrorKind};
use crate::sync::{LedgerRow, RequestNumber};

/// Poisoned records on one page, with no good one among them, that stop the stream: then it is no single record.
const ALL_BAD: usize = 20;
/// A blind search that has read so many numbers in a row without a failure is past the poison.
const CLEAR: u64 = 64;
/// How much wider the next range is while none fails.
const WIDER: u64 = 8;
/// Into so many parts a page is cut while what stands before the poison is read. Halves would take fewer questions of
/// one answer each, and more failures in a row than a server that is well is believed.
const PARTS: u32 = 4;
/// A range of so many numbers holds every record that may lie behind the position.
const EVERYTHING: u64 = 1 << 40;

impl Lane {
    /// Absorbs the page after the position of `row`, which as a whole fails with `cause`. Returns when the walk can go
    /// on behind it.
    pub(super) async fn take_apart(
        &self,
        question: &Question,
        row: &mut LedgerRow,
        cause: &SourceError,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        let calls_before = tally.traffic.calls;
        let numbers = PageQuery { fields: FieldSet::IdOnly, ..question.page(row, self.settings.page_size, false) };
        let mut taking = Taking { lane: self, question, cause, cancel, found: Found::default() };
        let numbers = match taking.ask(&numbers, tally).await? {
            Piece::Came(answer) => Some(numbers_of(&answer)),
            Piece::Poisoned => None,
        };
        match numbers {
            // The page is empty by now: the walk will hear so itself.
            Some(numbers) if numbers.is_empty() => return Ok(()),
            Some(numbers) => taking.known(&numbers, row, tally).await?,
            None if taking.is_next_after_smaller_pages(row, tally).await? => taking.blind(row, tally).await?,
            None => {}
        }
        self.observer.observe(&Event::PageTakenApart {
            stream: row.stream,
            poisoned: taking.found.poisoned,
            calls: u64::from(tally.traffic.calls.saturating_sub(calls_before)),
        });
        Ok(())
    }
}

/// A page being taken apart.
struct Taking<'a> {
    lane: &'a Lane,
    question: &'a Question,
    cause: &'a SourceError,
    cancel: &'a CancellationToken,
    found: Found,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    arrivals: Vec<Arrival>,
    poisoned: u64,
    good: u64,
}

/// What became of one question.
enum Piece {
    Came(Answer),
    Poisoned,
}

impl Taking<'_> {
    /// Halves the ranges of `numbers`, then absorbs everything as one page.
    async fn known(
        &mut self,
        numbers: &[RecordNumber],
        row: &mut LedgerRow,
        tally: &mut Tally,
    ) -> Result<(), WalkError> {
        let limit = self.lane.settings.page_size;
        let mut pieces = vec![numbers];
        while let Some(piece) = pieces.pop() {
            let (Some(first), Some(last)) = (piece.first().copied(), piece.last().copied()) else { continue };
            match self.ask(&self.range(row, first, last, limit), tally).await? {
                Piece::Came(answer) => {
                    if let Some(read) = cut_short(&answer, last) {
                        pieces.push(piece.split_at(piece.partition_point(|number| *number <= read)).1);
                    }
                    self.keep(answer);
                }
                Piece::Poisoned if piece.len() == 1 => self.set_aside(first, numbers.len())?,
                Piece::Poisoned => {
                    let (left, right) = piece.split_at(piece.len() / 2);
                    pieces.extend([right, left]);
                }
            }
        }
        match numbers.last() {
            Some(last) => self.absorb(*last, row, tally).await,
            None => Ok(()),
        }
    }

    /// Absorbs what stands before the poison, in ever smaller pages. Tells whether the next record is the poison.
    async fn is_next_after_smaller_pages(&mut self, row: &mut LedgerRow, tally: &mut Tally) -> Result<bool, WalkError> {
        let mut limit = self.lane.settings.page_size / PARTS;
        while limit > 0 {
            let mut parts = 0;
            let mut next = self.question.page(row, limit, false);
            while let Piece::Came(answer) = self.ask(&next, tally).await? {
                let Answer::Page(page) = answer else { return Ok(false) };
                self.lane.see_that_nothing_is_left_out(&next, &page, tally, self.cancel).await?;
                let last_id = page.last_id;
                self.keep(Answer::Page(page));
                self.absorb(last_id, row, tally).await?;
                parts += 1;
                if parts == PARTS {
                    // It does not stand where it stood.
                    return Ok(false);
                }
                next = self.question.page(row, limit, false);
            }
            limit /= PARTS;
        }
        Ok(true)
    }

    /// Widens closed ranges from the position, halves the one that fails, and absorbs each that does not. Some fifty
    /// questions for one record among numbers of seven digits.
    ///
    /// A number that fails alone is only a suspect until another one answers: a server that fails whatever it is asked
    /// would else fill the quarantine with numbers that no record has. Then each suspect is asked for once more.
    async fn blind(&mut self, row: &mut LedgerRow, tally: &mut Tally) -> Result<(), WalkError> {
        let limit = self.lane.settings.page_size;
        let mut suspects: Vec<RecordNumber> = Vec::new();
        let mut width = 1_u64;
        // What failed last and begins at the position: the poison is in it.
        let mut failing: Option<RecordNumber> = None;
        let (mut is_met, mut clear) = (false, 0_u64);
        while !(is_met && clear >= CLEAR) {
            let before = suspects.last().copied().or(self.question.page(row, 1, false).after);
            let first = before.map_or(RecordNumber::new(1), RecordNumber::next);
            if self.question.until.is_some_and(|until| first > until) {
                return self.judge_by_the_last_answered(&mut suspects, row, tally).await;
            }
            if suspects.len() >= ALL_BAD {
                return Err(self.cause.clone().into());
            }
            let last = RecordNumber::new(first.value().saturating_add(width - 1));
            let last = self.question.until.map_or(last, |until| last.min(until));
            match self.ask(&self.range(row, first, last, limit), tally).await? {
                Piece::Came(answer) => {
                    self.judge(&mut suspects, row, tally).await?;
                    let through = cut_short(&answer, last).unwrap_or(last);
                    self.keep(answer);
                    self.absorb(through, row, tally).await?;
                    clear += through.value().saturating_sub(first.value()) + 1;
                    if !is_met && width >= EVERYTHING {
                        // Nothing fails any more.
                        return Ok(());
                    }
                    failing = failing.filter(|failing| *failing > through);
                    width = match failing {
                        Some(failing) => half(failing.value() - through.value()),
                        None => width.saturating_mul(WIDER),
                    };
                }
                Piece::Poisoned if first == last => {
                    suspects.push(first);
                    is_met = true;
                    (width, clear) = (1, 0);
                    failing = failing.filter(|failing| *failing > last);
                }
                Piece::Poisoned => {
                    failing = Some(last);
                    width = half(last.value() - first.value() + 1);
                    clear = 0;
                }
            }
        }
        Ok(())
    }

    /// No number after the suspects is left to tell: one before them that was answered is asked for again. If that
    /// fails now, it is not these records.
    async fn judge_by_the_last_answered(
        &mut self,
        suspects: &mut Vec<RecordNumber>,
        row: &mut LedgerRow,
        tally: &mut Tally,
    ) -> Result<(), WalkError> {
        let Some(last) = suspects.last().copied() else { return Ok(()) };
        let Some(known) = row.position else { return Err(self.cause.clone().into()) };
        match self.ask(&self.range(row, known, known, 1), tally).await? {
            Piece::Came(_) => {
                self.judge(suspects, row, tally).await?;
                self.absorb(last, row, tally).await
            }
            Piece::Poisoned => Err(self.cause.clone().into()),
        }
    }

    /// Asks for each suspect once more, now that others are answered: what it is goes among the arrivals. One that
    /// Sierra says it does not have is none.
    async fn judge(
        &mut self,
        suspects: &mut Vec<RecordNumber>,
        row: &LedgerRow,
        tally: &mut Tally,
    ) -> Result<(), WalkError> {
        for suspect in std::mem::take(suspects) {
            if let Piece::Came(answer) = self.ask(&self.range(row, suspect, suspect, 1), tally).await? {
                self.keep(answer);
                continue;
            }
            let filter = PageFilter::Ids(vec![suspect]);
            let named = PageQuery {
                filter,
                after: None,
                until: None,
                fields: FieldSet::IdOnly,
                ..self.question.page(row, 1, true)
            };
            if !matches!(self.ask(&named, tally).await?, Piece::Came(Answer::Nothing { .. })) {
                self.set_aside(suspect, ALL_BAD)?;
            }
        }
        Ok(())
    }

    fn range(&self, row: &LedgerRow, first: RecordNumber, last: RecordNumber, limit: u32) -> PageQuery {
        let after = first.value().checked_sub(1).filter(|before| *before > 0).map(RecordNumber::new);
        PageQuery { after, until: Some(last), ..self.question.page(row, limit, false) }
    }

    /// Asks once; "nothing" is asked again on another connection before it is believed (BR-054).
    async fn ask(&self, query: &PageQuery, tally: &mut Tally) -> Result<Piece, WalkError> {
        match self.ask_once(query, tally).await? {
            Piece::Came(Answer::Nothing { .. }) if query.fields != FieldSet::IdOnly => {
                self.ask_once(&PageQuery { fresh_connection: true, ..query.clone() }, tally).await
            }
            piece => Ok(piece),
        }
    }

    async fn ask_once(&self, query: &PageQuery, tally: &mut Tally) -> Result<Piece, WalkError> {
        if self.cancel.is_cancelled() {
            return Err(WalkError::Cancelled);
        }
        match self.lane.ask(query, self.cancel).await {
            Ok(answer) => {
                let (traffic, has_unread) = match &answer {
                    Answer::Page(page) => (page.traffic, unread::has_any(&page.entries)),
                    Answer::Nothing { traffic, .. } => (*traffic, false),
                };
                tally.traffic += traffic;
                // Which number it is shows when that one is asked for alone.
                Ok(if has_unread { Piece::Poisoned } else { Piece::Came(answer) })
            }
            Err(WalkError::Source(error)) => {
                tally.traffic += error.traffic;
                if error.kind == SourceErrorKind::Narrow { Ok(Piece::Poisoned) } else { Err(error.into()) }
            }
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, answer: Answer) {
        if let Answer::Page(page) = answer {
            let (sent, answered) = (page.sent, page.answered);
            self.found.good += u64::try_from(page.entries.len()).unwrap_or(0);
            self.found.arrivals.extend(page.entries.into_iter().map(|entry| Arrival { entry, sent, answered }));
        }
    }

    /// Puts a record that cannot be read even alone among the arrivals. Gives up when it is plainly not the records.
    fn set_aside(&mut self, number: RecordNumber, of: usize) -> Result<(), WalkError> {
        self.found.poisoned += 1;
        let (bad, good) = (self.found.poisoned, self.found.good);
        let counted = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let too_many = counted(bad) * 20 > of.max(100) && of >= 100;
        if too_many || (counted(bad) >= ALL_BAD && good == 0) {
            return Err(Tripped { bad: counted(bad), entries: counted(bad + good) }.into());
        }
        let reason = match (self.cause.status_code, self.cause.code) {
            (Some(status), Some(code)) => format!("Sierra answers {status} with code {code} whenever it is asked for"),
            (Some(status), None) => format!("Sierra answers {status} without a record whenever it is asked for"),
            (None, _) => "no whole answer comes whenever it is asked for".to_owned(),
        };
        let entry = Err(BadEntry { id: Some(number), reason, payload: None });
        let never = RequestNumber::default();
        self.found.arrivals.push(Arrival { entry, sent: never, answered: never });
        Ok(())
    }

    async fn absorb(&mut self, last_id: RecordNumber, row: &mut LedgerRow, tally: &mut Tally) -> Result<(), WalkError> {
        let mut arrivals = std::mem::take(&mut self.found.arrivals);
        tally.pages += u64::from(!arrivals.is_empty());
        let (class, cancel) = (self.question.class, self.cancel);
        self.lane.ask_for_missing_marc(&mut arrivals, class, tally, cancel).await?;
        let batch = Batch { arrivals, last_id, unread: Vec::new(), captured: self.lane.clock.now() };
        let absorbed = self.lane.absorb(&self.question.intake, batch, row).await?;
        tally.entries += absorbed.entries;
        Ok(())
    }
}

/// Half of a range that failed, rounded up so that a range of one is asked for as such.
const fn half(width: u64) -> u64 {
    let half = width / 2;
    if half == 0 { 1 } else { half }
}

/// The numbers on a page, in order; of undecodable entries those that could be read.
fn numbers_of(answer: &Answer) -> Vec<RecordNumber> {
    let Answer::Page(page) = answer else { return Vec::new() };
    let number = |entry: &Result<crate::record::Entry, BadEntry>| match entry {
        Ok(entry) => Some(entry.id()),
        Err(bad) => bad.id,
    };
    let mut numbers: Vec<RecordNumber> = page.entries.iter().filter_map(number).collect();
    if numbers.last() != Some(&page.last_id) {
        numbers.push(page.last_id);
    }
    numbers
}

/// How far a page came that does not reach `last`: it was full and records have entered the range since it was
/// measured, or Sierra sent fewer than it was asked for, or it was the trial after an outage, which asks for one.
fn cut_short(answer: &Answer, last: RecordNumber) -> Option<RecordNumber> {
    let Answer::Page(page) = answer else { return None };
    (page.last_id < last).then_some(page.last_id)
}
