//! What must hold whatever happens: the numbered catalogue, and the checks that simulations run after every event.
//!
//! The code that upholds an invariant cites its id, and so does the test that attacks it.

use std::collections::BTreeMap;
use std::fmt;

use super::ledger::coverage::coverage;
use super::{Change, LedgerRow, RowState, Seq};
use crate::record::RecordNumber;

/// The catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// A cursor never goes back.
    Cur1,
    /// A cursor never passes a change that is not in the outbox.
    Cur2,
    /// Windows leave no gap.
    Win1,
    /// Each captured change reaches each sink or the quarantine.
    Out1,
    /// One record's changes arrive in order.
    Out2,
    /// No unmasked patron value reaches disk, log or sink.
    Prv1,
    /// Requests in any window stay within quota.
    Qta1,
    /// A half-open breaker admits one probe.
    Brk1,
}

impl fmt::Display for Invariant {
    /// The id, as comments and tests cite it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Cur1 => "CUR-1",
            Self::Cur2 => "CUR-2",
            Self::Win1 => "WIN-1",
            Self::Out1 => "OUT-1",
            Self::Out2 => "OUT-2",
            Self::Prv1 => "PRV-1",
            Self::Qta1 => "QTA-1",
            Self::Brk1 => "BRK-1",
        })
    }
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant}: {detail}")]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// What was seen. For tests: it may name record numbers.
    pub detail: String,
}

/// CUR-1 and WIN-1 between two looks at one stream's ledger.
///
/// # Errors
/// When a position or the watermark went back, a done row is owed again, or a span is covered by no row any more.
pub fn ledger_moves_on(before: &[LedgerRow], after: &[LedgerRow]) -> Result<(), Violation> {
    let broken = |invariant, detail| Err(Violation { invariant, detail });
    for row in after {
        let Some(earlier) = before.iter().find(|earlier| earlier.id == row.id) else { continue };
        if row.is_owed() && row.position < earlier.position {
            return broken(Invariant::Cur1, format!("row {} went from {:?} to {:?}", row.id, earlier, row));
        }
        if earlier.state == RowState::Done && row.is_owed() {
            return broken(Invariant::Cur1, format!("row {} was done and is owed again: {row:?}", row.id));
        }
    }
    let (earlier, now) = (coverage(before), coverage(after));
    if now.watermark < earlier.watermark {
        let detail = format!("the watermark went from {:?} to {:?}", earlier.watermark, now.watermark);
        return broken(Invariant::Cur1, detail);
    }
    if now.newest_end < earlier.newest_end {
        let detail = format!("the newest window ended at {:?} and now at {:?}", earlier.newest_end, now.newest_end);
        return broken(Invariant::Win1, detail);
    }
    if let Some(hole) = now.holes.first() {
        return broken(Invariant::Win1, format!("no row covers {hole}"));
    }
    Ok(())
}

/// CUR-2 for one page: of the records `served` on it, every one up to `position` must be `known` to the store,
/// remembered or set aside.
///
/// # Errors
/// When one is not.
pub fn position_covers_known(
    served: &[RecordNumber],
    position: Option<RecordNumber>,
    known: impl Fn(RecordNumber) -> bool,
) -> Result<(), Violation> {
    let passed = served.iter().filter(|number| position.is_some_and(|position| **number <= position));
    match passed.copied().find(|number| !known(*number)) {
        Some(number) => Err(Violation {
            invariant: Invariant::Cur2,
            detail: format!("record {number} lies before the position {position:?} and is not known"),
        }),
        None => Ok(()),
    }
}

/// OUT-2 at one sink, delivery by delivery.
#[derive(Debug, Clone, Default)]
pub struct OrderWatch {
    highest: BTreeMap<(crate::record::Stream, String), Seq>,
    delivered: BTreeMap<Seq, String>,
}

impl OrderWatch {
    /// Takes note of a delivered change.
    ///
    /// # Errors
    /// When a change arrives for the first time after a newer one of the same record, or a redelivery does not repeat
    /// its key.
    pub fn delivered(&mut self, change: &Change) -> Result<(), Violation> {
        let broken = |detail| Err(Violation { invariant: Invariant::Out2, detail });
        let key = change.key();
        if let Some(before) = self.delivered.insert(change.seq, key.clone()) {
            return if before == key { Ok(()) } else { broken(format!("{before} was delivered again as {key}")) };
        }
        let highest = self.highest.entry((change.stream, change.id.clone())).or_default();
        if change.seq < *highest {
            return broken(format!("{key} arrives after a change of seq {highest}"));
        }
        *highest = change.seq;
        Ok(())
    }

