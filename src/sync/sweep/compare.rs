//! Whether one record of a sweep has drifted from what is remembered of it: pure.
//!
//! A difference is drift only if no window is going to show it: the record's stamp lies before the watermark at which
//! the sweep began, and what is remembered was read before the sweep began, too. All else is an edit in flight.

use jiff::Timestamp;

use crate::record::{Live, RecordNumber};
use crate::sync::decide::Seen;
use crate::sync::remembered::RememberedState;
use crate::sync::{Remembered, RequestNumber};

/// When a sweep began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beginning {
    /// The stream's watermark then.
    pub(super) watermark: Timestamp,
    /// The number of its first request.
    pub(super) request: RequestNumber,
}

/// What every sweep reads of a live record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    updated: Option<Timestamp>,
    suppressed: bool,
    /// For items: the bibs that it hangs from.
    bib_ids: Option<Vec<RecordNumber>>,
}

impl Identity {
    pub(super) fn of(live: &Live) -> Self {
        let bib_ids = match live {
            Live::Item(item) => Some(item.bib_ids.clone()),
            Live::Bib(_) | Live::Patron(_) => None,
        };
        Self { updated: live.updated(), suppressed: live.suppressed(), bib_ids }
    }
}

impl Beginning {
    /// Whether what is remembered was read before the sweep began.
    pub(super) fn is_before(self, known: &Remembered) -> bool {
        known.answered < self.request
    }

    /// Whether the live record of a sweep has drifted. `whole` is what was seen of it where whole records are read;
    /// `links` are the bibs that an item is remembered to hang from.
    pub(super) fn has_drifted(
        self,
        read: &Identity,
        whole: Option<&Seen>,
        known: Option<&Remembered>,
        links: &[RecordNumber],
    ) -> bool {
        let is_in_flight = read.updated.is_some_and(|at| at >= self.watermark);
        if is_in_flight || known.is_some_and(|known| !self.is_before(known)) {
            return false;
        }
        let Some(known) = known else { return true };
        let RememberedState::Live { updated, hash, suppressed, filtered } = known.state else { return true };
        if updated != read.updated || suppressed != read.suppressed {
            return true;
        }
        // What lies outside the configured locations has no links here, and its content is nobody's.
        if !filtered && read.bib_ids.as_ref().is_some_and(|bib_ids| in_order(bib_ids) != in_order(links)) {
            return true;
        }
        match whole {
            Some(Seen::Live { hash: read, in_scope, .. }) => filtered == *in_scope || (!filtered && *read != hash),
            Some(Seen::Tombstone { .. }) | None => false,
        }
    }
}

fn in_order(numbers: &[RecordNumber]) -> Vec<RecordNumber> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::ContentHash;

    const BEGINNING: Beginning = Beginning { watermark: Timestamp::UNIX_EPOCH, request: RequestNumber(100) };

    /// So many seconds before the watermark.
    fn before(seconds: i64) -> Option<Timestamp> {
        Timestamp::from_second(-seconds).ok()
    }

    fn bib(updated: Option<Timestamp>, suppressed: bool) -> Identity {
        Identity { updated, suppressed, bib_ids: None }
    }

    fn item(bib_ids: &[u64]) -> Identity {
        let bib_ids = Some(bib_ids.iter().copied().map(RecordNumber::new).collect());
        Identity { updated: before(50), suppressed: false, bib_ids }
    }

    fn known(updated: Option<Timestamp>, answered: u64) -> Remembered {
        let hash = ContentHash([1; 16]);
        let state = RememberedState::Live { updated, hash, suppressed: false, filtered: false };
        let (sent, answered) = (RequestNumber(answered - 1), RequestNumber(answered));
        Remembered { state, sent, answered, sealed_id: Vec::new() }
    }

    fn drifts(read: &Identity, known: Option<&Remembered>) -> bool {
        BEGINNING.has_drifted(read, None, known, &[])
    }

    #[test]
    fn another_stamp_or_suppression_before_the_watermark_is_drift() {
        let known = known(before(50), 90);
        assert!(!drifts(&bib(before(50), false), Some(&known)));
        assert!(drifts(&bib(before(50), true), Some(&known)), "suppressed silently");
        assert!(drifts(&bib(before(9), false), Some(&known)), "became visible late");
        assert!(drifts(&bib(before(5000), false), Some(&known)), "back-dated");
        assert!(drifts(&bib(before(5000), false), None), "loaded with an old stamp");
        assert!(drifts(&bib(None, true), Some(&known)) && drifts(&bib(None, false), None));
    }

    /// Edits in flight are not drift: a window is going to show them.
    #[test]
    fn what_a_window_will_show_or_has_shown_meanwhile_is_no_drift() {
        let old = known(before(50), 90);
        assert!(!drifts(&bib(Some(Timestamp::UNIX_EPOCH), true), Some(&old)), "stamped after the watermark");
        assert!(!drifts(&bib(Some(Timestamp::UNIX_EPOCH), false), None));
        let fresh = known(before(50), 101);
        assert!(!drifts(&bib(before(60), true), Some(&fresh)), "read by another pass since the sweep began");
    }

    #[test]
    fn a_record_that_is_remembered_as_deleted_and_lives_is_drift() {
        let state = RememberedState::Tombstone { deleted_on: None, emitted: true };
        let dead = Remembered { state, ..known(None, 90) };
        assert!(drifts(&bib(before(50), false), Some(&dead)));
        assert!(!drifts(&bib(before(50), false), Some(&Remembered { answered: RequestNumber(101), ..dead })));
    }

    #[test]
    fn an_item_that_moved_is_drift_whatever_the_order_of_its_links() {
        let known = known(before(50), 90);
        let links = [RecordNumber::new(3), RecordNumber::new(1)];
        assert!(!BEGINNING.has_drifted(&item(&[1, 3]), None, Some(&known), &links));
        assert!(BEGINNING.has_drifted(&item(&[1]), None, Some(&known), &links));
        let state = RememberedState::Live {
            updated: before(50),
            hash: ContentHash([1; 16]),
            suppressed: false,
            filtered: true,
        };
        let elsewhere = Remembered { state, ..known };
        assert!(!BEGINNING.has_drifted(&item(&[1]), None, Some(&elsewhere), &[]), "elsewhere it has none");
    }

    #[test]
    fn only_whole_records_show_edits_without_a_stamp() {
        let known = known(before(50), 90);
        let seen = |byte, in_scope| Seen::Live {
            updated: before(50),
            hash: ContentHash([byte; 16]),
            suppressed: false,
            in_scope,
        };
        let deep = |seen: Seen| BEGINNING.has_drifted(&bib(before(50), false), Some(&seen), Some(&known), &[]);
        assert!(!deep(seen(1, true)) && deep(seen(2, true)) && deep(seen(1, false)));
    }
}
