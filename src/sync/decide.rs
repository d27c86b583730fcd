//! Order and sameness: what one reading of a record means, given what is remembered of it.
//!
//! Pure: no storage, no time, no configuration beyond [`Rules`]. Everything that decides whether a change is emitted
//! is in this file; what a change looks like is not.
//!
//! Two readings of a record are ordered by three facts only (design §7.4):
//! - live against live, `updatedDate` decides, and if it is equal, unknown or in doubt since Sierra's clock was set back,
//!   the request that was sent later;
//! - against a tombstone `updatedDate` says nothing, since Sierra does not move it on deletion and a tombstone has no
//!   time of day: a live reading wins only if its request was *sent* after the tombstone's *answer* was complete;
//! - tombstone against tombstone there is nothing to decide.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::sync::clock_guard::Doubt;
use crate::sync::remembered::RememberedState;
use crate::sync::{ContentHash, DeleteReason, Remembered, RequestNumber};

/// One reading of one record: what a request saw, and when it was on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When the request was sent.
    pub sent: RequestNumber,
    /// When its answer was complete.
    pub answered: RequestNumber,
    /// What it saw.
    pub seen: Seen,
}

/// What a reading saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A live record.
    Live {
        /// Its `updatedDate`; Sierra may omit it.
        updated: Option<Timestamp>,
        /// Its content, suppression and links included.
        hash: ContentHash,
        /// Its suppression.
        suppressed: bool,
        /// Whether it lies inside the configured locations.
        in_scope: bool,
    },
    /// A tombstone.
    Tombstone {
        /// The local day of the deletion, when Sierra said it.
        deleted_on: Option<Date>,
    },
}

/// What the pass that made the reading asks for beyond the ordinary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Emit a live record although its content is the same: `emit_unchanged`, `--force`, reloads.
    pub emit_unchanged: bool,
    /// Emit deletes of ids that were never seen: a rebuild, where the sinks may hold what the store forgot.
    pub emit_unseen_deletes: bool,
    /// The reading is one of two agreeing answers to an explicit id list, ≥ 5 s apart on different connections: it may
    /// lower `updated` if it was sent after the stored reading's answer.
    pub confirmed_by_list: bool,
    /// Sierra's clock was set back: what is remembered under such a stamp is older than whatever was asked for later.
    pub doubt: Option<Doubt>,
}

impl Rules {
    /// Those of a rebuild: the sinks may hold what the store forgot, so nothing counts as known to them. What is live
    /// is emitted, and what is deleted or out of scope is emitted as a delete, seen before or not.
    pub const REBUILD: Self =
        Self { emit_unchanged: true, emit_unseen_deletes: true, confirmed_by_list: false, doubt: None };

    fn nothing_is_known(self) -> bool {
        self.emit_unchanged && self.emit_unseen_deletes
    }
}

/// What to do about a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Emit an upsert.
    Upsert,
    /// Emit a delete.
    Delete(DeleteReason),
    /// Nothing new for any sink.
    Unchanged,
    /// An older reading than the one remembered: nothing of it counts.
    Stale,
    /// A tombstone of a record that no sink was ever given: counted and not emitted.
    DeletedUnseen,
}

/// A verdict and what is remembered from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// The state and request numbers to remember; `None` leaves what is remembered as it is.
    pub remember: Option<(RememberedState, RequestNumber, RequestNumber)>,
    /// An upsert that says nothing new and is emitted only because [`Rules::emit_unchanged`] asks for it. Whoever loads
    /// one sink tells that sink alone of it, and everybody of all else.
    pub is_forced: bool,
}

