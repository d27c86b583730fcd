//! sled's blob files, which are neither synced nor reclaimed: none may ever be made.

use std::fs;

use rand::{Rng, RngExt};
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::seed::RootSeed;
use sierra_sync::sync::Seq;
use sierra_sync::sync::ports::{QuarantineEntry, Slice, Snapshot, Store};

use super::changes::{bib_holding, number, position, positions, quarantined, slice};
use super::child;

/// Changes of a slice: as many as capture puts into one.
const SLICE: u64 = 200;

/// Ten thousand payloads from 100 bytes to 2 MB.
#[test]
fn payloads_of_any_size_make_no_blob_file() {
    let mut random = RootSeed::new(5).generator("payloads");
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let store = child::open(&state).unwrap();
    store.set_sink_positions(&positions(&[("archive", position(Seq::ZERO, &Stream::ALL))])).unwrap();
    let blobs = || fs::read_dir(state.join("db/blobs")).unwrap().count();
    for page in 0..50 {
        let changes = (0..SLICE).map(|index| {
            let length = match index {
                0 if page % 10 == 0 => 2_000_000,
                0..4 => random.random_range(4_000..70_000),
                4..50 => random.random_range(100..8_000),
                _ => random.random_range(100..600),
            };
            bib_holding(page * SLICE + index, noise(&mut random, length))
        });
        let seqs = store.commit(slice(changes.collect())).unwrap();
        if page % 5 == 4 && page < 40 {
            store.set_sink_positions(&positions(&[("archive", position(seqs[0], &Stream::ALL))])).unwrap();
        }
    }
    let many: Vec<RecordNumber> = (0..100_000).map(|index| number(index * 1_000_003)).collect();
    let bad = |index: usize| QuarantineEntry {
        payload: Some("{".repeat(200_000)),
        ..quarantined(Stream::Bibs, &index.to_string(), "cause")
    };
    let others = Slice { links: vec![(number(1), many)], quarantined: (0..10).map(bad).collect(), ..Slice::default() };
    store.commit(others).unwrap();
    store.save_snapshot(Snapshot::History, &vec![7; 1_000_000]).unwrap();
    assert_eq!(blobs(), 0);
    drop(store);
    assert_eq!(blobs(), 0);
    let store = child::open(&state).unwrap();
    assert_eq!(store.outbox_usage().unwrap().entries, 11 * SLICE - 1);
    assert_eq!(store.snapshot(Snapshot::History).unwrap().unwrap().len(), 1_000_000);
}

/// Text that does not compress.
fn noise(random: &mut impl Rng, length: usize) -> String {
    let mut bytes = vec![0; length];
    random.fill_bytes(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte = b' ' + (*byte & 0x5f) % 95);
    String::from_utf8(bytes).unwrap()
}
