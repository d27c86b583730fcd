//! What is concluded from absence: the most dangerous sentence in this program, so it is hedged about.
//!
//! Nothing is concluded from a sweep that brought nothing, that was interrupted and resumed, or that more than a share
//! of all records is missing from. What remains is asked for again by number, twice, at least five seconds apart and on
//! different connections, each time beside records that the sweep has just shown: an answer that does not know those
//! either is a ghost and ends it. Only "nothing" both times, or a tombstone, counts; and only if no other pass has read
//! the record since the sweep began.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::walk::Walk;
use crate::record::{Entry, RecordNumber, Stream};
use crate::sync::capture::absorb::Arrival;
use crate::sync::capture::ending::APART;
use crate::sync::capture::error::WalkError;
use crate::sync::capture::tally::{EntryTally, Tally};
use crate::sync::capture::{Manner, number_of};
use crate::sync::content::ContentHasher;
use crate::sync::observer::Event;
use crate::sync::ports::{CallClass, Slice};
use crate::sync::remembered::RememberedState;
use crate::sync::{
    Change, DeleteReason, LedgerRow, Op, Origin, Pass, Payload, Remembered, RememberedKey, RequestNumber, Seq,
    StoreError,
};

/// Numbers in one list, witnesses included: longer ones have been refused (sierra-api.md §2.2).
const LIST: usize = 48;
/// Arrivals absorbed, and records buried, at once.
const AT_ONCE: usize = 200;

/// What was concluded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conclusion {
    /// Records that are gone; those that did not come, if it was stopped.
    pub(super) missing: u64,
    /// Those of them that sinks are told of.
    pub(super) repaired: u64,
    /// Why nothing was concluded.
    pub(super) stopped: Option<String>,
}

impl Conclusion {
    pub(super) fn stopped(missing: u64, why: String) -> Self {
        Self { missing, repaired: 0, stopped: Some(why) }
    }
}

/// What the lists said.
#[derive(Default)]
struct Asked {
    /// What came after all, tombstones among it.
    came: BTreeMap<RecordNumber, Arrival>,
    /// What Sierra knows nothing of, with the request that said so.
    gone: BTreeMap<RecordNumber, (RequestNumber, RequestNumber)>,
}

/// An answer that knows none of the records that were shown just before.
struct Ghost;

