//! Cutting a backfill into ranges, by what the store knows of the stream.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::order::{Numbers, Selection, Via};
use crate::record::{RecordNumber, Stream};
use crate::sync::capture::Lane;
use crate::sync::remembered::RememberedState;
use crate::sync::{RememberedKey, StoreError, Window};

/// Pages in a range, about: each range takes one call more than its pages, to hear that there is nothing behind them.
const PAGES: u64 = 25;
/// Remembered records read from the store at once.
const READ: usize = 2000;
/// Numbers that one call of an explicit list asks for.
pub(super) const LIST: u64 = 200;

/// One range of numbers and what is known to lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The first number.
    pub from: RecordNumber,
    /// The last number; open when absent.
    pub to: Option<RecordNumber>,
    /// The first and the last number that the store knows in it: where its records will probably lie.
    #[serde(default)]
    pub known: Option<(RecordNumber, RecordNumber)>,
    /// Records in it, as far as the store knows.
    pub records: u64,
    /// Calls that these take.
    pub calls: u64,
}

/// What a backfill would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Its ranges, in order.
    pub cuts: Vec<Cut>,
    /// Whether the records are known that it will read.
    pub is_measured: bool,
    /// The numbers that are known alive, where they cannot be read range by range: those of patrons.
    pub(super) held: Option<Arc<[RecordNumber]>>,
}

impl Plan {
    /// Calls in all.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.cuts.iter().map(|cut| cut.calls).sum()
    }

    /// Records in all, as far as they are known.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.cuts.iter().map(|cut| cut.records).sum()
    }
}

impl Lane {
    /// Cuts `selection` into ranges.
    ///
    /// # Errors
    /// On any storage error.
    pub(in crate::sync) async fn cut(
        &self,
        selection: &Selection,
        via: Via,
        now: Timestamp,
    ) -> Result<Plan, StoreError> {
        let page_size = u64::from(self.settings.page_size.max(1));
        if let Numbers::List(list) = &selection.numbers {
            return Ok(Plan { cuts: cut_list(list, page_size), is_measured: true, held: None });
        }
        let (first, last) = selection.bounds();
        let calls_per_page = match via {
            Via::List => 1,
            // With the three phases of an export.
            Via::MarcExport => 4,
        };
        let first_number = first.unwrap_or(RecordNumber::new(1));
        let mut cutter = Cutter { calls_per_page, ..Cutter::new(first_number, page_size, page_size * PAGES) };
        let window = selection.window(now);
        let held = if self.stream() == Stream::Patrons {
            let held = self.held_numbers(selection, window).await?;
            held.iter().for_each(|number| cutter.take(*number));
            Some(held)
        } else {
            let mapper = Arc::clone(&self.mapper);
            let (stream, start) = (self.stream(), first.and_then(before).map(|before| mapper.key(before)));
            let end = last.map(|last| mapper.key(last));
            cutter = self
                .store
                .call(move |store| {
                    let (mut cutter, mut start) = (cutter, start);
                    loop {
                        let read = store.remembered_after(stream, start.as_ref(), READ)?;
                        let is_last = read.len() < READ;
                        for (key, remembered) in read {
                            if end.as_ref().is_some_and(|end| key > *end) {
                                return Ok::<_, StoreError>(cutter);
                            }
                            if let (RememberedKey::Bib(number) | RememberedKey::Item(number), true) =
                                (&key, is_meant(remembered.state, window))
                            {
                                cutter.take(*number);
                            }
                            start = Some(key);
                        }
                        if is_last {
                            return Ok(cutter);
                        }
                    }
                })
                .await?;
            None
        };
        let cuts = cutter.finish(last);
        let is_measured = cuts.iter().any(|cut| cut.records > 0);
        Ok(Plan { cuts, is_measured, held })
    }

    /// The numbers of patrons that are known alive, in order.
    pub(in crate::sync) async fn held_numbers(
        &self,
        selection: &Selection,
        window: Option<Window>,
    ) -> Result<Arc<[RecordNumber]>, StoreError> {
        let (mapper, stream, selection) = (Arc::clone(&self.mapper), self.stream(), selection.clone());
        self.store
            .call(move |store| {
                let (mut numbers, mut start) = (Vec::new(), None);
                loop {
                    let read = store.remembered_after(stream, start.as_ref(), READ)?;
                    let is_last = read.len() < READ;
                    for (key, remembered) in read {
                        if is_meant(remembered.state, window) {
                            let number = mapper.number(&key, &remembered.sealed_id);
                            numbers.extend(number.filter(|number| selection.has(*number)));
                        }
                        start = Some(key);
                    }
                    if is_last {
                        numbers.sort_unstable();
                        return Ok(Arc::from(numbers));
                    }
                }
            })
            .await
    }
}

