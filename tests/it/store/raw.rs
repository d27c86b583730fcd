//! sled without us, to damage what lies in it and to look at what others could see.

use std::path::Path;

use super::changes::{bib, bib_holding, item, live, number, patron, position, positions, quarantined, row, slice};
use super::subject::once_free;
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{QuarantineEntry, Slice, Snapshot, Store, StoreError};
use sierra_sync::sync::{LedgerRow, Remembered, RememberedKey, Seq};

/// A text that lies in every value that could hold one.
pub(crate) const CANARY: &str = "canary-7f31";

/// Puts something into every tree.
pub(crate) fn fill(store: &dyn Store) {
    store.set_sink_positions(&positions(&[("archive", position(Seq::ZERO, &Stream::ALL))])).unwrap();
    let changes = vec![bib(1), bib_holding(2, CANARY.repeat(3_000)), item(3, &[1]), patron("0f0f", CANARY)];
    let noticed = |stream| LedgerRow { last_error: Some(CANARY.into()), ..row(stream, 1) };
    let filling = Slice {
        remembered: vec![
            (RememberedKey::Bib(number(1)), live(0)),
            (RememberedKey::Item(number(1)), live(0)),
            (RememberedKey::Patron([7; 16]), Remembered { sealed_id: vec![9; 38], ..live(0) }),
        ],
        links: vec![(number(3), vec![number(1)])],
        quarantined: vec![
            QuarantineEntry { payload: Some(CANARY.into()), ..quarantined(Stream::Bibs, "5", "cause") },
            QuarantineEntry { payload: Some(CANARY.into()), ..quarantined(Stream::Patrons, "0f", "cause") },
        ],
        rows: vec![noticed(Stream::Bibs), noticed(Stream::Patrons)],
        ..slice(changes)
    };
    store.commit(filling).unwrap();
    for name in Snapshot::ALL {
        store.save_snapshot(name, CANARY.as_bytes()).unwrap();
    }
}

/// Reads everything; the answers as text, or the first error of each kind of read.
pub(crate) fn read_everything(store: &dyn Store) -> Vec<Result<String, StoreError>> {
    let bibs = [number(3)];
    let mut answers = vec![
        store.outbox_after(Seq::ZERO, 10_000, usize::MAX).map(|read| format!("{read:?}")),
        store.outbox_entries_after(Seq::ZERO, 10_000).map(|read| format!("{read:?}")),
        store.sink_positions().map(|read| format!("{read:?}")),
        store.outbox_usage().map(|read| format!("{read:?}")),
        store.links(&bibs).map(|read| format!("{read:?}")),
        store.last_seq().map(|read| format!("{read:?}")),
    ];
    for stream in Stream::ALL {
        answers.push(store.ledger(stream).map(|read| format!("{read:?}")));
        answers.push(store.remembered_after(stream, None, 10_000).map(|read| format!("{read:?}")));
        answers.push(store.quarantine(stream, 10_000).map(|read| format!("{read:?}")));
        answers.push(store.quarantine_count(stream).map(|read| format!("{read:?}")));
    }
    for name in Snapshot::ALL {
        answers.push(store.snapshot(name).map(|read| format!("{read:?}")));
    }
    answers
}

/// Opens the database below `state` with sled alone.
pub(crate) fn open(state: &Path) -> sled::Db {
    let open = || sled::Config::new().path(state.join("db")).flush_every_ms(None).open();
    once_free(open, |error| error.to_string().contains("could not acquire lock")).unwrap()
}

/// A value as the store writes it: version, checksum over version and payload, payload.
pub(crate) fn wrap(version: u8, payload: &[u8]) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[version]);
    hasher.update(payload);
    [&[version][..], &hasher.finalize().to_be_bytes(), payload].concat()
}

/// Copies a directory and what is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
