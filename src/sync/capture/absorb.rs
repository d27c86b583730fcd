//! One page into the store: mapped, judged, and committed in slices that each carry the position past them.
//!
//! Nothing here waits or asks Sierra: it is plain code over the [`Store`] port, so that it can run on a thread that may
//! block, and so that a crash can only ever fall between two commits. A page is judged as a whole before any of it is
//! committed (the [`Tripwire`]); its slices then move data and position together (CUR-1, CUR-2).

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;

use super::map::{Mapped, Mapper, Refused};
use super::quarantine::{Known, entry_of};
use super::tally::EntryTally;
use super::tripwire::{Tripped, Tripwire};
use super::unread::{self, Stretch};
use crate::record::{Entry, RecordNumber, Stream};
use crate::sync::content::ContentHasher;
use crate::sync::decide::{Reading, Rules, Seen, Verdict, decide};
use crate::sync::ports::{BadEntry, Slice};
use crate::sync::{
    Change, DeleteReason, LedgerRow, Op, Origin, Payload, Remembered, RememberedKey, RequestNumber, RowState, Seq,
    Store, StoreError,
};

/// A slice holds at most so many changes…
const SLICE_CHANGES: usize = 200;
/// …so many bytes of payload…
const SLICE_BYTES: usize = 2 << 20;
/// …and so many entries of any outcome, since each is at least remembered.
const SLICE_ENTRIES: usize = 1000;

/// The id of a row that stands in no ledger: readings that belong to no walk are absorbed under it, and no position is
/// kept of them. Stores number rows from 1.
pub(super) const NO_ROW: u64 = 0;

/// One entry with the request that brought it: a record that was asked for again has its own.
#[derive(Debug)]
pub struct Arrival {
    /// The entry.
    pub entry: Result<Entry, BadEntry>,
    /// When its request was sent.
    pub sent: RequestNumber,
    /// When the answer was complete.
    pub answered: RequestNumber,
}

/// A whole, valid page.
#[derive(Debug)]
pub struct Batch {
    /// Its entries, ascending.
    pub arrivals: Vec<Arrival>,
    /// The greatest number on it: where the position stands once all of it is committed.
    pub last_id: RecordNumber,
    /// Where entries stood whose numbers cannot be read: owed from now on.
    pub unread: Vec<Stretch>,
    /// When it was read.
    pub captured: Timestamp,
}

/// How the pass wants its entries treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intake {
    /// The pass, as changes name it.
    pub source: Origin,
    /// What it asks for beyond the ordinary.
    pub rules: Rules,
    /// Set when one sink alone is being loaded: what says nothing new is for that sink.
    pub only_for: Option<String>,
    /// What an earlier answer to an explicit list said of some of the records. A reading that agrees with it may lower
    /// `updated` ([`Rules::confirmed_by_list`]).
    pub seen_before: BTreeMap<RecordNumber, Seen>,
}

/// What became of a page.
#[derive(Debug)]
pub struct Absorbed {
    /// The ledger row as committed.
    pub row: LedgerRow,
    /// How the entries were judged.
    pub entries: EntryTally,
    /// Changes in the outbox.
    pub changes: u64,
    /// The seq of the last of them.
    pub last_seq: Option<Seq>,
    /// What is owed anew.
    pub opened: Vec<LedgerRow>,
}