impl Walk<'_> {
    /// Concludes what may be concluded from what did not come.
    pub(super) async fn conclude(
        &self,
        is_resumed: bool,
        row: &mut LedgerRow,
        tally: &mut Tally,
    ) -> Result<Conclusion, WalkError> {
        let absent = u64::try_from(self.absent.len()).unwrap_or(u64::MAX);
        let checked = self.job.found.checked;
        if checked == 0 && absent > 0 {
            let why = format!("the sweep brought no record, and {absent} are known: nothing was concluded from that");
            return Ok(Conclusion::stopped(absent, why));
        }
        if is_resumed {
            let why = "the sweep was interrupted and resumed, so nothing was concluded from what did not come: run it \
                       again to look for records that vanished";
            return Ok(Conclusion::stopped(absent, why.to_owned()));
        }
        let most = u64::from(self.job.order.max_missing);
        let all = checked.saturating_add(absent);
        if absent.saturating_mul(100) > most.saturating_mul(all) {
            let stream = self.sweeps.lane.stream();
            let why = format!(
                "{absent} of {all} records did not come, more than {most} %: nothing was concluded from that; if so many \
                 are really gone, run `sierra-sync reconcile {stream} --repair --max-missing` with a higher share"
            );
            return Ok(Conclusion::stopped(absent, why));
        }
        if self.absent.is_empty() {
            return Ok(Conclusion::default());
        }
        let last_shown = row.position;
        let asked = match self.ask_again(tally).await? {
            Ok(asked) => asked,
            Err(Ghost) => {
                let why = "Sierra knew nothing of records that it had just shown: its answers were not believed, and \
                           nothing was concluded"
                    .to_owned();
                return Ok(Conclusion::stopped(absent, why));
            }
        };
        let is_live = |arrival: &Arrival| matches!(&arrival.entry, Ok(Entry::Live(_)));
        let lives_behind =
            asked.came.iter().any(|(number, arrival)| last_shown.is_none_or(|last| *number > last) && is_live(arrival));
        if lives_behind {
            let why = "the sweep ended before the last record that lives: nothing was concluded from it".to_owned();
            return Ok(Conclusion::stopped(absent, why));
        }
        let dead = asked.came.values().filter(|arrival| matches!(&arrival.entry, Ok(Entry::Tombstone(_)))).count();
        let missing = u64::try_from(dead + asked.gone.len()).unwrap_or(u64::MAX);
        let repaired = if self.job.order.repair { self.tell(asked, row, tally).await? } else { 0 };
        Ok(Conclusion { missing, repaired, stopped: None })
    }

    /// Asks for what did not come, twice.
    async fn ask_again(&self, tally: &mut Tally) -> Result<Result<Asked, Ghost>, WalkError> {
        let mut asked = Asked::default();
        let mut left = self.absent.clone();
        for round in 0..2 {
            if round > 0 && !left.is_empty() {
                self.sweeps.lane.pause(APART, self.sweeps.cancel).await?;
            }
            asked.gone.clear();
            for part in left.chunks(LIST - self.witnesses.len()) {
                if self.ask(part, &mut asked, tally).await?.is_err() {
                    return Ok(Err(Ghost));
                }
            }
            left.retain(|number| asked.gone.contains_key(number));
        }
        Ok(Ok(asked))
    }

    async fn ask(
        &self,
        part: &[RecordNumber],
        asked: &mut Asked,
        tally: &mut Tally,
    ) -> Result<Result<(), Ghost>, WalkError> {
        let mut numbers: Vec<RecordNumber> = part.iter().chain(&self.witnesses).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lane = self.sweeps.lane;
        lane.ready(self.sweeps.cancel).await?;
        let manner = Manner { class: CallClass::Paced, fresh_connection: true };
        let came = lane.read_by_list(&numbers, manner, tally, self.sweeps.cancel).await?;
        let wanted: BTreeSet<RecordNumber> = part.iter().copied().collect();
        let mut by_number: BTreeMap<RecordNumber, Arrival> = BTreeMap::new();
        for arrival in came {
            if let Some(number) = number_of(&arrival) {
                by_number.insert(number, arrival);
            }
        }
        let witness = self.witnesses.iter().find_map(|number| by_number.get(number));
        let Some((sent, answered)) = witness.map(|witness| (witness.sent, witness.answered)) else {
            return Ok(Err(Ghost));
        };
        let gone = wanted.iter().filter(|number| !by_number.contains_key(number));
        asked.gone.extend(gone.map(|number| (*number, (sent, answered))));
        asked.came.extend(by_number.into_iter().filter(|(number, _)| wanted.contains(number)));
        Ok(Ok(()))
    }

    /// Tells the sinks of what is gone, and takes in what came after all. Tells how many of the missing ones are right.
    async fn tell(&self, asked: Asked, row: &mut LedgerRow, tally: &mut Tally) -> Result<u64, WalkError> {
        let mut repaired = 0;
        let (dead, alive): (Vec<Arrival>, Vec<Arrival>) =
            asked.came.into_values().partition(|arrival| matches!(&arrival.entry, Ok(Entry::Tombstone(_))));
        for (arrivals, counts) in [(dead, true), (alive, false)] {
            let mut arrivals = arrivals;
            while !arrivals.is_empty() {
                let rest = arrivals.split_off(arrivals.len().min(AT_ONCE));
                let Some(last) = arrivals.iter().filter_map(number_of).next_back() else { break };
                let right = self.absorb(std::mem::replace(&mut arrivals, rest), last, row, tally).await?;
                repaired += if counts { right } else { 0 };
            }
        }
        let gone: Vec<_> = asked.gone.into_iter().collect();
        for part in gone.chunks(AT_ONCE) {
            repaired += self.bury(part.to_vec(), tally).await?;
        }
        Ok(repaired)
    }

    /// Emits a delete for each of `gone` that no other pass has read since the sweep began. Tells how many.
    async fn bury(
        &self,
        gone: Vec<(RecordNumber, (RequestNumber, RequestNumber))>,
        tally: &mut Tally,
    ) -> Result<u64, WalkError> {
        let lane = self.sweeps.lane;
        lane.ready(self.sweeps.cancel).await?;
        let Some(beginning) = self.job.began() else { return Ok(0) };
        // Held while they are read and committed: another pass may have a newer reading of one in hand.
        let _alone = lane.tripwire.lock().await;
        let (stream, mapper, captured) = (lane.stream(), Arc::clone(&lane.mapper), lane.clock.now());
        let work = move |store: &dyn crate::sync::Store| {
            let keys: Vec<RememberedKey> = gone.iter().map(|(number, _)| mapper.key(*number)).collect();
            let numbers: Vec<RecordNumber> = gone.iter().map(|(number, _)| *number).collect();
            let known = store.remembered(&keys)?;
            let links = if stream == Stream::Items { store.links(&numbers)? } else { vec![Vec::new(); numbers.len()] };
            let (mut slice, mut buried) = (Slice::default(), 0);
            for ((((number, (sent, answered)), key), known), links) in gone.into_iter().zip(keys).zip(known).zip(links)
            {
                let Some(known) = known.filter(|known| beginning.is_before(known)) else { continue };
                let RememberedState::Live { filtered, .. } = known.state else { continue };
                // Sinks were told of what lies outside the configured locations, or never had it.
                let emitted = !filtered;
                let state = RememberedState::Tombstone { deleted_on: None, emitted };
                slice.remembered.push((key, Remembered { state, sent, answered, sealed_id: known.sealed_id }));
                buried += 1;
                if !emitted {
                    continue;
                }
                if !links.is_empty() {
                    slice.links.push((number, Vec::new()));
                }
                let id = mapper.public_id(number);
                slice.closes.push((stream, id.clone()));
                slice.changes.push(Change {
                    seq: Seq::ZERO,
                    stream,
                    id,
                    op: Op::Delete { reason: DeleteReason::Vanished, deleted_on: None },
                    updated: None,
                    suppressed: false,
                    captured,
                    source: Origin::Reconcile,
                    payload: Payload::Nothing,
                    unlinked_bib_ids: links,
                    hash: ContentHasher::deletion(stream, DeleteReason::Vanished),
                    only_for: None,
                });
            }
            let last_seq = store.commit(slice)?.last().copied();
            Ok::<_, StoreError>((buried, last_seq))
        };
        let (buried, last_seq) = lane.store.call(work).await?;
        let entries = EntryTally { deleted: buried, ..EntryTally::default() };
        tally.entries += entries;
        if let Some(last_seq) = last_seq {
            lane.ringer.set(last_seq);
        }
        lane.observer.observe(&Event::PageCaptured {
            stream,
            pass: Pass::Reconcile,
            entries,
            changes: buried,
            last_seq,
        });
        Ok(buried)
    }
}
