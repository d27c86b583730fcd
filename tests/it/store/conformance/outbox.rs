//! Appending, reading and dropping changes.

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::OutboxUsage;
use sierra_sync::sync::{Change, Seq};

use crate::store::changes::{at, bib, bib_holding, deleted, item, patron, position, positions, row, shown, slice};
use crate::store::subject::each_store;

const EVERYTHING: usize = usize::MAX;

#[test]
fn every_kind_of_change_comes_back_as_it_went_in() {
    each_store(|subject| {
        let put = [
            bib(1),
            bib_holding(2, String::new()),
            item(3, &[1, 2]),
            deleted(Stream::Items, 4),
            patron("0f0f", "north"),
            Change { only_for: Some("archive".into()), ..deleted(Stream::Patrons, 5) },
            Change { updated: None, captured: "1969-12-31T23:59:59.25Z".parse().unwrap(), ..bib(6) },
        ];
        let seqs = subject.store().commit(slice(put.to_vec())).unwrap();
        for reopened in [false, true] {
            if reopened {
                subject.reopen();
            }
            let got = subject.store().outbox_after(Seq::ZERO, 100, EVERYTHING).unwrap();
            assert_eq!(got.len(), put.len());
            for ((got, put), seq) in got.iter().zip(&put).zip(&seqs) {
                assert_eq!(shown(got), shown(&Change { seq: *seq, ..put.clone() }));
            }
        }
    });
}

#[test]
fn entries_are_the_changes_without_their_payloads() {
    each_store(|subject| {
        let seqs = subject
            .store()
            .commit(slice(vec![bib(1), Change { only_for: Some("archive".into()), ..deleted(Stream::Items, 2) }]))
            .unwrap();
        let entries = subject.store().outbox_entries_after(Seq::ZERO, 10).unwrap();
        let changes = subject.store().outbox_after(Seq::ZERO, 10, EVERYTHING).unwrap();
        for (entry, change) in entries.iter().zip(&changes) {
            assert_eq!((entry.seq, entry.key()), (change.seq, change.key()));
            assert_eq!((entry.stream, &entry.id, entry.op), (change.stream, &change.id, change.op.name()));
            assert_eq!((entry.captured, entry.source), (change.captured, change.source));
            assert_eq!(entry.only_for, change.only_for);
        }
        assert_eq!(subject.store().outbox_entries_after(seqs[0], 10).unwrap(), entries[1..]);
        assert_eq!(subject.store().outbox_entries_after(Seq::ZERO, 1).unwrap(), entries[..1]);
        assert_eq!(subject.store().outbox_entries_after(seqs[1], 10).unwrap(), []);
        assert_eq!(subject.store().outbox_entries_after(Seq::MAX, 10).unwrap(), []);
    });
}

#[test]
fn reading_goes_in_order_from_any_place_within_count_and_bytes() {
    each_store(|subject| {
        let mut seqs = Vec::new();
        for start in [0, 10, 20] {
            let ten = (start..start + 10).map(|id| bib_holding(id, "x".repeat(1000)));
            seqs.extend(subject.store().commit(slice(ten.collect())).unwrap());
        }
        let read = |after: Seq, limit: usize, bytes: usize| -> Vec<Seq> {
            subject.store().outbox_after(after, limit, bytes).unwrap().iter().map(|change| change.seq).collect()
        };
        assert_eq!(read(Seq::ZERO, 100, EVERYTHING), seqs);
        assert_eq!(read(seqs[9], 5, EVERYTHING), seqs[10..15]);
        assert_eq!(read(seqs[28], 5, EVERYTHING), seqs[29..]);
        assert_eq!(read(seqs[29], 5, EVERYTHING), []);
        assert_eq!(read(Seq::MAX, 5, EVERYTHING), []);
        assert_eq!(read(Seq::ZERO, 0, EVERYTHING), []);
        // Always at least one, or a change beyond the budget would block its sink for ever.
        assert_eq!(read(Seq::ZERO, 100, 1), seqs[..1]);
        let some = read(Seq::ZERO, 100, 5_000).len();
        assert!((3..=5).contains(&some), "{some} changes of a good 1,000 bytes in 5,000");
    });
}