/// Why a page was not absorbed.
#[derive(Debug, thiserror::Error)]
pub enum AbsorbError {
    /// Too much of it is bad; nothing was committed.
    #[error(transparent)]
    Tripped(#[from] Tripped),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Absorbs `batch` for `row`, whose position moves with it.
///
/// # Errors
/// When too many entries are bad, before anything is committed; and on any storage error, after which the store must
/// not be used any more.
pub fn absorb(
    store: &dyn Store,
    mapper: &Mapper,
    intake: &Intake,
    batch: Batch,
    row: LedgerRow,
    tripwire: &mut Tripwire,
) -> Result<Absorbed, AbsorbError> {
    let (last_id, captured) = (batch.last_id, batch.captured);
    let mut hasher = mapper.hasher();
    let judged: Vec<(Result<Mapped, Refused>, RequestNumber, RequestNumber)> = batch
        .arrivals
        .into_iter()
        .map(|arrival| (mapper.admit(arrival.entry, &mut hasher), arrival.sent, arrival.answered))
        .collect();
    let unread: usize = batch.unread.iter().map(|stretch| stretch.entries).sum();
    let refused = judged.iter().filter(|(mapped, ..)| mapped.is_err()).count();
    tripwire.check(judged.len() + unread, refused + unread)?;

    let before = Before::read(store, row.stream, &judged)?;
    let known = Known::read(store, row.stream)?;
    let opened = unread::rows(store, &row, &batch.unread, captured)?;
    // In the first slice: no position may pass what is owed before it stands in the ledger.
    let slice = Slice { rows: opened.clone(), ..Slice::default() };
    let done = Absorbed { row, entries: EntryTally::default(), changes: 0, last_seq: None, opened };
    let filling = Filling::default();
    let twice = twice(&judged);
    let mut slices = Slices { store, intake, captured, known, slice, filling, done, twice };
    let mut remembered = before.remembered.into_iter();
    for (mapped, sent, answered) in judged {
        match mapped {
            Ok(mapped) => {
                let stored = remembered.next().flatten();
                let links = before.links.get(&mapped.number);
                slices.judge(mapped, sent, answered, stored.as_ref(), links.map_or(&[], Vec::as_slice))?;
            }
            Err(refused) => slices.set_aside(refused)?,
        }
    }
    slices.commit(Some(last_id).filter(|last| last.value() > 0))?;
    Ok(slices.done)
}

/// What the store remembers of the records of a page.
struct Before {
    /// In the order of the entries that were understood.
    remembered: Vec<Option<Remembered>>,
    links: HashMap<RecordNumber, Vec<RecordNumber>>,
}

impl Before {
    fn read(
        store: &dyn Store,
        stream: Stream,
        judged: &[(Result<Mapped, Refused>, RequestNumber, RequestNumber)],
    ) -> Result<Self, StoreError> {
        let understood = || judged.iter().filter_map(|(mapped, ..)| mapped.as_ref().ok());
        let keys: Vec<RememberedKey> = understood().map(|mapped| mapped.key.clone()).collect();
        let remembered = store.remembered(&keys)?;
        let links = if stream == Stream::Items {
            let numbers: Vec<RecordNumber> = understood().map(|mapped| mapped.number).collect();
            let links = store.links(&numbers)?;
            numbers.into_iter().zip(links).filter(|(_, links)| !links.is_empty()).collect()
        } else {
            HashMap::new()
        };
        Ok(Self { remembered, links })
    }
}

/// Fills slices and commits each one that is full.
struct Slices<'a> {
    store: &'a dyn Store,
    intake: &'a Intake,
    captured: Timestamp,
    known: Known,
    slice: Slice,
    filling: Filling,
    done: Absorbed,
    /// What is remembered by now of the records that the page holds more than once.
    twice: HashMap<RecordNumber, Option<Lately>>,
}

/// What one reading of a page left, for the next of the same record.
#[derive(Debug, Clone)]
struct Lately {
    remembered: Remembered,
    links: Vec<RecordNumber>,
}

/// How full the slice in hand is, and what its entries came to.
#[derive(Debug, Default)]
struct Filling {
    entries: usize,
    bytes: usize,
    tally: EntryTally,
    /// The last record number in it.
    position: Option<RecordNumber>,
}

impl Slices<'_> {
    fn judge(
        &mut self,
        mapped: Mapped,
        sent: RequestNumber,
        answered: RequestNumber,
        stored: Option<&Remembered>,
        links: &[RecordNumber],
    ) -> Result<(), StoreError> {
        self.make_room(mapped.payload.size())?;
        let (number, stream) = (mapped.number, self.done.row.stream);
        let lately = self.twice.get(&number).cloned().flatten();
        let (stored, links) = match &lately {
            Some(lately) => (Some(&lately.remembered), lately.links.as_slice()),
            None => (stored, links),
        };
        let reading = Reading { sent, answered, seen: mapped.seen };
        let confirmed_by_list = self.intake.seen_before.get(&number) == Some(&mapped.seen);
        let decision = decide(stored, &reading, Rules { confirmed_by_list, ..self.intake.rules });
        self.filling.tally.count(decision.verdict);
        self.filling.position = Some(number);
        if let Some((state, sent, answered)) = decision.remember {
            let remembered = Remembered { state, sent, answered, sealed_id: mapped.sealed_id.clone() };
            if let Some(lately) = self.twice.get_mut(&number) {
                *lately = Some(Lately { remembered: remembered.clone(), links: links_of(&mapped).to_vec() });
            }
            self.slice.remembered.push((mapped.key.clone(), remembered));
            if stream == Stream::Items {
                let now = links_of(&mapped);
                if now != links {
                    self.slice.links.push((number, now.to_vec()));
                }
            }
        }
        if matches!(decision.verdict, Verdict::Unchanged | Verdict::DeletedUnseen) {
            self.slice.discards.extend(self.known.healed(&mapped.id));
        }
        let only_for = self.intake.only_for.clone().filter(|_| decision.is_forced);
        if let Some(change) = self.change(mapped, decision.verdict, links, only_for) {
            if let Payload::Bib { losses, .. } = &change.payload {
                self.filling.tally.losses.count(losses);
            }
            match &change.only_for {
                _ if !self.known.any() => {}
                None => self.slice.closes.push((stream, change.id.clone())),
                // Other sinks may still lack what they refused.
                Some(sink) => self.slice.discards.extend(self.known.healed_for(&change.id, sink)),
            }
            self.slice.changes.push(change);
        }
        Ok(())
    }

