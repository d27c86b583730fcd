//! Verifying, compacting, setting aside and salvaging.

use std::fs;

use sierra_sync::clock::Clock;
use sierra_sync::privacy::Keyring;
use sierra_sync::record::Stream;
use sierra_sync::store::Holder;
use sierra_sync::store::disk::{Salvaged, compact, salvage, set_aside};
use sierra_sync::sync::Seq;
use sierra_sync::sync::ports::{Store, StoreErrorKind};

use super::changes::{bib, bib_holding, deleted, position, positions, shown, slice};
use super::subject::StandingClock;
use super::{child, raw};

#[test]
fn a_sound_store_verifies_and_damage_is_counted_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let store = child::open(&state).unwrap();
    raw::fill(&store);
    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!((verified.kept.entries, verified.counted), (4, verified.kept));
    let values = |name: &str| verified.trees.iter().find(|tree| tree.tree == name).unwrap().values;
    assert_eq!((verified.trees.len(), values("outbox"), values("links")), (12, 4, 1));
    drop(store);

    for (tree, damaged, unreadable) in [("payloads", 1, 1), ("links", 1, 0)] {
        let copy = tempfile::tempdir().unwrap();
        raw::copy(directory.path(), copy.path());
        let state = copy.path().join("state");
        let key = raw::open(&state).open_tree(tree).unwrap().first().unwrap().unwrap().0;
        raw::open(&state).open_tree(tree).unwrap().insert(key, "damaged").unwrap();
        let verified = child::open(&state).unwrap().verify().unwrap();
        assert!(!verified.is_sound());
        let found = verified.trees.iter().find(|found| found.tree == tree).unwrap();
        assert_eq!((found.damaged, verified.unreadable_changes), (damaged, unreadable), "{tree}");
    }

    // A counter that went wrong shows too.
    let row = raw::open(&state).open_tree("outbox").unwrap().first().unwrap().unwrap().0;
    raw::open(&state).open_tree("outbox").unwrap().remove(row).unwrap();
    let verified = child::open(&state).unwrap().verify().unwrap();
    assert!(!verified.is_sound() && verified.counted.entries == 3, "{verified:?}");
}

#[test]
fn a_compacted_store_is_smaller_and_reads_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let store = child::open(&state).unwrap();
    raw::fill(&store);
    let mut last = Seq::ZERO;
    for page in 0..20 {
        let long = |id| bib_holding(id, child::text_of(id * 7 + page).repeat(10));
        last = *store.commit(slice((1..50).map(long).collect())).unwrap().last().unwrap();
    }
    store.set_sink_positions(&positions(&[("archive", position(last, &Stream::ALL))])).unwrap();
    store.commit(slice(vec![bib(1), bib(2)])).unwrap();
    let whole = raw::read_everything(&store).into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    let (instance, boot) = (store.instance().to_owned(), store.boot_number());
    assert!(matches!(compact(&state).unwrap_err().kind, StoreErrorKind::Held { .. }));
    drop(store);

    let compacted = compact(&state).unwrap();
    assert!(compacted.after * 3 < compacted.before, "{compacted:?}");
    let store = child::open(&state).unwrap();
    assert_eq!(raw::read_everything(&store).into_iter().collect::<Result<Vec<_>, _>>().unwrap(), whole);
    assert_eq!((store.instance(), store.boot_number()), (instance.as_str(), boot + 1));
    assert!(store.verify().unwrap().is_sound());
    let left: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("db.")), "{left:?}");
}

/// A kill between the two renames of a compaction leaves no `db`: that is not a new, empty store.
#[test]
fn an_interrupted_compaction_is_put_right_by_the_next_opening() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let seqs = child::open(&state).unwrap().commit(slice(vec![bib(1)])).unwrap();
    fs::rename(state.join("db"), state.join("db.before-compaction")).unwrap();
    raw::copy(&state.join("db.before-compaction"), &state.join("db.compacting"));
    assert_eq!(child::open(&state).unwrap().last_seq().unwrap(), seqs[0]);
    compact(&state).unwrap();
    assert_eq!(child::open(&state).unwrap().last_seq().unwrap(), seqs[0]);
}

#[test]
fn a_damaged_store_is_not_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    assert_eq!(compact(&state).unwrap_err().kind, StoreErrorKind::Corrupt);
    raw::fill(&child::open(&state).unwrap());
    raw::open(&state).open_tree("links").unwrap().insert("damaged", "x").unwrap();
    let error = compact(&state).unwrap_err();
    assert!(error.kind == StoreErrorKind::Corrupt && error.message.contains("the links tree"), "{error}");
    assert_eq!(child::open(&state).unwrap().outbox_usage().unwrap().entries, 4);
}

#[test]
fn a_store_that_is_set_aside_is_kept_whole_and_the_next_one_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let now = StandingClock::at_epoch().now();
    assert_eq!(set_aside(&state, now).unwrap(), None);
    let store = child::open(&state).unwrap();
    let (old, seqs) = (store.instance().to_owned(), store.commit(slice(vec![bib(1)])).unwrap());
    assert!(matches!(set_aside(&state, now).unwrap_err().kind, StoreErrorKind::Held { .. }));
    drop(store);

    let aside = set_aside(&state, now).unwrap().unwrap();
    assert_eq!(aside, state.join("db.set-aside-20260105T100000Z"));
    let store = child::open(&state).unwrap();
    assert_ne!(store.instance(), old);
    assert_eq!(store.outbox_usage().unwrap().entries, 0);
    // The clock keeps the new order above the old one, which sinks still hold.
    assert!(store.commit(slice(vec![bib(1)])).unwrap()[0] >= seqs[0]);
    drop(store);
    assert_eq!(set_aside(&state, now).unwrap().unwrap(), state.join("db.set-aside-20260105T100000Z-1"));
    assert!(aside.join("db").exists());
    assert_eq!(Holder::of(&state).unwrap().pid, std::process::id());
}

#[test]
fn what_is_readable_of_a_damaged_store_is_saved() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let store = child::open(&state).unwrap();
    raw::fill(&store);
    store.commit(slice(vec![deleted(Stream::Items, 77)])).unwrap();
    let whole = store.outbox_after(Seq::ZERO, 100, usize::MAX).unwrap();
    let quarantined = store.quarantine(Stream::Bibs, 9).unwrap();
    drop(store);
    {
        let database = raw::open(&state);
        let payloads = database.open_tree("payloads").unwrap();
        let first = payloads.first().unwrap().unwrap().0;
        payloads.insert(first, "damaged").unwrap();
        database.open_tree("meta").unwrap().remove("head").unwrap();
    }
    assert_eq!(child::open(&state).unwrap_err().kind, StoreErrorKind::Corrupt);
    let aside = set_aside(&state, StandingClock::at_epoch().now()).unwrap().unwrap();
    let (mut changes, mut entries) = (Vec::new(), Vec::new());
    let unreadable = salvage(&aside, &Keyring::for_tests(1), |found| match found {
        Salvaged::Change(change) => changes.push(shown(&change)),
        Salvaged::Quarantined(entry) => entries.push(*entry),
    });
    assert_eq!(unreadable.unwrap(), 1);
    assert_eq!(changes, whole[1..].iter().map(shown).collect::<Vec<_>>());
    assert_eq!(entries[..1], quarantined);
    assert_eq!(entries.len(), 2);
}
