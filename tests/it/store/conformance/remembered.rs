//! Remembered states and item links.

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{Slice, Store};
use sierra_sync::sync::remembered::RememberedState;
use sierra_sync::sync::{Remembered, RememberedKey, RequestNumber};

use crate::store::changes::{live, number};
use crate::store::subject::each_store;

fn bib(id: u64) -> RememberedKey {
    RememberedKey::Bib(number(id))
}

fn item(id: u64) -> RememberedKey {
    RememberedKey::Item(number(id))
}

fn remember(store: &dyn Store, states: Vec<(RememberedKey, Remembered)>) {
    store.commit(Slice { remembered: states, ..Slice::default() }).unwrap();
}

#[test]
fn states_come_back_in_the_order_asked_and_the_latest_counts() {
    each_store(|subject| {
        let tombstone = Remembered {
            state: RememberedState::Tombstone { deleted_on: Some(jiff::civil::date(2024, 2, 29)), emitted: true },
            sent: RequestNumber(7),
            answered: RequestNumber(9),
            sealed_id: Vec::new(),
        };
        let patron = Remembered { sealed_id: vec![1; 42], ..live(5) };
        let states = vec![
            (bib(1), live(1)),
            (item(1), tombstone.clone()),
            (RememberedKey::Patron([8; 16]), patron.clone()),
            (bib(2), live(2)),
            (bib(2), live(3)),
        ];
        remember(subject.store(), states);
        remember(subject.store(), vec![(bib(1), live(4))]);
        subject.reopen();
        let keys = [bib(2), item(2), RememberedKey::Patron([8; 16]), item(1), bib(1), bib(1)];
        let expected = [Some(live(3)), None, Some(patron), Some(tombstone), Some(live(4)), Some(live(4))];
        assert_eq!(subject.store().remembered(&keys).unwrap(), expected);
        assert_eq!(subject.store().remembered(&[]).unwrap(), []);
    });
}

#[test]
fn forgotten_states_are_gone_unless_remembered_anew_in_the_same_slice() {
    each_store(|subject| {
        remember(subject.store(), vec![(bib(1), live(1)), (bib(2), live(2)), (bib(3), live(3))]);
        let forgotten = vec![bib(1), bib(2), bib(9)];
        let slice = Slice { forgotten, remembered: vec![(bib(2), live(9))], ..Slice::default() };
        subject.store().commit(slice).unwrap();
        subject.reopen();
        let got = subject.store().remembered(&[bib(1), bib(2), bib(3)]).unwrap();
        assert_eq!(got, [None, Some(live(9)), Some(live(3))]);
    });
}

#[test]
fn a_sweep_walks_one_stream_in_the_order_of_numbers() {
    each_store(|subject| {
        let ids = [3, 1, 255, 256, 70_000, 999_999_999_999];
        remember(subject.store(), ids.iter().map(|id| (bib(*id), live(0))).collect());
        remember(subject.store(), vec![(item(2), live(0)), (RememberedKey::Patron([0; 16]), live(0))]);
        let walk = |stream: Stream, after: Option<RememberedKey>, limit: usize| -> Vec<RememberedKey> {
            let rows = subject.store().remembered_after(stream, after.as_ref(), limit).unwrap();
            rows.into_iter().map(|(key, _)| key).collect()
        };
        let all = [1, 3, 255, 256, 70_000, 999_999_999_999].map(bib);
        assert_eq!(walk(Stream::Bibs, None, 100), all);
        assert_eq!(walk(Stream::Bibs, None, 2), all[..2]);
        assert_eq!(walk(Stream::Bibs, Some(bib(3)), 2), all[2..4]);
        assert_eq!(walk(Stream::Bibs, Some(bib(4)), 1), all[2..3]);
        assert_eq!(walk(Stream::Bibs, Some(bib(999_999_999_999)), 5), []);
        assert_eq!(walk(Stream::Items, None, 5), [item(2)]);
        assert_eq!(walk(Stream::Patrons, None, 5), [RememberedKey::Patron([0; 16])]);
        assert_eq!(walk(Stream::Patrons, Some(RememberedKey::Patron([0; 16])), 5), []);
    });
}

#[test]
fn links_are_replaced_whole_and_removed_when_empty() {
    each_store(|subject| {
        let link = |links: &[(u64, &[u64])]| {
            let links = links.iter().map(|(item, bibs)| (number(*item), bibs.iter().copied().map(number).collect()));
            subject.store().commit(Slice { links: links.collect(), ..Slice::default() }).unwrap();
        };
        link(&[(1, &[10, 11]), (2, &[12]), (3, &[13])]);
        link(&[(1, &[11]), (3, &[])]);
        let got = subject.store().links(&[number(3), number(1), number(2), number(4)]).unwrap();
        assert_eq!(got, [vec![], vec![number(11)], vec![number(12)], vec![]]);
    });
}

/// BR-016: an item tied to very many bibs is an item like any other.
#[test]
fn an_item_hangs_from_any_number_of_bibs() {
    each_store(|subject| {
        let many: Vec<_> = (0..30_000).map(|index| number(1_000_000_000 + index)).collect();
        let few: Vec<_> = (0..120).map(number).collect();
        for bibs in [&few, &many, &few] {
            subject.store().commit(Slice { links: vec![(number(1), bibs.clone())], ..Slice::default() }).unwrap();
            subject.reopen();
            assert_eq!(&subject.store().links(&[number(1)]).unwrap()[0], bibs);
        }
        assert_eq!(subject.store().links(&[number(2)]).unwrap(), [vec![]]);
    });
}
