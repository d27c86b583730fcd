//! Stops a stream whose entries have turned bad by the dozen: a schema change upstream must not drain a catalogue
//! into the quarantine.

use std::collections::VecDeque;

/// At least so many entries are looked at before a share counts.
const SAMPLE: usize = 100;
/// More than this share of bad entries stops the stream, in percent.
const SHARE_PERCENT: usize = 5;
/// A page of at least so many entries that are all bad stops the stream at once.
const WHOLE_PAGE: usize = 20;

/// Watches the share of bad entries over the last pages. Kept for as long as a stream runs.
#[derive(Debug, Clone, Default)]
pub struct Tripwire {
    pages: VecDeque<Counted>,
}

/// The entries of one page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    entries: usize,
    bad: usize,
}

/// Why the stream stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bad} of the last {entries} entries could not be understood")]
pub struct Tripped {
    /// Bad entries.
    pub bad: usize,
    /// Entries looked at.
    pub entries: usize,
}

impl Tripwire {
    /// Takes note of a page before it is committed.
    ///
    /// # Errors
    /// When more than 5 % of the last 100 or more entries are bad, or every entry of a page of 20 or more. Nothing of
    /// the page may be committed then.
    pub fn check(&mut self, entries: usize, bad: usize) -> Result<(), Tripped> {
        if entries >= WHOLE_PAGE && bad == entries {
            return Err(Tripped { bad, entries });
        }
        self.pages.push_back(Counted { entries, bad });
        let mut sum = self.sum();
        while let Some(oldest) = self.pages.front().copied().filter(|oldest| sum.entries - oldest.entries >= SAMPLE) {
            sum = Counted { entries: sum.entries - oldest.entries, bad: sum.bad - oldest.bad };
            self.pages.pop_front();
        }
        if sum.entries >= SAMPLE && sum.bad * 100 > sum.entries * SHARE_PERCENT {
            return Err(Tripped { bad: sum.bad, entries: sum.entries });
        }
        Ok(())
    }

    fn sum(&self) -> Counted {
        self.pages.iter().fold(Counted::default(), |sum, page| Counted {
            entries: sum.entries + page.entries,
            bad: sum.bad + page.bad,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trips(pages: &[(usize, usize)]) -> Option<Tripped> {
        let mut wire = Tripwire::default();
        pages.iter().find_map(|(entries, bad)| wire.check(*entries, *bad).err())
    }

    /// BR-020: one bad entry in a page of 500 stops nothing.
    #[test]
    fn a_few_bad_entries_are_tolerated() {
        for pages in [&[(500, 1)][..], &[(100, 5)], &[(99, 98)], &[(19, 19)], &[(2000, 100), (2000, 100)]] {
            assert_eq!(trips(pages), None, "{pages:?}");
        }
    }

    #[test]
    fn more_than_one_in_twenty_of_a_hundred_or_more_stops() {
        assert_eq!(trips(&[(100, 6)]), Some(Tripped { bad: 6, entries: 100 }));
        assert_eq!(trips(&[(50, 3), (50, 3)]), Some(Tripped { bad: 6, entries: 100 }));
        assert_eq!(trips(&[(2000, 101)]), Some(Tripped { bad: 101, entries: 2000 }));
    }

    #[test]
    fn a_whole_page_of_twenty_or_more_stops_at_once() {
        assert_eq!(trips(&[(2000, 0), (20, 20)]), Some(Tripped { bad: 20, entries: 20 }));
    }

    #[test]
    fn long_past_pages_do_not_dilute_what_happens_now() {
        let mut pages = vec![(2000, 0); 50];
        pages.extend([(60, 10), (60, 10)]);
        assert_eq!(trips(&pages), Some(Tripped { bad: 20, entries: 120 }));
    }
}
