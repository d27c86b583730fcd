//! Verifying, compacting, setting aside and salvaging.

use std::fs;

use jiff::SignedDuration;
use sierra_sync::clock::Clock;
use sierra_sync::privacy::Keyring;
use sierra_sync::record::Stream;
use sierra_sync::store::Holder;
use sierra_sync::store::disk::{Salvage, Salvaged, compact, owed, salvage, set_aside, settled};
use sierra_sync::sync::Seq;
use sierra_sync::sync::ports::{Snapshot, Store, StoreError, StoreErrorKind};

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
    let is_left = |name: &str| state.join(name).exists();
    assert!(!is_left("db.compacting") && !is_left("db.before-compaction"));
    // A kill while the copy is written.
    raw::copy(&state.join("db"), &state.join("db.compacting"));
    assert_eq!(child::open(&state).unwrap().last_seq().unwrap(), seqs[0]);
    assert!(!is_left("db.compacting"));
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
    let refused = child::open(&state).unwrap_err();
    assert!(refused.message.contains("the links tree"), "it is marked, so that the next opening knows: {refused}");
}

/// Why a state is set aside.
fn why() -> StoreError {
    let advice = "the next `sierra-sync sync`, or start of the service, sets it aside and rebuilds from Sierra";
    StoreError::new(StoreErrorKind::Corrupt, format!("read a value; {advice}"))
}

/// Damage that a full reading finds is known to the next opening; the first reason stays.
#[test]
fn damage_that_was_found_at_work_is_known_to_the_next_opening() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    raw::fill(&child::open(&state).unwrap());
    let key = raw::open(&state).open_tree("payloads").unwrap().first().unwrap().unwrap().0;
    raw::open(&state).open_tree("payloads").unwrap().insert(key, "damaged").unwrap();
    let store = child::open(&state).unwrap();
    store.outbox_after(Seq::ZERO, 100, usize::MAX).unwrap_err();
    store.verify().unwrap();
    drop(store);
    let refused = child::open(&state).unwrap_err();
    assert!(refused.kind == StoreErrorKind::Corrupt && refused.message.contains("the payloads tree"), "{refused}");
}

#[test]
fn a_store_that_is_set_aside_is_kept_whole_and_the_next_one_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let now = StandingClock::at_epoch().now();
    let store = child::open(&state).unwrap();
    let (old, seqs) = (store.instance().to_owned(), store.commit(slice(vec![bib(1)])).unwrap());
    assert!(matches!(set_aside(&state, &why(), now).unwrap_err().kind, StoreErrorKind::Held { .. }));
    drop(store);

    let aside = set_aside(&state, &why(), now).unwrap();
    assert_eq!(aside.directory, state.join("damaged-20260105T100000Z"));
    // What is noted beside the database tells its last seq without opening it: a clock that was set back is no danger.
    assert_eq!((aside.last, aside.damage.why.as_str()), (seqs[0], "read a value"));
    // It is owed to the next state until somebody says that it is settled, whatever happens meanwhile.
    assert_eq!(owed(&state).unwrap(), Some(aside.clone()));
    settled(&state).unwrap();
    assert_eq!(owed(&state).unwrap(), None);
    let store = child::open(&state).unwrap();
    assert_ne!(store.instance(), old);
    assert_eq!(store.outbox_usage().unwrap().entries, 0);
    // The clock keeps the new order above the old one, which sinks still hold.
    assert!(store.commit(slice(vec![bib(1)])).unwrap()[0] >= seqs[0]);
    drop(store);
    assert!(aside.directory.join("db/db").exists());
    let refused = set_aside(&state, &why(), now + SignedDuration::from_hours(23)).unwrap_err();
    assert!(refused.kind == StoreErrorKind::Io && refused.message.contains("less than a day ago"), "{refused}");
    assert_eq!(child::open(&state).unwrap().outbox_usage().unwrap().entries, 1, "it is left as it is");
    // A clock that was set back does not make it another day.
    assert!(set_aside(&state, &why(), now - SignedDuration::from_hours(100)).is_err());
    for day in 1..3 {
        let later = now + SignedDuration::from_hours(25 * day);
        set_aside(&state, &why(), later).unwrap();
        child::open(&state).unwrap();
    }
    let refused = set_aside(&state, &why(), now + SignedDuration::from_hours(1_000)).unwrap_err();
    assert!(refused.message.contains("set aside 3 times already"), "{refused}");
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
    let aside = set_aside(&state, &why(), StandingClock::at_epoch().now()).unwrap();
    let (mut changes, mut entries, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    let salvaged = salvage(&aside.directory.join("db"), &Keyring::for_tests(1), |found| match found {
        Salvaged::Change(change) => changes.push(shown(&change)),
        Salvaged::Quarantined(entry) => entries.push(*entry),
        Salvaged::Snapshot(name, value) => snapshots.push((name, value)),
    });
    assert_eq!(salvaged.unwrap(), Salvage { unreadable: 1, last: whole.last().unwrap().seq });
    assert_eq!(snapshots.len(), Snapshot::ALL.len());
    assert_eq!(changes, whole[1..].iter().map(shown).collect::<Vec<_>>());
    assert_eq!(entries[..1], quarantined);
    assert_eq!(entries.len(), 2);
}
