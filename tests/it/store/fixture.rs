//! Stores written by earlier versions, which must stay readable for ever.

use std::fs;
use std::path::{Path, PathBuf};

use sierra_sync::privacy::Keyring;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::store::SledStore;
use sierra_sync::sync::ports::{QuarantineEntry, Slice, Snapshot, Store};
use sierra_sync::sync::{LedgerRow, Remembered, RememberedKey, Seq};

use super::changes::{
    bib, bib_holding, deleted, item, live, number, patron, position, positions, quarantined, row, shown, slice,
};
use super::subject::{self, StandingClock};

/// What `fixtures/store/v1` was filled with. Never changed: a new format gets a fixture of its own.
fn filling() -> Slice {
    let keyring = Keyring::for_tests(1);
    let sealed_id = keyring.seal_number("fixture", RecordNumber::new(1_200_345));
    Slice {
        remembered: vec![
            (RememberedKey::Bib(number(1)), live(0)),
            (RememberedKey::Item(number(3)), live(60)),
            (RememberedKey::Patron([7; 16]), Remembered { sealed_id, ..live(120) }),
        ],
        links: vec![(number(3), vec![number(1), number(2)])],
        quarantined: vec![
            QuarantineEntry { payload: Some("{\"id\":5}".repeat(1_000)), ..quarantined(Stream::Bibs, "5", "cause") },
            QuarantineEntry { sink: Some("archive".into()), ..quarantined(Stream::Patrons, "0f", "cause") },
        ],
        rows: vec![row(Stream::Bibs, 1), LedgerRow { resume_at: None, ..row(Stream::Patrons, 2) }],
        ..slice(vec![
            bib(1),
            bib_holding(2, (0..2_000).map(|index| format!("<{}>", index * index)).collect()),
            item(3, &[1]),
            deleted(Stream::Items, 4),
            patron("0f0f", "north"),
        ])
    }
}

fn write(store: &SledStore) {
    store.set_sink_positions(&positions(&[("archive", position(Seq::ZERO, &Stream::ALL))])).unwrap();
    store.commit(filling()).unwrap();
    store.save_snapshot(Snapshot::Quota, b"{\"limit\":1000}").unwrap();
}

/// All that was filled in, as text.
fn read(store: &SledStore) -> Vec<String> {
    let mut read: Vec<_> = store.outbox_after(Seq::ZERO, 100, usize::MAX).unwrap().iter().map(shown).collect();
    for stream in Stream::ALL {
        read.push(format!("{:?}", store.ledger(stream).unwrap()));
        read.push(format!("{:?}", store.remembered_after(stream, None, 100).unwrap()));
        read.push(format!("{:?}", store.quarantine(stream, 100).unwrap()));
    }
    read.push(format!("{:?}", store.links(&[number(3)]).unwrap()));
    read.push(format!("{:?}", store.sink_positions().unwrap()));
    read.push(format!("{:?}", store.snapshot(Snapshot::Quota).unwrap()));
    read.push(format!("{:?}", store.last_seq().unwrap()));
    read.push(format!("{:?}", store.outbox_usage().unwrap().entries));
    read
}

#[test]
fn the_store_of_format_1_opens_and_reads_as_it_was_written() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store/v1");
    let clock = StandingClock::at_epoch();
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let fresh = subject::open_sled(&new, &clock);
    write(&fresh);
    let expected = read(&fresh);
    if std::env::var_os("SIERRA_SYNC_WRITE_FIXTURE").is_some() {
        drop(fresh);
        pack(&subject::settings(&new).path.join("db"), &fixture);
    }

    unpack(&fixture, &subject::settings(&old).path.join("db"));
    let opened = subject::open_sled(&old, &clock);
    assert_eq!(read(&opened), expected);
    assert_eq!(opened.boot_number(), 2);
    assert!(opened.next_row_id().unwrap() > 0);
    assert!(opened.commit(slice(vec![bib(9)])).unwrap()[0] > Seq::ZERO);
}

/// Each file of the database, compressed: sled's files are mostly zeros.
fn pack(database: &Path, fixture: &Path) {
    for path in files(database) {
        let packed = zstd::encode_all(&fs::read(&path).unwrap()[..], 19).unwrap();
        fs::create_dir_all(fixture).unwrap();
        fs::write(fixture.join(format!("{}.zst", path.file_name().unwrap().to_string_lossy())), packed).unwrap();
    }
}

fn unpack(fixture: &Path, database: &Path) {
    fs::create_dir_all(database).unwrap();
    for path in files(fixture).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "zst")) {
        let file = database.join(path.file_stem().unwrap());
        fs::write(file, zstd::decode_all(&fs::read(&path).unwrap()[..]).unwrap()).unwrap();
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).collect()
}
