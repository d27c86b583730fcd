//! The truth about crashes: processes that are really killed, and a disk that is really full.

use rand::RngExt;
use sierra_sync::record::Stream;
use sierra_sync::seed::RootSeed;
use sierra_sync::store::SledStore;
use sierra_sync::sync::ports::{Store, StoreErrorKind};
use sierra_sync::sync::{Change, Payload, Seq};

use super::changes::shown;
use super::child::{self, SLICE};

/// What the child said it had done.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) acknowledged: Option<u64>,
    pub(super) confirmed: Seq,
    pub(super) failed: Option<String>,
}

impl Said {
    pub(super) fn hear(&mut self, line: &str) {
        if let Some(round) = line.strip_prefix("acknowledged ") {
            self.acknowledged = Some(round.parse().unwrap());
        } else if let Some(seq) = line.strip_prefix("confirmed ") {
            self.confirmed = Seq::new(seq.parse().unwrap()).unwrap();
        } else if let Some(kind) = line.strip_prefix("failed ") {
            self.failed = Some(kind.to_owned());
        }
    }
}

/// BR-117, BR-071: ten kills at random moments; every slice is whole or absent, and none that was acknowledged is
/// absent. Thousands of kills of the whole program are another test's business.
#[test]
fn nothing_acknowledged_is_lost_or_torn_when_the_process_is_killed() {
    let seed = RootSeed::new(11);
    println!("seed {}", seed.value());
    let mut random = seed.generator("kills");
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut said = Said::default();
    for kill in 0..10 {
        let mut running = child::start(&state, "");
        for line in running.lines.iter().take(random.random_range(1..25)) {
            said.hear(&line);
        }
        // Somewhere within the next commit.
        let moment = std::time::Duration::from_micros(random.random_range(0..3_000));
        if let Ok(line) = running.lines.recv_timeout(moment) {
            said.hear(&line);
        }
        running.kill();
        running.lines.iter().for_each(|line| said.hear(&line));
        assert_eq!(said.failed, None, "after kill {kill}");
        check(&child::open(&state).unwrap(), &said);
    }
    assert!(said.acknowledged.unwrap() >= 10, "{said:?}");
}

/// BR-117: the write that fails is refused, the store ends, and what was acknowledged is there when space is.
#[test]
fn a_full_disk_ends_the_store_and_loses_nothing_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    // Files may not grow beyond 3 MiB, and the process is told so by an error instead of a signal.
    let running = child::start(&state, "trap '' XFSZ; ulimit -f 3072;");
    let mut said = Said::default();
    running.lines.iter().for_each(|line| said.hear(&line));
    drop(running);
    assert_eq!(said.failed.as_deref(), Some("Io"));
    assert!(said.acknowledged.is_some(), "{said:?}");
    check(&child::open(&state).unwrap(), &said);
}

/// BR-062: the second process is told who is there.
#[test]
fn a_second_process_is_refused_while_the_first_one_lives() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut running = child::start(&state, "");
    running.lines.iter().find(|line| line == "opened").unwrap();
    let refused = child::open(&state).unwrap_err();
    let pid = format!("(pid {})", running.pid());
    assert!(matches!(&refused.kind, StoreErrorKind::Held { holder } if holder.ends_with(&pid)), "{refused}");
    // BR-061: and once it is gone, however it went, its traces block nobody.
    running.kill();
    child::open(&state).unwrap();
}

/// Holds a store to what its child said it had done.
pub(super) fn check(store: &SledStore, said: &Said) {
    let rows = store.ledger(Stream::Bibs).unwrap();
    let position = rows.first().and_then(|row| row.position).map(|position| position.value());
    let acknowledged = said.acknowledged.map(|round| (round + 1) * SLICE - 1);
    assert!(position >= acknowledged, "the position {position:?} lies before what was acknowledged, {said:?}");

    let changes = store.outbox_after(Seq::ZERO, usize::MAX, usize::MAX).unwrap();
    let confirmed = store.sink_positions().unwrap().get("archive").map_or(Seq::ZERO, |sink| sink.confirmed);
    assert!(confirmed >= said.confirmed, "a confirmation came undone: {confirmed} after {said:?}");
    assert!(changes.iter().all(|change| change.seq > confirmed), "a trimmed change rose again");

    // From the first one that waits to the position: no hole, no half slice, every byte as it was written.
    let first = changes.first().map_or(0, id);
    let last = position.map_or(0, |position| position + 1);
    assert_eq!(changes.iter().map(id).collect::<Vec<_>>(), (first..last).collect::<Vec<_>>());
    for slice in changes.chunk_by(|one, next| id(one) / SLICE == id(next) / SLICE) {
        // The first that waits may be in the midst of its slice.
        let expected =
            child::slice_of(id(&slice[0]) / SLICE).changes.into_iter().skip((id(&slice[0]) % SLICE) as usize);
        for (change, expected) in slice.iter().zip(expected) {
            assert_eq!(shown(change), shown(&Change { seq: change.seq, ..expected }));
            assert!(matches!(&change.payload, Payload::Bib { marcxml, .. } if *marcxml == child::text_of(id(change))));
        }
    }
    let usage = store.outbox_usage().unwrap();
    assert_eq!(usage.entries, changes.len() as u64);
    assert_eq!(store.sink_positions().unwrap().get("archive").map_or(0, |sink| sink.pending), usage.entries);
    let remembered = store.remembered_after(Stream::Bibs, None, usize::MAX).unwrap();
    assert_eq!(remembered.len() as u64, last);
}

fn id(change: &Change) -> u64 {
    change.id.parse().unwrap()
}
