//! Sink positions: what waits for whom, and what may be trimmed.

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{SinkPosition, Slice, Store};
use sierra_sync::sync::{Change, Seq};

use crate::store::changes::{at, bib, detached, item, position, positions, quarantined, slice};
use crate::store::subject::each_store;

fn held(store: &dyn Store) -> Vec<Seq> {
    store.outbox_entries_after(Seq::ZERO, 10_000).unwrap().iter().map(|entry| entry.seq).collect()
}

fn waits(store: &dyn Store, sink: &str) -> (u64, Option<jiff::Timestamp>) {
    let position = &store.sink_positions().unwrap()[sink];
    (position.pending, position.oldest_pending)
}

#[test]
fn positions_are_kept_per_sink_and_what_the_store_counts_is_not_taken_from_callers() {
    each_store(|subject| {
        let boasting = SinkPosition {
            pending: 99,
            oldest_pending: Some(at(0)),
            quarantined: 99,
            ..position(Seq::ZERO, &[Stream::Bibs])
        };
        subject.store().set_sink_positions(&positions(&[("a", boasting), ("b", detached())])).unwrap();
        subject.store().set_sink_positions(&positions(&[("c", position(Seq::ZERO, &[]))])).unwrap();
        subject.reopen();
        let expected =
            [("a", position(Seq::ZERO, &[Stream::Bibs])), ("b", detached()), ("c", position(Seq::ZERO, &[]))];
        assert_eq!(subject.store().sink_positions().unwrap(), positions(&expected));
    });
}

/// BR-018, BR-114, OUT-1: nothing is trimmed that an attached sink has not confirmed.
#[test]
fn a_change_is_held_until_the_slowest_attached_sink_confirms_it() {
    each_store(|subject| {
        let both = [("fast", position(Seq::ZERO, &Stream::ALL)), ("slow", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&both)).unwrap();
        let seqs = subject.store().commit(slice((1..=4).map(bib).collect())).unwrap();

        subject.store().set_sink_positions(&positions(&[("fast", position(seqs[3], &Stream::ALL))])).unwrap();
        assert_eq!(held(subject.store()), seqs);
        assert_eq!(waits(subject.store(), "fast"), (0, None));
        assert_eq!(waits(subject.store(), "slow"), (4, Some(at(1))));

        subject.store().set_sink_positions(&positions(&[("slow", position(seqs[1], &Stream::ALL))])).unwrap();
        assert_eq!(held(subject.store()), seqs[2..]);
        subject.reopen();
        assert_eq!(held(subject.store()), seqs[2..]);
        assert_eq!(waits(subject.store(), "slow"), (2, Some(at(3))));

        subject.store().set_sink_positions(&positions(&[("slow", position(seqs[3], &Stream::ALL))])).unwrap();
        assert_eq!(held(subject.store()), []);
        assert_eq!(waits(subject.store(), "slow"), (0, None));
    });
}

#[test]
fn only_changes_of_a_sinks_streams_and_meant_for_it_wait_for_it() {
    each_store(|subject| {
        let both = [("titles", position(Seq::ZERO, &[Stream::Bibs])), ("all", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&both)).unwrap();
        let reload = |id: u64, sink: &str| Change { only_for: Some(sink.into()), ..bib(id) };
        let put = vec![item(1, &[9]), reload(2, "all"), bib(3), reload(4, "titles"), item(5, &[9])];
        let seqs = subject.store().commit(slice(put)).unwrap();
        assert_eq!(waits(subject.store(), "titles"), (2, Some(at(3))));
        assert_eq!(waits(subject.store(), "all"), (4, Some(at(1))));

        subject.store().set_sink_positions(&positions(&[("titles", position(seqs[2], &[Stream::Bibs]))])).unwrap();
        assert_eq!(waits(subject.store(), "titles"), (1, Some(at(4))));
        subject.store().set_sink_positions(&positions(&[("titles", position(seqs[3], &[Stream::Bibs]))])).unwrap();
        assert_eq!(waits(subject.store(), "titles"), (0, None));
        assert_eq!(held(subject.store()), seqs);
    });
}

/// A paused sink must not hold what it does not take, or its backlog would grow by other people's changes.
#[test]
fn a_sink_holds_nothing_back_that_it_does_not_take() {
    each_store(|subject| {
        let both = [("paused", position(Seq::ZERO, &[Stream::Items])), ("all", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&both)).unwrap();
        let seqs = subject.store().commit(slice(vec![bib(1), bib(2), item(3, &[1]), bib(4)])).unwrap();
        subject.store().set_sink_positions(&positions(&[("all", position(seqs[3], &Stream::ALL))])).unwrap();
        assert_eq!(held(subject.store()), seqs[2..]);
        assert_eq!(waits(subject.store(), "paused"), (1, Some(at(3))));
    });
}