fn is_meant(state: RememberedState, window: Option<Window>) -> bool {
    match (state, window) {
        (RememberedState::Tombstone { .. }, _) => false,
        (RememberedState::Live { .. }, None) => true,
        (RememberedState::Live { updated, .. }, Some(window)) => {
            updated.is_some_and(|updated| window.start() <= updated && updated < window.end())
        }
    }
}

fn before(number: RecordNumber) -> Option<RecordNumber> {
    number.value().checked_sub(1).map(RecordNumber::new)
}

/// Makes ranges of numbers that come in order.
struct Cutter {
    page_size: u64,
    calls_per_page: u64,
    most: u64,
    from: RecordNumber,
    records: u64,
    known: Option<(RecordNumber, RecordNumber)>,
    cuts: Vec<Cut>,
}

impl Cutter {
    fn new(from: RecordNumber, page_size: u64, most: u64) -> Self {
        Self { page_size, calls_per_page: 1, most, from, records: 0, known: None, cuts: Vec::new() }
    }

    fn take(&mut self, number: RecordNumber) {
        if self.records >= self.most {
            self.close(before(number));
            self.from = number;
            self.records = 0;
        }
        self.records += 1;
        self.known = Some((self.known.map_or(number, |(first, _)| first), number));
    }

    fn close(&mut self, to: Option<RecordNumber>) {
        // One call to hear that nothing follows; behind an open end nothing is believed only the second time.
        let last_words = if to.is_some() { 1 } else { 2 };
        let calls = self.records.div_ceil(self.page_size) * self.calls_per_page + last_words;
        self.cuts.push(Cut { from: self.from, to, known: self.known.take(), records: self.records, calls });
    }

    fn finish(mut self, to: Option<RecordNumber>) -> Vec<Cut> {
        self.close(to);
        self.cuts
    }
}

fn cut_list(list: &[RecordNumber], page_size: u64) -> Vec<Cut> {
    let each = LIST.min(page_size);
    let most = usize::try_from(each * 10).unwrap_or(usize::MAX);
    let cut = |part: &[RecordNumber]| {
        let (from, to) = (*part.first()?, part.last().copied());
        let records = u64::try_from(part.len()).unwrap_or(u64::MAX);
        Some(Cut { from, to, known: None, records, calls: records.div_ceil(each) })
    };
    list.chunks(most).filter_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> RecordNumber {
        RecordNumber::new(value)
    }

    fn cut(from: u64, to: Option<u64>, records: u64, calls: u64) -> Cut {
        Cut { from: number(from), to: to.map(number), known: None, records, calls }
    }

    #[test]
    fn ranges_touch_and_hold_about_as_many_records_each() {
        let mut cutter = Cutter::new(number(1), 2, 4);
        (10..20).step_by(1).for_each(|value| cutter.take(number(value)));
        let cuts = cutter.finish(None);
        let knowing = |first, last, cut: Cut| Cut { known: Some((number(first), number(last))), ..cut };
        let expected = [
            knowing(10, 13, cut(1, Some(13), 4, 3)),
            knowing(14, 17, cut(14, Some(17), 4, 3)),
            knowing(18, 19, cut(18, None, 2, 3)),
        ];
        assert_eq!(cuts, expected);
    }

    #[test]
    fn nothing_known_is_one_range() {
        assert_eq!(Cutter::new(number(5), 2000, 50_000).finish(Some(number(9))), [cut(5, Some(9), 0, 1)]);
        assert_eq!(Cutter::new(number(1), 2000, 50_000).finish(None), [cut(1, None, 0, 2)]);
    }

    #[test]
    fn lists_are_cut_by_their_length() {
        let list: Vec<RecordNumber> = (1..=25).map(|value| number(value * 7)).collect();
        let cuts = cut_list(&list, 2);
        assert_eq!(cuts, [cut(7, Some(140), 20, 10), cut(147, Some(175), 5, 3)]);
    }
}