    fn set_aside(&mut self, refused: Refused) -> Result<(), StoreError> {
        self.make_room(refused.payload.as_ref().map_or(0, String::len))?;
        self.filling.tally.quarantined += 1;
        self.filling.position = refused.number.or(self.filling.position);
        let entry = entry_of(self.done.row.stream, refused, self.captured);
        if self.known.add(&entry) {
            self.filling.tally.newly_quarantined += 1;
        }
        self.slice.quarantined.push(entry);
        Ok(())
    }

    /// What is emitted, if anything is.
    fn change(
        &self,
        mapped: Mapped,
        verdict: Verdict,
        links: &[RecordNumber],
        only_for: Option<String>,
    ) -> Option<Change> {
        let (stream, remaining) = (self.done.row.stream, links_of(&mapped));
        let unlinked_bib_ids = links.iter().filter(|bib| !remaining.contains(bib)).copied().collect();
        let (op, payload, suppressed, hash) = match (verdict, mapped.seen) {
            (Verdict::Upsert, Seen::Live { hash, suppressed, .. }) => (Op::Upsert, mapped.payload, suppressed, hash),
            (Verdict::Delete(reason), seen) => {
                let deleted_on = match seen {
                    Seen::Tombstone { deleted_on } if reason == DeleteReason::Deleted => deleted_on,
                    _ => None,
                };
                (Op::Delete { reason, deleted_on }, Payload::Nothing, false, ContentHasher::deletion(stream, reason))
            }
            _ => return None,
        };
        Some(Change {
            seq: Seq::ZERO,
            stream,
            id: mapped.id,
            op,
            updated: mapped.updated,
            suppressed,
            captured: self.captured,
            source: self.intake.source,
            payload,
            unlinked_bib_ids,
            hash,
            only_for,
        })
    }

    /// Commits the slice in hand if another entry with `bytes` of payload would make it too large.
    fn make_room(&mut self, bytes: usize) -> Result<(), StoreError> {
        let is_full = self.slice.changes.len() >= SLICE_CHANGES
            || self.filling.entries >= SLICE_ENTRIES
            || (self.filling.entries > 0 && self.filling.bytes + bytes > SLICE_BYTES);
        if is_full {
            self.commit(self.filling.position)?;
        }
        self.filling.entries += 1;
        self.filling.bytes += bytes;
        Ok(())
    }

    /// Commits the slice in hand and moves the position to `position`.
    fn commit(&mut self, position: Option<RecordNumber>) -> Result<(), StoreError> {
        let mut row = self.done.row.clone();
        row.position = position.max(row.position);
        row.state = RowState::Partial;
        row.touched = self.captured;
        let mut slice = std::mem::take(&mut self.slice);
        let filling = std::mem::take(&mut self.filling);
        if row.id != NO_ROW {
            slice.rows.push(row.clone());
        }
        let seqs = self.store.commit(slice)?;
        self.done.row = row;
        self.done.entries += filling.tally;
        self.done.changes += u64::try_from(seqs.len()).unwrap_or(u64::MAX);
        self.done.last_seq = seqs.last().copied().or(self.done.last_seq);
        Ok(())
    }
}

/// The numbers that stand on a page more than once.
fn twice(judged: &[(Result<Mapped, Refused>, RequestNumber, RequestNumber)]) -> HashMap<RecordNumber, Option<Lately>> {
    let mut seen = HashSet::with_capacity(judged.len());
    let numbers = judged.iter().filter_map(|(mapped, ..)| mapped.as_ref().ok()).map(|mapped| mapped.number);
    numbers.filter(|number| !seen.insert(*number)).map(|number| (number, None)).collect()
}

/// The bibs that a record hangs from after this reading: none if it is gone or out of scope.
fn links_of(mapped: &Mapped) -> &[RecordNumber] {
    match (&mapped.payload, mapped.seen) {
        (Payload::Item { bib_ids, .. }, Seen::Live { in_scope: true, .. }) => bib_ids,
        _ => &[],
    }
}