    /// OUT-1: every seq of `committed` arrived here.
    ///
    /// # Errors
    /// When one did not.
    pub fn holds_all(&self, committed: impl IntoIterator<Item = Seq>) -> Result<(), Violation> {
        match committed.into_iter().find(|seq| !self.delivered.contains_key(seq)) {
            Some(seq) => {
                let detail = format!("the change of seq {seq} was committed and never arrived");
                Err(Violation { invariant: Invariant::Out1, detail })
            }
            None => Ok(()),
        }
    }
}

/// PRV-1: none of the planted `canaries` stands in `text`.
///
/// # Errors
/// When one does.
pub fn holds_no_canary(place: &str, text: &str, canaries: &[String]) -> Result<(), Violation> {
    match canaries.iter().find(|canary| text.contains(canary.as_str())) {
        Some(canary) => Err(Violation { invariant: Invariant::Prv1, detail: format!("{canary} stands in {place}") }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::coverage::tests::{load, row};
    use super::*;
    use crate::record::Stream;
    use crate::sync::{ContentHash, Op, Origin, Payload};
    use RowState::{Done, Failed, Partial};

    fn at(row: LedgerRow, position: u64) -> LedgerRow {
        LedgerRow { position: Some(RecordNumber::new(position)), ..row }
    }

    fn verdict(before: &[LedgerRow], after: &[LedgerRow]) -> Option<Invariant> {
        ledger_moves_on(before, after).err().map(|violation| violation.invariant)
    }

    #[test]
    fn a_ledger_may_only_move_on() {
        let before = [load(Done), at(row(2, 0, 10, Partial), 7)];
        assert_eq!(verdict(&before, &[load(Done), at(row(2, 0, 10, Failed), 9)]), None);
        assert_eq!(verdict(&before, &[load(Done), row(2, 0, 10, Done), row(3, 5, 20, Partial)]), None);
        assert_eq!(verdict(&before, &[load(Done), at(row(2, 0, 10, Partial), 6)]), Some(Invariant::Cur1));
        assert_eq!(verdict(&before, &[load(Partial), at(row(2, 0, 10, Partial), 7)]), Some(Invariant::Cur1));
        assert_eq!(verdict(&before, &[load(Done)]), Some(Invariant::Win1));
        let done = [load(Done), row(2, 0, 10, Done)];
        assert_eq!(verdict(&done, &[load(Done), row(3, 0, 10, Partial)]), Some(Invariant::Cur1));
        assert_eq!(verdict(&done, &[load(Done), row(2, 0, 10, Done), row(3, 12, 20, Done)]), Some(Invariant::Win1));
    }

    #[test]
    fn a_position_may_only_pass_what_is_known() {
        let served: Vec<RecordNumber> = [3, 5, 9].map(RecordNumber::new).to_vec();
        let known = |number: RecordNumber| number.value() != 9;
        assert_eq!(position_covers_known(&served, Some(RecordNumber::new(8)), known), Ok(()));
        assert_eq!(position_covers_known(&served, None, |_| false), Ok(()));
        let broken = position_covers_known(&served, Some(RecordNumber::new(9)), known).expect_err("9 is unknown");
        assert_eq!(broken.invariant.to_string(), "CUR-2");
    }

    fn change(seq: u64, id: &str, hash: u8) -> Change {
        Change {
            seq: Seq::new(seq).expect("a seq"),
            stream: Stream::Bibs,
            id: id.into(),
            op: Op::Upsert,
            updated: None,
            suppressed: false,
            captured: jiff::Timestamp::UNIX_EPOCH,
            source: Origin::Load,
            payload: Payload::Nothing,
            unlinked_bib_ids: Vec::new(),
            hash: ContentHash([hash; 16]),
            only_for: None,
        }
    }

    #[test]
    fn one_records_changes_arrive_in_order_and_repeat_exactly() {
        let mut watch = OrderWatch::default();
        for (seq, id) in [(1, "7"), (2, "8"), (5, "7"), (4, "8"), (1, "7"), (5, "7")] {
            assert_eq!(watch.delivered(&change(seq, id, 1)), Ok(()), "{seq}");
        }
        assert_eq!(watch.delivered(&change(3, "7", 1)).map_err(|violation| violation.invariant), Err(Invariant::Out2));
        assert_eq!(watch.delivered(&change(5, "7", 2)).map_err(|violation| violation.invariant), Err(Invariant::Out2));
        let all = [1, 2, 4, 5].map(|seq| Seq::new(seq).expect("a seq"));
        assert_eq!(watch.holds_all(all), Ok(()));
        let missing = watch.holds_all([Seq::new(6).expect("a seq")]);
        assert_eq!(missing.map_err(|violation| violation.invariant), Err(Invariant::Out1));
    }

    #[test]
    fn canaries_are_found_wherever_they_stand() {
        let canaries = ["canary-17".to_owned()];
        assert_eq!(holds_no_canary("a log", "nothing here", &canaries), Ok(()));
        assert!(holds_no_canary("a log", "name=canary-17!", &canaries).is_err());
    }
}
