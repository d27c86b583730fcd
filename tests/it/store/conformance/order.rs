//! The one global order, boots and snapshots.

use jiff::SignedDuration;
use sierra_sync::sync::Seq;
use sierra_sync::sync::ports::{Snapshot, StoreErrorKind};

use crate::store::changes::{bib, slice};
use crate::store::subject::each_store;

fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

#[test]
fn seqs_rise_strictly_over_commits_and_reopens() {
    each_store(|subject| {
        assert_eq!(subject.store().last_seq().unwrap(), Seq::ZERO);
        let mut last = Seq::ZERO;
        for round in 0..4 {
            let seqs = subject.store().commit(slice((0..3).map(bib).collect())).unwrap();
            assert_eq!(seqs.len(), 3);
            for seq in seqs {
                assert!(seq > last, "round {round}");
                last = seq;
            }
            assert_eq!(subject.store().last_seq().unwrap(), last);
            if round == 1 {
                subject.reopen();
                assert_eq!(subject.store().last_seq().unwrap(), last);
            }
        }
        assert_eq!(subject.store().commit(slice(Vec::new())).unwrap(), []);
        assert_eq!(subject.store().last_seq().unwrap(), last);
    });
}

#[test]
fn the_first_seq_of_an_opening_is_not_below_the_clock() {
    each_store(|subject| {
        let now = sierra_sync::clock::Clock::now(&*subject.clock).as_second();
        let first = subject.store().commit(slice(vec![bib(1)])).unwrap();
        assert_eq!(first, [Seq::floor_at(now)]);

        subject.clock.step(SignedDuration::from_hours(1));
        subject.reopen();
        let second = subject.store().commit(slice(vec![bib(1)])).unwrap();
        assert_eq!(second, [Seq::floor_at(now + 3600)]);

        // A clock that was stepped back, as after a battery failure, does not take the order back with it.
        subject.clock.step(SignedDuration::from_hours(-24 * 365));
        subject.reopen();
        let third = subject.store().commit(slice(vec![bib(1)])).unwrap();
        assert_eq!(third, [second[0].next()]);
    });
}

#[test]
fn a_raised_order_stays_raised_and_is_no_seq_that_was_issued() {
    each_store(|subject| {
        let floor = seq((1 << 52) + 5);
        subject.store().raise_seq(floor).unwrap();
        subject.store().raise_seq(seq(3)).unwrap();
        assert_eq!(subject.store().last_seq().unwrap(), Seq::ZERO);
        subject.reopen();
        assert_eq!(subject.store().commit(slice(vec![bib(1)])).unwrap(), [floor]);
    });
}

#[test]
fn the_order_ends_below_two_to_the_53rd_and_ends_loudly() {
    each_store(|subject| {
        subject.store().raise_seq(Seq::MAX).unwrap();
        assert_eq!(subject.store().commit(slice(vec![bib(1)])).unwrap(), [Seq::MAX]);
        let exhausted = subject.store().commit(slice(vec![bib(2)])).unwrap_err();
        assert_eq!(exhausted.kind, StoreErrorKind::Exhausted);
        // An error of a write closes the store.
        assert!(subject.store().last_seq().is_err());
    });
}

#[test]
fn every_opening_has_a_higher_boot_number() {
    each_store(|subject| {
        let mut boots = vec![subject.store().boot_number()];
        for _ in 0..3 {
            subject.reopen();
            boots.push(subject.store().boot_number());
        }
        assert!(boots.is_sorted_by(|earlier, later| earlier < later), "{boots:?}");
        assert!(boots[0] >= 1);
    });
}

#[test]
fn snapshots_are_kept_apart_replaced_whole_and_survive() {
    each_store(|subject| {
        let long: Vec<u8> = (0..200_000_u32).map(|index| (index % 251) as u8).collect();
        for name in Snapshot::ALL {
            assert_eq!(subject.store().snapshot(name).unwrap(), None);
        }
        subject.store().save_snapshot(Snapshot::History, &long).unwrap();
        subject.store().save_snapshot(Snapshot::Quota, b"{}").unwrap();
        assert_eq!(subject.store().snapshot(Snapshot::History).unwrap().unwrap(), long);
        // A shorter value leaves nothing of the longer one behind.
        subject.store().save_snapshot(Snapshot::History, b"short").unwrap();
        subject.store().save_snapshot(Snapshot::Latch, b"").unwrap();
        subject.reopen();
        assert_eq!(subject.store().snapshot(Snapshot::History).unwrap().unwrap(), b"short");
        assert_eq!(subject.store().snapshot(Snapshot::Quota).unwrap().unwrap(), b"{}");
        assert_eq!(subject.store().snapshot(Snapshot::Latch).unwrap().unwrap(), b"");
        assert_eq!(subject.store().snapshot(Snapshot::Breaker).unwrap(), None);
    });
}
