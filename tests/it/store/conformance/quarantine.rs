//! Quarantine and dead letters.

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{QuarantineEntry, QuarantineState, Slice, Store};

use crate::store::changes::{at, bib, quarantined, slice};
use crate::store::subject::each_store;

fn set_aside(store: &dyn Store, entries: &[QuarantineEntry]) {
    store.commit(Slice { quarantined: entries.to_vec(), ..Slice::default() }).unwrap();
}

fn records(store: &dyn Store, stream: Stream) -> Vec<(String, String)> {
    let entries = store.quarantine(stream, 100).unwrap();
    assert_eq!(store.quarantine_count(stream).unwrap(), entries.len() as u64);
    entries.into_iter().map(|entry| (entry.record, entry.fingerprint)).collect()
}

/// A14: what fails validation is set aside with all that is needed to look at it.
#[test]
fn entries_come_back_whole_oldest_first_and_per_stream() {
    each_store(|subject| {
        let first = QuarantineEntry { payload: Some("x".repeat(300_000)), ..quarantined(Stream::Bibs, "9", "b") };
        let second = QuarantineEntry { last_status: None, payload: None, ..quarantined(Stream::Bibs, "1", "a") };
        let third = QuarantineEntry { sink: Some("search".into()), ..quarantined(Stream::Items, "9", "b") };
        set_aside(subject.store(), &[first.clone(), third.clone()]);
        set_aside(subject.store(), std::slice::from_ref(&second));
        subject.reopen();
        assert_eq!(subject.store().quarantine(Stream::Bibs, 10).unwrap(), [first.clone(), second]);
        assert_eq!(subject.store().quarantine(Stream::Bibs, 1).unwrap(), [first]);
        assert_eq!(subject.store().quarantine(Stream::Items, 10).unwrap(), [third]);
        assert_eq!(subject.store().quarantine(Stream::Patrons, 10).unwrap(), []);
        assert_eq!(subject.store().quarantine_count(Stream::Bibs).unwrap(), 2);
        assert_eq!(subject.store().quarantine_count(Stream::Patrons).unwrap(), 0);
    });
}

#[test]
fn the_same_cause_of_the_same_record_is_one_entry_whose_attempts_add_up() {
    each_store(|subject| {
        let seen = |second: i64, attempts: u32| QuarantineEntry {
            attempts,
            first_seen: at(second),
            last_seen: at(second),
            last_status: None,
            reason: format!("seen at {second}"),
            payload: Some("y".repeat(usize::try_from(second).unwrap())),
            ..quarantined(Stream::Bibs, "7", "cause")
        };
        set_aside(subject.store(), &[QuarantineEntry { last_status: Some(500), ..seen(40_000, 1) }]);
        set_aside(subject.store(), &[seen(50_000, 2), seen(60_000, 3)]);
        set_aside(subject.store(), &[quarantined(Stream::Bibs, "7", "other cause")]);
        subject.reopen();
        let entries = subject.store().quarantine(Stream::Bibs, 10).unwrap();
        let expected =
            QuarantineEntry { attempts: 6, first_seen: at(40_000), last_status: Some(500), ..seen(60_000, 6) };
        assert_eq!(entries, [expected, quarantined(Stream::Bibs, "7", "other cause")]);
        assert_eq!(subject.store().quarantine_count(Stream::Bibs).unwrap(), 2);
    });
}

#[test]
fn a_parked_entry_stays_parked_when_it_is_seen_again() {
    each_store(|subject| {
        let open = quarantined(Stream::Bibs, "7", "cause");
        set_aside(subject.store(), &[QuarantineEntry { state: QuarantineState::Parked, ..open.clone() }]);
        set_aside(subject.store(), &[open]);
        let entries = subject.store().quarantine(Stream::Bibs, 10).unwrap();
        assert_eq!((entries[0].state, entries[0].attempts), (QuarantineState::Parked, 2));
    });
}

#[test]
fn a_newer_good_version_closes_every_entry_of_its_record_and_of_no_other() {
    each_store(|subject| {
        let entries = [
            quarantined(Stream::Bibs, "7", "a"),
            quarantined(Stream::Bibs, "7", "b"),
            quarantined(Stream::Bibs, "71", "a"),
            quarantined(Stream::Items, "7", "a"),
        ];
        set_aside(subject.store(), &entries);
        let mut good = slice(vec![bib(7)]);
        good.closes = vec![(Stream::Bibs, "7".into()), (Stream::Bibs, "8".into())];
        subject.store().commit(good).unwrap();
        subject.reopen();
        assert_eq!(records(subject.store(), Stream::Bibs), [("71".into(), "a".into())]);
        assert_eq!(records(subject.store(), Stream::Items), [("7".into(), "a".into())]);
    });
}

#[test]
fn an_entry_that_is_closed_and_fails_again_starts_anew() {
    each_store(|subject| {
        set_aside(subject.store(), &[quarantined(Stream::Bibs, "7", "a"), quarantined(Stream::Bibs, "8", "a")]);
        let again = Slice {
            closes: vec![(Stream::Bibs, "7".into())],
            quarantined: vec![quarantined(Stream::Bibs, "7", "a")],
            ..Slice::default()
        };
        subject.store().commit(again).unwrap();
        subject.reopen();
        assert_eq!(records(subject.store(), Stream::Bibs), [("8".into(), "a".into()), ("7".into(), "a".into())]);
        assert_eq!(subject.store().quarantine(Stream::Bibs, 10).unwrap()[1].attempts, 1);
    });
}

#[test]
fn a_discarded_entry_is_gone_and_its_name_is_stable() {
    each_store(|subject| {
        let entries = [quarantined(Stream::Bibs, "7", "a"), quarantined(Stream::Bibs, "7", "b")];
        set_aside(subject.store(), &entries);
        let named = subject.store().quarantine(Stream::Bibs, 10).unwrap();
        let dropped = named.iter().find(|entry| entry.key().id() == entries[0].key().id()).unwrap().key();
        let discards = vec![dropped.clone(), quarantined(Stream::Items, "7", "a").key()];
        subject.store().commit(Slice { discards, ..Slice::default() }).unwrap();
        assert_eq!(records(subject.store(), Stream::Bibs), [("7".into(), "b".into())]);
        assert_eq!(dropped.id().len(), 12);
        assert_ne!(dropped.id(), entries[1].key().id());
    });
}

/// Patrons: pseudonym and reason only.
#[test]
fn a_patrons_payload_is_never_kept() {
    each_store(|subject| {
        set_aside(subject.store(), &[quarantined(Stream::Patrons, "0f0f", "a")]);
        assert_eq!(subject.store().quarantine(Stream::Patrons, 10).unwrap()[0].payload, None);
    });
}

/// BR-032: looking changes nothing.
#[test]
fn reading_twice_shows_the_same() {
    each_store(|subject| {
        set_aside(subject.store(), &[quarantined(Stream::Bibs, "7", "a")]);
        subject.store().commit(slice(vec![bib(1)])).unwrap();
        let look = || {
            let store = subject.store();
            let outbox = store.outbox_after(sierra_sync::sync::Seq::ZERO, 10, usize::MAX).unwrap();
            format!("{outbox:?} {:?} {:?}", store.quarantine(Stream::Bibs, 10), store.outbox_usage())
        };
        assert_eq!(look(), look());
    });
}
