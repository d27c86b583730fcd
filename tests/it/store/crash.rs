//! What the memory store loses in a crash, and what it keeps: the ground that the simulation stands on.

use std::collections::BTreeMap;

use sierra_sync::record::Stream;
use sierra_sync::store::{MemoryStore, Step};
use sierra_sync::sync::ports::{Slice, Snapshot, Store, StoreError, StoreErrorKind};
use sierra_sync::sync::{RememberedKey, Seq};

use super::changes::{bib, live, number, position, positions, quarantined, row, slice};
use super::subject::StandingClock;

type Write = Box<dyn Fn(&dyn Store) -> Result<(), StoreError>>;

/// Every writing call of the port, each with an effect that [`everything`] shows.
fn writes() -> Vec<(&'static str, Write)> {
    vec![
        ("commit", Box::new(|store| store.commit(whole_slice()).map(drop))),
        ("raise_seq", Box::new(|store| store.raise_seq(Seq::MAX))),
        ("next_row_id", Box::new(|store| store.next_row_id().map(drop))),
        ("set_sink_positions", {
            let moved = positions(&[("archive", position(Seq::MAX, &Stream::ALL))]);
            Box::new(move |store| store.set_sink_positions(&moved))
        }),
        ("remove_sink", Box::new(|store| store.remove_sink("archive"))),
        ("save_snapshot", Box::new(|store| store.save_snapshot(Snapshot::Quota, b"new"))),
    ]
}

fn whole_slice() -> Slice {
    Slice {
        remembered: vec![(RememberedKey::Bib(number(2)), live(2))],
        links: vec![(number(2), vec![number(1)])],
        quarantined: vec![quarantined(Stream::Bibs, "2", "a")],
        rows: vec![row(Stream::Bibs, 2)],
        ..slice(vec![bib(2)])
    }
}

fn everything(store: &dyn Store) -> String {
    let mut shown = BTreeMap::new();
    shown.insert("outbox", format!("{:?}", store.outbox_after(Seq::ZERO, 100, usize::MAX).unwrap()));
    shown.insert("usage", format!("{:?}", store.outbox_usage().unwrap()));
    shown.insert("sinks", format!("{:?}", store.sink_positions().unwrap()));
    shown.insert("ledger", format!("{:?}", store.ledger(Stream::Bibs).unwrap()));
    shown.insert("quarantine", format!("{:?}", store.quarantine(Stream::Bibs, 100).unwrap()));
    shown.insert("remembered", format!("{:?}", store.remembered_after(Stream::Bibs, None, 100).unwrap()));
    shown.insert("links", format!("{:?}", store.links(&[number(1), number(2)]).unwrap()));
    shown.insert("snapshot", format!("{:?}", store.snapshot(Snapshot::Quota).unwrap()));
    shown.insert("seq", format!("{:?}", store.last_seq().unwrap()));
    format!("{shown:#?}")
}

/// A store with something in it, and the same one after `write` was done undisturbed.
fn before_and_after(write: &dyn Fn(&dyn Store) -> Result<(), StoreError>) -> (MemoryStore, MemoryStore) {
    let prepared = || {
        let store = MemoryStore::new(StandingClock::at_epoch());
        store.set_sink_positions(&positions(&[("archive", position(Seq::ZERO, &Stream::ALL))])).unwrap();
        store.commit(slice(vec![bib(1)])).unwrap();
        store
    };
    let after = prepared();
    write(&after).unwrap();
    (prepared(), after)
}

/// BR-117: at every step of every write, what follows a crash is the state before it or after it, never between.
#[test]
fn a_crash_at_any_step_leaves_a_write_whole_or_absent() {
    for (name, write) in writes() {
        for step in Step::OF_A_WRITE {
            let (store, after) = before_and_after(&write);
            let before = everything(&store);
            store.fail_at(step, 0);
            assert_eq!(write(&store).unwrap_err().kind, StoreErrorKind::Io, "{name} at {step:?}");
            assert!(store.is_down());
            let reopened = store.crash_and_reopen();
            let survives = step == Step::Unacknowledged;
            let expected = if survives { everything(&after) } else { before };
            assert_eq!(everything(&reopened), expected, "{name} at {step:?}");
        }
    }
}

/// Row numbers and floors show only in what is issued later.
#[test]
fn what_was_issued_before_a_crash_is_not_issued_again() {
    for step in Step::OF_A_WRITE {
        let store = MemoryStore::new(StandingClock::at_epoch());
        let (row_id, seq) = (store.next_row_id().unwrap(), store.commit(slice(vec![bib(1)])).unwrap()[0]);
        store.fail_at(step, 0);
        store.next_row_id().unwrap_err();
        let store = store.crash_and_reopen();
        assert!(store.next_row_id().unwrap() > row_id);
        assert!(store.commit(slice(vec![bib(1)])).unwrap()[0] > seq);
    }
}

/// BR-118: a reader never sees what a crash can still take back.
#[test]
fn reads_between_commit_and_fence_see_nothing_of_the_write() {
    let store = MemoryStore::new(StandingClock::at_epoch());
    store.fail_at(Step::Unfenced, 1);
    store.commit(slice(vec![bib(1)])).unwrap();
    store.commit(slice(vec![bib(2)])).unwrap_err();
    // Not even the store that failed serves it: it serves nothing.
    assert_eq!(store.outbox_after(Seq::ZERO, 9, 9).unwrap_err().kind, StoreErrorKind::Io);
    assert_eq!(store.crash_and_reopen().outbox_after(Seq::ZERO, 9, usize::MAX).unwrap().len(), 1);
}

/// BR-062: a task that outlived the crash cannot write behind the back of the next process.
#[test]
fn a_handle_from_before_the_crash_is_dead() {
    let old = MemoryStore::new(StandingClock::at_epoch());
    old.commit(slice(vec![bib(1)])).unwrap();
    let new = old.crash_and_reopen();
    for (name, write) in writes() {
        assert_eq!(write(&old).unwrap_err().kind, StoreErrorKind::Io, "{name}");
    }
    assert!(old.last_seq().is_err());
    assert!(new.boot_number() > old.boot_number());
    assert_eq!(new.outbox_usage().unwrap().entries, 1);
}

#[test]
fn failures_strike_when_planned_and_only_then() {
    let store = MemoryStore::new(StandingClock::at_epoch());
    store.fail_at(Step::BeforeCommit, 2);
    assert!(store.next_row_id().is_ok() && store.next_row_id().is_ok());
    assert!(!store.is_down());
    assert!(store.next_row_id().is_err());
    assert_eq!(store.writes(), 3);
    let store = store.crash_and_reopen();
    assert!(store.next_row_id().is_ok(), "plans end with the process");
    store.fail_at(Step::Read, 1);
    assert!(store.last_seq().is_ok());
    assert!(store.free_bytes().is_err());
    assert!(store.is_down());
}
