//! Two writers and a reader at once: what is seen is the order, whole and without anything that could be taken back.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use sierra_sync::store::{MemoryStore, Step};
use sierra_sync::sync::{Change, Seq, Store};

use crate::store::changes::{bib, slice};
use crate::store::subject::{StandingClock, each_store};

const COMMITS: u64 = 40;

/// Two writers, each with commits of one to five changes, and a reader that goes on from the last seq it saw, as a
/// sink does. Gives what each writer was told, and what the reader saw until both had ended.
fn attacked(store: &dyn Store) -> ([Vec<Vec<Seq>>; 2], Vec<Change>) {
    let (begin, at_work) = (Barrier::new(3), AtomicUsize::new(2));
    let write = |writer: u64| {
        begin.wait();
        let mut told = Vec::new();
        for commit in 0..COMMITS {
            let id = |change| writer * 1_000_000 + commit * 10 + change;
            match store.commit(slice((0..=commit % 5).map(id).map(bib).collect())) {
                Ok(seqs) => told.push(seqs),
                Err(_) => break,
            }
        }
        at_work.fetch_sub(1, Ordering::SeqCst);
        told
    };
    std::thread::scope(|scope| {
        let writers = [scope.spawn(|| write(1)), scope.spawn(|| write(2))];
        begin.wait();
        let mut seen: Vec<Change> = Vec::new();
        loop {
            let is_over = at_work.load(Ordering::SeqCst) == 0;
            let last = seen.last().map_or(Seq::ZERO, |change| change.seq);
            match store.outbox_after(last, 7, usize::MAX) {
                Ok(next) if next.is_empty() && is_over => break,
                Ok(next) => seen.extend(next),
                // It serves nothing any more.
                Err(_) => break,
            }
        }
        (writers.map(|writer| writer.join().unwrap()), seen)
    })
}

fn numbers<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<(Seq, &'a str)> {
    changes.into_iter().map(|change| (change.seq, change.id.as_str())).collect()
}

/// A reader that passed a seq never misses one below it: commit order is seq order, also between writers.
#[test]
fn whoever_reads_on_from_the_last_seq_misses_nothing_of_two_writers() {
    each_store(|subject| {
        let (told, seen) = attacked(subject.store());
        for (writer, told) in told.iter().enumerate() {
            assert_eq!(told.len() as u64, COMMITS, "writer {writer}");
            let seqs = told.concat();
            assert!(seqs.is_sorted_by(|earlier, later| earlier < later), "writer {writer}: {seqs:?}");
        }
        // Each commit is in one piece, whatever the other writer did meanwhile.
        for seqs in told.iter().flatten() {
            let first = seen.iter().position(|change| change.seq == seqs[0]).expect("it was seen");
            let piece: Vec<Seq> = seen[first..].iter().take(seqs.len()).map(|change| change.seq).collect();
            assert_eq!(&piece, seqs);
        }
        assert_eq!(seen.len() as u64, 2 * (0..COMMITS).map(|commit| 1 + commit % 5).sum::<u64>());
        subject.reopen();
        let kept = subject.store().outbox_after(Seq::ZERO, usize::MAX, usize::MAX).unwrap();
        assert_eq!(numbers(&kept), numbers(&seen));
    });
}

/// The process ends at any step of any write: what was acknowledged is there, in order; what a reader saw is, too; and
/// nothing that is written afterwards comes before it.
#[test]
fn a_crash_between_commit_and_fence_takes_back_nothing_that_anyone_saw() {
    for step in Step::OF_A_WRITE {
        for after in [0, 1, 7, 30] {
            let store = MemoryStore::new(StandingClock::at_epoch());
            store.fail_at(step, after);
            let (told, seen) = attacked(&store);
            assert!(store.is_down(), "{step:?} after {after}");
            let reopened = store.crash_and_reopen();
            let kept = reopened.outbox_after(Seq::ZERO, usize::MAX, usize::MAX).unwrap();
            let kept_seqs: Vec<Seq> = kept.iter().map(|change| change.seq).collect();
            for seq in told.iter().flatten().flatten() {
                assert!(kept_seqs.contains(seq), "acknowledged and gone: {seq:?} ({step:?} after {after})");
            }
            assert_eq!(numbers(&seen), numbers(&kept)[..seen.len()], "seen and gone ({step:?} after {after})");
            let next = reopened.commit(slice(vec![bib(9)])).unwrap()[0];
            assert!(kept_seqs.last().is_none_or(|last| *last < next), "{step:?} after {after}");
        }
    }
}
