//! When a walk has come to its end: never by a count that Sierra states, always by "nothing", and not by the first
//! one where a lie would cost records.

use std::time::Duration;

/// Two empty answers that end a full sweep are at least this far apart.
pub const APART: Duration = Duration::from_secs(5);

/// How "nothing" is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rigour {
    /// A window: nothing right after a full page is asked again once, on another connection (BR-054).
    Window,
    /// A full sweep: nothing must be said twice, on different connections and at least [`APART`] apart. A page of
    /// records that were all created since the sweep began says so too: numbers are given in the order of creation, and
    /// what came later belongs to the update pass. Else no sweep would end in a library that adds records all the time.
    Sweep,
}

/// Where a walk stands towards its end.
#[derive(Debug, Clone)]
pub struct Ending {
    rigour: Rigour,
    /// The last page was full, or it is unknown whether it was.
    after_full_page: bool,
    /// The question that was just answered was a repetition.
    is_repeated: bool,
}

/// What to ask next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// For the next page.
    Page,
    /// The same again, on another connection, after a pause.
    Again {
        /// How long to wait first.
        after: Duration,
    },
    /// Nothing more: the end.
    End,
}

impl Ending {
    /// A walk that begins, or goes on from a position: what lay before it is then taken for a full page.
    #[must_use]
    pub fn new(rigour: Rigour, resumed: bool) -> Self {
        Self { rigour, after_full_page: resumed, is_repeated: false }
    }

    /// A page came with `entries` of at most `limit`. `only_later` is whether every one of them is a record created
    /// since the walk began.
    pub fn on_page(&mut self, entries: usize, limit: u32, only_later: bool) -> Next {
        if self.rigour == Rigour::Sweep && only_later {
            return self.on_nothing();
        }
        self.after_full_page = entries >= usize::try_from(limit).unwrap_or(usize::MAX);
        self.is_repeated = false;
        Next::Page
    }

    /// Sierra said that there is nothing.
    pub fn on_nothing(&mut self) -> Next {
        if self.is_repeated {
            return Next::End;
        }
        match self.rigour {
            Rigour::Window if !self.after_full_page => Next::End,
            Rigour::Window => self.again(Duration::ZERO),
            Rigour::Sweep => self.again(APART),
        }
    }

    fn again(&mut self, after: Duration) -> Next {
        self.is_repeated = true;
        Next::Again { after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_on_nothing_after_a_short_page_or_at_once() {
        let mut ending = Ending::new(Rigour::Window, false);
        assert_eq!(ending.on_nothing(), Next::End);
        let mut ending = Ending::new(Rigour::Window, false);
        assert_eq!(ending.on_page(1999, 2000, false), Next::Page);
        assert_eq!(ending.on_nothing(), Next::End);
    }

    /// What is new to a window is what it is for.
    #[test]
    fn a_window_goes_on_after_pages_of_new_records() {
        let mut ending = Ending::new(Rigour::Window, false);
        for _ in 0..3 {
            assert_eq!(ending.on_page(2000, 2000, true), Next::Page);
        }
    }

    /// BR-054: an empty answer in mid-run does not end a window.
    #[test]
    fn nothing_after_a_full_page_is_asked_once_more() {
        let mut ending = Ending::new(Rigour::Window, false);
        ending.on_page(2000, 2000, false);
        assert_eq!(ending.on_nothing(), Next::Again { after: Duration::ZERO });
        assert_eq!(ending.on_page(2000, 2000, false), Next::Page);
        assert_eq!(ending.on_nothing(), Next::Again { after: Duration::ZERO });
        assert_eq!(ending.on_nothing(), Next::End);
    }

    #[test]
    fn a_resumed_window_does_not_trust_its_first_nothing() {
        let mut ending = Ending::new(Rigour::Window, true);
        assert_eq!(ending.on_nothing(), Next::Again { after: Duration::ZERO });
        assert_eq!(ending.on_nothing(), Next::End);
    }

    #[test]
    fn a_sweep_ends_on_two_empty_answers_in_a_row_five_seconds_apart() {
        let mut ending = Ending::new(Rigour::Sweep, false);
        assert_eq!(ending.on_nothing(), Next::Again { after: APART });
        assert_eq!(ending.on_page(3, 2000, false), Next::Page);
        assert_eq!(ending.on_nothing(), Next::Again { after: APART });
        assert_eq!(ending.on_nothing(), Next::End);
    }

    #[test]
    fn a_sweep_ends_although_records_are_added_all_the_time() {
        let mut ending = Ending::new(Rigour::Sweep, false);
        assert_eq!(ending.on_page(2000, 2000, false), Next::Page);
        assert_eq!(ending.on_page(1, 2000, true), Next::Again { after: APART });
        assert_eq!(ending.on_page(5, 2000, true), Next::End);
        let mut ending = Ending::new(Rigour::Sweep, false);
        assert_eq!(ending.on_nothing(), Next::Again { after: APART });
        assert_eq!(ending.on_page(5, 2000, true), Next::End);
    }

    /// BR-054: a lie among them is found out by any record that was there before.
    #[test]
    fn a_sweep_goes_on_at_any_record_that_was_there_before() {
        let mut ending = Ending::new(Rigour::Sweep, true);
        for _ in 0..3 {
            assert_eq!(ending.on_nothing(), Next::Again { after: APART });
            assert_eq!(ending.on_page(2000, 2000, false), Next::Page);
            assert_eq!(ending.on_page(5, 2000, true), Next::Again { after: APART });
            assert_eq!(ending.on_page(1, 2000, false), Next::Page);
        }
        assert_eq!(ending.on_nothing(), Next::Again { after: APART });
        assert_eq!(ending.on_nothing(), Next::End);
    }
}