#[test]
fn a_detached_sink_holds_nothing_and_nothing_waits_for_it() {
    each_store(|subject| {
        let both = [("lost", position(Seq::ZERO, &Stream::ALL)), ("all", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&both)).unwrap();
        let seqs = subject.store().commit(slice((1..=3).map(bib).collect())).unwrap();
        subject.store().set_sink_positions(&positions(&[("all", position(seqs[1], &Stream::ALL))])).unwrap();
        assert_eq!(held(subject.store()), seqs);
        subject.store().set_sink_positions(&positions(&[("lost", detached())])).unwrap();
        assert_eq!(held(subject.store()), seqs[2..]);
        assert_eq!(waits(subject.store(), "lost"), (0, None));
        subject.store().commit(slice(vec![bib(4)])).unwrap();
        assert_eq!(waits(subject.store(), "lost"), (0, None));

        // Attached again at the current seq, as a reload does, it counts from there.
        let now = subject.store().last_seq().unwrap();
        subject.store().set_sink_positions(&positions(&[("lost", position(now, &Stream::ALL))])).unwrap();
        assert_eq!(waits(subject.store(), "lost"), (0, None));
        subject.store().commit(slice(vec![bib(5)])).unwrap();
        assert_eq!(waits(subject.store(), "lost"), (1, Some(at(5))));
        assert_eq!(waits(subject.store(), "all"), (3, Some(at(3))));
    });
}

#[test]
fn changing_streams_or_going_back_counts_anew() {
    each_store(|subject| {
        let all = positions(&[("all", position(Seq::ZERO, &Stream::ALL)), ("some", position(Seq::ZERO, &[]))]);
        subject.store().set_sink_positions(&all).unwrap();
        let seqs = subject.store().commit(slice(vec![bib(1), item(2, &[1]), item(3, &[1])])).unwrap();
        let some = |confirmed, streams: &[Stream]| positions(&[("some", position(confirmed, streams))]);
        subject.store().set_sink_positions(&some(Seq::ZERO, &[Stream::Items])).unwrap();
        assert_eq!(waits(subject.store(), "some"), (2, Some(at(2))));
        subject.store().set_sink_positions(&some(seqs[2], &[Stream::Items])).unwrap();
        assert_eq!(waits(subject.store(), "some"), (0, None));
        subject.store().set_sink_positions(&some(seqs[1], &[Stream::Items])).unwrap();
        assert_eq!(waits(subject.store(), "some"), (1, Some(at(3))));
    });
}

/// BR-113: clearing up after one sink touches no other.
#[test]
fn a_removed_sink_is_forgotten_and_frees_what_it_held() {
    each_store(|subject| {
        let both = [("old", position(Seq::ZERO, &Stream::ALL)), ("all", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&both)).unwrap();
        let seqs = subject.store().commit(slice((1..=3).map(bib).collect())).unwrap();
        subject.store().set_sink_positions(&positions(&[("all", position(seqs[0], &Stream::ALL))])).unwrap();
        subject.store().remove_sink("old").unwrap();
        subject.store().remove_sink("never there").unwrap();
        subject.reopen();
        assert_eq!(held(subject.store()), seqs[1..]);
        assert_eq!(subject.store().sink_positions().unwrap().keys().collect::<Vec<_>>(), ["all"]);
        assert_eq!(waits(subject.store(), "all"), (2, Some(at(2))));
    });
}

#[test]
fn with_no_sink_attached_nothing_waits_but_a_commit_alone_trims_nothing() {
    each_store(|subject| {
        let seqs = subject.store().commit(slice((1..=3).map(bib).collect())).unwrap();
        assert_eq!(held(subject.store()), seqs);
        subject.store().set_sink_positions(&positions(&[("lost", detached())])).unwrap();
        assert_eq!(held(subject.store()), []);
    });
}

#[test]
fn a_long_backlog_is_trimmed_whole() {
    each_store(|subject| {
        let one = positions(&[("all", position(Seq::ZERO, &Stream::ALL))]);
        subject.store().set_sink_positions(&one).unwrap();
        let mut last = Seq::ZERO;
        for page in 0..8 {
            let changes = (page * 150..(page + 1) * 150).map(|id| crate::store::changes::deleted(Stream::Bibs, id));
            last = *subject.store().commit(slice(changes.collect())).unwrap().last().unwrap();
        }
        assert_eq!(subject.store().outbox_usage().unwrap().entries, 1200);
        subject.store().set_sink_positions(&positions(&[("all", position(last, &Stream::ALL))])).unwrap();
        assert_eq!(held(subject.store()), []);
        assert_eq!(subject.store().outbox_usage().unwrap(), Default::default());
    });
}

#[test]
fn what_a_sink_refused_is_counted_with_its_position() {
    each_store(|subject| {
        let both = [("search", position(Seq::ZERO, &Stream::ALL)), ("all", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&both)).unwrap();
        let refused = |record: &str| sierra_sync::sync::ports::QuarantineEntry {
            sink: Some("search".into()),
            ..quarantined(Stream::Bibs, record, "too large")
        };
        let entries = vec![refused("1"), refused("2"), refused("2"), quarantined(Stream::Bibs, "3", "x")];
        subject.store().commit(Slice { quarantined: entries, ..Slice::default() }).unwrap();
        for reopened in [false, true] {
            if reopened {
                subject.reopen();
            }
            let sinks = subject.store().sink_positions().unwrap();
            assert_eq!((sinks["search"].quarantined, sinks["all"].quarantined), (2, 0));
        }
        let closes = vec![(Stream::Bibs, "2".to_owned())];
        subject.store().commit(Slice { closes, ..Slice::default() }).unwrap();
        assert_eq!(subject.store().sink_positions().unwrap()["search"].quarantined, 1);
    });
}