/// Decides what `reading` means, given what is `remembered` of its record.
#[must_use]
pub fn decide(remembered: Option<&Remembered>, reading: &Reading, rules: Rules) -> Decision {
    if let Some(known) = remembered.filter(|known| is_stale(known, reading, rules)) {
        // Another pass read the same version while this reading was on its way, and may not have emitted it: saying it
        // again is what was asked for, and there is nothing older in it.
        let is_forced = rules.emit_unchanged && is_the_same_version(known, reading);
        let verdict = if is_forced { Verdict::Upsert } else { Verdict::Stale };
        return Decision { verdict, remember: None, is_forced };
    }
    let known = remembered.map(|known| known.state);
    match reading.seen {
        Seen::Live { updated, hash, suppressed, in_scope } => {
            let state = RememberedState::Live { updated, hash, suppressed, filtered: !in_scope };
            let verdict = if in_scope { live(known, hash, rules) } else { out_of_scope(known, rules) };
            let is_forced = verdict == Verdict::Upsert && live(known, hash, Rules::default()) == Verdict::Unchanged;
            Decision { verdict, remember: Some((state, reading.sent, reading.answered)), is_forced }
        }
        Seen::Tombstone { deleted_on } => {
            let verdict = tombstone(known, rules);
            let emitted = match (verdict, known) {
                (Verdict::Delete(_), _) => true,
                (_, Some(RememberedState::Tombstone { emitted, .. })) => emitted,
                _ => false,
            };
            // A tombstone that is read again keeps the later answer: a live reading must be newer than every sight
            // of the tombstone, not only than the first.
            let (sent, answered) = match (known, remembered) {
                (Some(RememberedState::Tombstone { .. }), Some(known)) => {
                    (known.sent.max(reading.sent), known.answered.max(reading.answered))
                }
                _ => (reading.sent, reading.answered),
            };
            let state = RememberedState::Tombstone { deleted_on, emitted };
            Decision { verdict, remember: Some((state, sent, answered)), is_forced: false }
        }
    }
}

/// Whether a stale reading holds what is remembered, stamp and content, and was only sent earlier.
fn is_the_same_version(known: &Remembered, reading: &Reading) -> bool {
    match (known.state, reading.seen) {
        (
            RememberedState::Live { updated: stored, hash: known, filtered: false, .. },
            Seen::Live { updated: read, hash, in_scope: true, .. },
        ) => stored == read && known == hash,
        _ => false,
    }
}

fn is_stale(known: &Remembered, reading: &Reading, rules: Rules) -> bool {
    match (known.state, reading.seen) {
        (RememberedState::Live { updated: stored, .. }, Seen::Live { updated: read, .. }) => {
            if rules.confirmed_by_list && reading.sent > known.answered {
                return false;
            }
            let is_in_doubt = |stamp: Timestamp| rules.doubt.is_some_and(|doubt| doubt.covers(stamp));
            match (stored, read) {
                (Some(stored), Some(read)) if stored != read && !is_in_doubt(stored) => read < stored,
                _ => reading.sent <= known.sent,
            }
        }
        (RememberedState::Tombstone { .. }, Seen::Live { .. }) => reading.sent <= known.answered,
        (RememberedState::Live { .. }, Seen::Tombstone { .. }) => known.sent > reading.answered,
        (RememberedState::Tombstone { .. }, Seen::Tombstone { .. }) => false,
    }
}

fn live(known: Option<RememberedState>, hash: ContentHash, rules: Rules) -> Verdict {
    match known {
        Some(RememberedState::Live { hash: stored, filtered: false, .. })
            if stored == hash && !rules.emit_unchanged =>
        {
            Verdict::Unchanged
        }
        _ => Verdict::Upsert,
    }
}

fn out_of_scope(known: Option<RememberedState>, rules: Rules) -> Verdict {
    match known {
        _ if rules.nothing_is_known() => Verdict::Delete(DeleteReason::Filtered),
        Some(RememberedState::Live { filtered: false, .. }) => Verdict::Delete(DeleteReason::Filtered),
        _ => Verdict::Unchanged,
    }
}