#[test]
fn a_change_of_any_size_passes() {
    each_store(|subject| {
        // Digits of a simple sequence: they do not compress away.
        let noise = |length: u64| (0..length).map(|index| char::from(b'0' + ((index * index / 7) % 10) as u8));
        for length in [0, 1, 40_000, 2_000_000].into_iter().chain((3_900..4_200).step_by(7)) {
            let put = bib_holding(length, noise(length).collect());
            let seq = subject.store().commit(slice(vec![put.clone()])).unwrap()[0];
            let got = subject.store().outbox_after(Seq::new(seq.value() - 1).unwrap(), 1, 1).unwrap();
            assert_eq!(shown(&got[0]), shown(&Change { seq, ..put }), "{length} bytes");
        }
    });
}

#[test]
fn usage_counts_entries_and_bytes_and_returns_to_nothing() {
    each_store(|subject| {
        let all = [("archive", position(Seq::ZERO, &Stream::ALL))];
        subject.store().set_sink_positions(&positions(&all)).unwrap();
        assert_eq!(subject.store().outbox_usage().unwrap(), OutboxUsage::default());
        let seqs = subject.store().commit(slice((0..10).map(bib).collect())).unwrap();
        let full = subject.store().outbox_usage().unwrap();
        let listed: u64 =
            subject.store().outbox_entries_after(Seq::ZERO, 100).unwrap().iter().map(|entry| entry.bytes).sum();
        assert_eq!((full.entries, full.bytes), (10, listed));
        assert!(full.bytes > 0);

        subject.reopen();
        assert_eq!(subject.store().outbox_usage().unwrap(), full);
        subject.store().set_sink_positions(&positions(&[("archive", position(seqs[8], &Stream::ALL))])).unwrap();
        assert_eq!(subject.store().outbox_usage().unwrap().entries, 1);
        subject.store().set_sink_positions(&positions(&[("archive", position(seqs[9], &Stream::ALL))])).unwrap();
        assert_eq!(subject.store().outbox_usage().unwrap(), OutboxUsage::default());
    });
}

/// Expired patron entries, and upserts captured under another privacy policy.
#[test]
fn dropped_changes_are_gone_for_every_sink_and_counted_out() {
    each_store(|subject| {
        let sinks = [
            ("archive", position(Seq::ZERO, &Stream::ALL)),
            ("people", position(Seq::ZERO, &[Stream::Patrons])),
            ("titles", position(Seq::ZERO, &[Stream::Bibs])),
        ];
        subject.store().set_sink_positions(&positions(&sinks)).unwrap();
        let put = vec![patron("aa", "north"), bib(2), patron("bb", "north"), bib(4)];
        let seqs = subject.store().commit(slice(put)).unwrap();

        let mut dropping = slice(vec![bib(5)]);
        dropping.dropped = vec![seqs[0], seqs[2], seqs[2], Seq::MAX];
        let added = subject.store().commit(dropping).unwrap();

        for reopened in [false, true] {
            if reopened {
                subject.reopen();
            }
            let left = subject.store().outbox_after(Seq::ZERO, 10, EVERYTHING).unwrap();
            assert_eq!(left.iter().map(|change| change.seq).collect::<Vec<_>>(), [seqs[1], seqs[3], added[0]]);
            assert_eq!(subject.store().outbox_usage().unwrap().entries, 3);
            let sinks = subject.store().sink_positions().unwrap();
            assert_eq!((sinks["archive"].pending, sinks["archive"].oldest_pending), (3, Some(at(2))));
            assert_eq!((sinks["people"].pending, sinks["people"].oldest_pending), (0, None));
            assert_eq!((sinks["titles"].pending, sinks["titles"].oldest_pending), (3, Some(at(2))));
        }
    });
}

/// CUR-2, BR-113, BR-126: the position moves with the data and only with it.
#[test]
fn a_slice_moves_position_and_changes_together() {
    each_store(|subject| {
        let mut together = slice(vec![bib(1), bib(2)]);
        together.rows = vec![row(Stream::Bibs, 1)];
        subject.store().commit(together).unwrap();
        subject.reopen();
        assert_eq!(subject.store().ledger(Stream::Bibs).unwrap(), [row(Stream::Bibs, 1)]);
        assert_eq!(subject.store().outbox_after(Seq::ZERO, 10, EVERYTHING).unwrap().len(), 2);
    });
}
