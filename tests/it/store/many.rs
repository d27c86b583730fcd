//! A long queue: what waits for a sink that is away for days must not keep a restart waiting.

use std::time::Duration;

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::Store;
use sierra_sync::sync::{RememberedKey, Seq};
use tokio::time::Instant;

use super::changes::{bib, live, number, position, positions, slice};
use super::child;

const ENTRIES: u64 = 100_000;
const SLICE: u64 = 200;

/// With 10⁵ entries queued the store is ready in a small part of the time that it took to queue them, and so is the
/// first one of them for a sink; measuring what waits costs the same as with none. `benches/store.rs` has the figures of
/// an optimised build, memory and size on disk.
#[test]
fn a_store_with_a_hundred_thousand_queued_entries_is_ready_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let store = child::open(&state).unwrap();
    store.set_sink_positions(&positions(&[("archive", position(Seq::ZERO, &Stream::ALL))])).unwrap();
    let began = Instant::now();
    for page in 0..ENTRIES / SLICE {
        let ids = || page * SLICE..(page + 1) * SLICE;
        let mut slice = slice(ids().map(bib).collect());
        slice.remembered = ids().map(|id| (RememberedKey::Bib(number(id)), live(0))).collect();
        store.commit(slice).unwrap();
    }
    let queued = began.elapsed();
    drop(store);

    let began = Instant::now();
    let store = child::open(&state).unwrap();
    let first = store.outbox_after(Seq::ZERO, 1, usize::MAX).unwrap();
    let ready = began.elapsed();
    assert_eq!((first.len(), store.outbox_usage().unwrap().entries), (1, ENTRIES));
    println!("{ENTRIES} entries queued in {queued:?}; ready in {ready:?}");
    assert!(ready * 4 < queued, "ready in {ready:?}, queued in {queued:?}");

    let began = Instant::now();
    for _ in 0..1_000 {
        store.outbox_usage().unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(5), "a thousand looks at the usage took {:?}", began.elapsed());
    let last = store.last_seq().unwrap();
    store.set_sink_positions(&positions(&[("archive", position(last, &Stream::ALL))])).unwrap();
    assert_eq!(store.outbox_usage().unwrap().entries, 0);
}