fn tombstone(known: Option<RememberedState>, rules: Rules) -> Verdict {
    match known {
        Some(RememberedState::Live { filtered: false, .. }) => Verdict::Delete(DeleteReason::Deleted),
        Some(RememberedState::Tombstone { emitted: true, .. }) if !rules.nothing_is_known() => Verdict::Unchanged,
        Some(RememberedState::Tombstone { emitted: false, .. }) if !rules.emit_unseen_deletes => Verdict::Unchanged,
        _ if rules.emit_unseen_deletes => Verdict::Delete(DeleteReason::Deleted),
        _ => Verdict::DeletedUnseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "2024-03-09T02:14:06Z";
    const SAME: &str = "2024-03-09T02:14:07Z";
    const NEW: &str = "2024-03-09T02:14:08Z";

    fn hash(byte: u8) -> ContentHash {
        ContentHash([byte; 16])
    }

    fn live_seen(updated: Option<&str>, content: u8) -> Seen {
        let updated = updated.map(|text| text.parse().expect("a timestamp"));
        Seen::Live { updated, hash: hash(content), suppressed: false, in_scope: true }
    }

    fn outside(updated: &str) -> Seen {
        let updated = Some(updated.parse().expect("a timestamp"));
        Seen::Live { updated, hash: hash(1), suppressed: false, in_scope: false }
    }

    fn gone() -> Seen {
        Seen::Tombstone { deleted_on: Some(jiff::civil::date(2024, 3, 9)) }
    }

    fn read(sent: u64, answered: u64, seen: Seen) -> Reading {
        Reading { sent: RequestNumber(sent), answered: RequestNumber(answered), seen }
    }

    /// Applies readings in turn, as capture does, and tells each verdict.
    fn replay(rules: Rules, readings: &[Reading]) -> (Vec<Verdict>, Option<Remembered>) {
        let mut known: Option<Remembered> = None;
        let mut verdicts = Vec::new();
        for reading in readings {
            let decision = decide(known.as_ref(), reading, rules);
            verdicts.push(decision.verdict);
            if let Some((state, sent, answered)) = decision.remember {
                known = Some(Remembered { state, sent, answered, sealed_id: Vec::new() });
            }
        }
        (verdicts, known)
    }

    fn verdicts(readings: &[Reading]) -> Vec<Verdict> {
        replay(Rules::default(), readings).0
    }

    const DELETED: Verdict = Verdict::Delete(DeleteReason::Deleted);

    #[test]
    fn live_against_live_is_ordered_by_stamp_and_then_by_sending() {
        let stored = read(10, 11, live_seen(Some(SAME), 1));
        // (sent, answered, stamp, content) → verdict
        let table = [
            (20, 21, Some(NEW), 2, Verdict::Upsert),
            (5, 12, Some(NEW), 2, Verdict::Upsert), // sent earlier, but the stamp is newer
            (20, 21, Some(NEW), 1, Verdict::Unchanged),
            (20, 21, Some(OLD), 2, Verdict::Stale),
            (20, 21, Some(SAME), 2, Verdict::Upsert),
            (20, 21, Some(SAME), 1, Verdict::Unchanged),
            (5, 12, Some(SAME), 2, Verdict::Stale),
            (20, 21, None, 2, Verdict::Upsert),
            (5, 12, None, 2, Verdict::Stale),
        ];
        for (sent, answered, updated, content, expected) in table {
            let incoming = read(sent, answered, live_seen(updated, content));
            assert_eq!(verdicts(&[stored, incoming])[1], expected, "{sent} {updated:?} {content}");
        }
    }

    #[test]
    fn a_bump_without_new_content_is_remembered_and_not_emitted() {
        let bump = read(20, 21, live_seen(Some(NEW), 1));
        let (verdicts, known) = replay(Rules::default(), &[read(10, 11, live_seen(Some(SAME), 1)), bump]);
        assert_eq!(verdicts, [Verdict::Upsert, Verdict::Unchanged]);
        let known = known.expect("remembered");
        assert_eq!((known.sent, known.answered), (RequestNumber(20), RequestNumber(21)));
        assert!(
            matches!(known.state, RememberedState::Live { updated: Some(at), .. } if at == NEW.parse().expect("a time"))
        );
    }

    /// BR-010: edit and delete on one day, in both orders and twice; and a reading that began before the tombstone
    /// was seen cannot raise the dead, whatever its stamp.
    #[test]
    fn a_tombstone_beats_every_live_reading_not_sent_after_its_answer() {
        let edit = read(10, 11, live_seen(Some(NEW), 1));
        let delete = read(12, 13, gone());
        assert_eq!(verdicts(&[edit, delete]), [Verdict::Upsert, DELETED]);
        assert_eq!(verdicts(&[delete, edit]), [Verdict::DeletedUnseen, Verdict::Stale]);
        assert_eq!(verdicts(&[edit, delete, edit, delete])[2..], [Verdict::Stale, Verdict::Unchanged]);
        assert_eq!(verdicts(&[delete, edit, delete, edit])[2..], [Verdict::Unchanged, Verdict::Stale]);
        // Overlapping in time: sent after the tombstone's request, but before its answer.
        let overlapping = read(12, 20, live_seen(Some(NEW), 2));
        let slow_delete = read(11, 15, gone());
        assert_eq!(verdicts(&[edit, slow_delete, overlapping]), [Verdict::Upsert, DELETED, Verdict::Stale]);
        assert_eq!(verdicts(&[edit, overlapping, slow_delete]), [Verdict::Upsert, Verdict::Upsert, DELETED]);
    }

    /// BR-010: a later reappearance is live again, in both arrival orders.
    #[test]
    fn a_live_reading_sent_after_the_tombstones_answer_wins_in_both_orders() {
        let first = read(1, 2, live_seen(Some(OLD), 1));
        let delete = read(3, 4, gone());
        let again = read(5, 6, live_seen(Some(OLD), 1));
        assert_eq!(verdicts(&[first, delete, again]), [Verdict::Upsert, DELETED, Verdict::Upsert]);
        assert_eq!(verdicts(&[first, again, delete]), [Verdict::Upsert, Verdict::Unchanged, Verdict::Stale]);
    }

    #[test]
    fn a_tombstone_read_again_must_be_outlived_anew() {
        let readings = [
            read(1, 2, live_seen(Some(OLD), 1)),
            read(3, 4, gone()),
            read(7, 8, gone()),
            read(5, 9, live_seen(Some(NEW), 2)),
        ];
        assert_eq!(verdicts(&readings)[2..], [Verdict::Unchanged, Verdict::Stale]);
    }

    /// BR-051, BR-052: deletes of ids never seen are counted and not emitted, except in a rebuild.
    #[test]
    fn tombstones_of_unseen_ids_are_emitted_in_a_rebuild_only() {
        let delete = [read(1, 2, gone()), read(3, 4, gone())];
        assert_eq!(verdicts(&delete), [Verdict::DeletedUnseen, Verdict::Unchanged]);
        let rebuild = Rules { emit_unseen_deletes: true, ..Rules::default() };
        assert_eq!(replay(rebuild, &delete).0, [DELETED, Verdict::Unchanged]);
        let (_, known) = replay(Rules::default(), &delete[..1]);
        assert_eq!(decide(known.as_ref(), &delete[1], rebuild).verdict, DELETED);
    }

    /// A sink may hold a record that the store saw deleted, or leave the locations, before the backup it was restored
    /// from, and that came back and went again since.
    #[test]
    fn a_rebuild_emits_again_what_was_emitted_before() {
        let gone_again = [read(1, 2, live_seen(Some(OLD), 1)), read(3, 4, gone()), read(5, 6, gone())];
        let (_, known) = replay(Rules::default(), &gone_again[..2]);
        assert_eq!(decide(known.as_ref(), &gone_again[2], Rules::REBUILD).verdict, DELETED);
        let left = [read(1, 2, outside(OLD)), read(3, 4, outside(OLD))];
        let (_, known) = replay(Rules::default(), &left[..1]);
        let filtered = Verdict::Delete(DeleteReason::Filtered);
        assert_eq!(decide(known.as_ref(), &left[1], Rules::REBUILD).verdict, filtered);
        assert_eq!(decide(None, &left[1], Rules::REBUILD).verdict, filtered);
        let same = [read(1, 2, live_seen(Some(OLD), 1)), read(3, 4, live_seen(Some(OLD), 1))];
        assert_eq!(replay(Rules::REBUILD, &same).0, [Verdict::Upsert, Verdict::Upsert]);
    }

    #[test]
    fn leaving_and_re_entering_the_locations_is_a_delete_and_an_upsert() {
        let filtered = Verdict::Delete(DeleteReason::Filtered);
        let readings = [
            read(1, 2, live_seen(Some(OLD), 1)),
            read(3, 4, outside(SAME)),
            read(5, 6, outside(NEW)),
            read(7, 8, live_seen(Some(NEW), 1)),
        ];
        assert_eq!(verdicts(&readings), [Verdict::Upsert, filtered, Verdict::Unchanged, Verdict::Upsert]);
        // Never inside: no sink ever hears of it, not even when it is deleted.
        assert_eq!(
            verdicts(&[read(1, 2, outside(SAME)), read(3, 4, gone())]),
            [Verdict::Unchanged, Verdict::DeletedUnseen]
        );
        assert_eq!(verdicts(&[readings[0], read(2, 3, gone()), read(4, 5, outside(NEW))])[2], Verdict::Unchanged);
    }

    #[test]
    fn force_emits_the_same_content_but_never_an_older_reading() {
        let force = Rules { emit_unchanged: true, ..Rules::default() };
        let stored = read(10, 11, live_seen(Some(SAME), 1));
        assert_eq!(replay(force, &[stored, read(20, 21, live_seen(Some(SAME), 1))]).0[1], Verdict::Upsert);
        assert_eq!(replay(force, &[stored, read(20, 21, live_seen(Some(OLD), 1))]).0[1], Verdict::Stale);
    }

    /// A reload beside the live stream: whoever reads second emits nothing, so whoever reads first must.
    #[test]
    fn force_emits_a_version_that_another_pass_read_meanwhile() {
        let force = Rules { emit_unchanged: true, ..Rules::default() };
        let known = replay(Rules::default(), &[read(10, 11, live_seen(Some(SAME), 1))]).1.expect("remembered");
        let judge = |seen: Seen, rules: Rules| decide(Some(&known), &read(5, 12, seen), rules);
        let again = judge(live_seen(Some(SAME), 1), force);
        assert_eq!((again.verdict, again.remember, again.is_forced), (Verdict::Upsert, None, true));
        assert_eq!(judge(live_seen(Some(SAME), 1), Rules::default()).verdict, Verdict::Stale);
        assert_eq!(judge(live_seen(Some(SAME), 2), force).verdict, Verdict::Stale);
        assert_eq!(judge(live_seen(Some(OLD), 1), force).verdict, Verdict::Stale);
    }

    #[test]
    fn only_what_says_nothing_new_is_forced() {
        let force = Rules { emit_unchanged: true, ..Rules::default() };
        let known = replay(Rules::default(), &[read(10, 11, live_seen(Some(SAME), 1))]).1.expect("remembered");
        let is_forced =
            |remembered: Option<&Remembered>, seen: Seen| decide(remembered, &read(20, 21, seen), force).is_forced;
        assert!(is_forced(Some(&known), live_seen(Some(NEW), 1)));
        assert!(!is_forced(Some(&known), live_seen(Some(NEW), 2)));
        assert!(!is_forced(Some(&known), gone()));
        assert!(!is_forced(None, live_seen(Some(NEW), 1)));
    }

    #[test]
    fn only_a_confirmed_list_reading_sent_after_the_stored_answer_lowers_the_stamp() {
        let confirmed = Rules { confirmed_by_list: true, ..Rules::default() };
        let stored = read(10, 15, live_seen(Some(SAME), 1));
        assert_eq!(replay(confirmed, &[stored, read(16, 17, live_seen(Some(OLD), 2))]).0[1], Verdict::Upsert);
        assert_eq!(replay(confirmed, &[stored, read(12, 17, live_seen(Some(OLD), 2))]).0[1], Verdict::Stale);
        // Against a tombstone it has no privilege.
        let delete = read(10, 15, gone());
        assert_eq!(replay(confirmed, &[delete, read(12, 17, live_seen(Some(OLD), 2))]).0[1], Verdict::Stale);
    }

    proptest::proptest! {
        /// Two readings whose requests did not overlap, one of them a tombstone, end in the same state whichever is
        /// processed first: the later one's.
        #[test]
        fn arrival_order_does_not_matter_between_life_and_death(gap in 0_u64..5, first in 0_u64..5, live_first: bool) {
            let earlier = (10, 10 + first);
            let later = (earlier.1 + gap + 1, earlier.1 + gap + 9);
            let (live_at, gone_at) = if live_first { (earlier, later) } else { (later, earlier) };
            let alive = read(live_at.0, live_at.1, live_seen(Some(SAME), 1));
            let dead = read(gone_at.0, gone_at.1, gone());
            for order in [[alive, dead], [dead, alive]] {
                let known = replay(Rules::default(), &order).1.expect("remembered");
                let is_live = matches!(known.state, RememberedState::Live { .. });
                proptest::prop_assert_eq!(is_live, !live_first, "{:?}", order);
            }
        }
    }
}
