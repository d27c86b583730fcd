//! The suite itself: as many seeds as are asked for, on every core.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::case::{Case, How};
use super::fault::KINDS;
use super::play::play;
use super::trouble::SecondSink;
use crate::support::Bends;

/// Plays what `SIM_SEED` names and says what happens. `just` is not needed for it.
const PLAY: &str = "SIM_TRACE=1 cargo test --test it simulation::suite::whatever -- --nocapture";
/// So many are played with every run of the tests.
const SEEDS: u64 = 500;

/// What is to be played: `SIM_SEED` alone, or `SIM_SEEDS` of them from `SIM_FROM` on.
fn seeds() -> (u64, u64) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
    };
    match number("SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (number("SIM_FROM").unwrap_or(1), number("SIM_SEEDS").unwrap_or(SEEDS)),
    }
}

/// CUR-1, CUR-2, WIN-1, OUT-1, OUT-2, PRV-1.
#[test]
fn whatever_happens_both_sinks_end_with_what_the_library_holds() {
    let (from, count) = seeds();
    let (next, failed) = (AtomicU64::new(from), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + count {
                return;
            }
            if let Err(why) = play(&Case::of(seed), &Bends::default()) {
                println!("seed {seed} fails; play it again with\n    SIM_SEED={seed} {PLAY}\n{:#?}", Case::of(seed));
                failed.lock().unwrap().push((seed, why));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(worker);
        }
    });
    let failed = failed.into_inner().unwrap();
    println!("{count} seeds from {from}, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {count} seeds fail, the first: {:?}", failed.len(), failed.first());
}

/// A seed is a whole story: played again, everything happens again, in the same order and at the same moment.
#[test]
fn a_number_tells_the_same_story_each_time() {
    for seed in (1..=SEEDS).step_by(50) {
        let told = || play(&Case::of(seed), &Bends::default()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let (first, second) = (told(), told());
        let apart = first.split("), ").zip(second.split("), ")).find(|(one, other)| one != other);
        assert!(first == second, "seed {seed} goes two ways: {apart:?}");
    }
}

/// The seeds of every run meet every fault, every trouble of a sink, and deaths at every step.
#[test]
fn the_seeds_of_a_run_leave_nothing_out() {
    let cases: Vec<Case> = (1..=SEEDS).map(Case::of).collect();
    let faults: BTreeSet<u32> = cases.iter().flat_map(|case| &case.faults).map(|(kind, _)| *kind).collect();
    assert_eq!(faults.len(), usize::try_from(KINDS).unwrap_or_default());
    for trouble in SecondSink::ALL {
        assert!(cases.iter().any(|case| case.second == trouble), "{trouble:?}");
    }
    let deaths: BTreeSet<String> =
        cases.iter().flat_map(|case| &case.acts).filter_map(|act| Some(format!("{:?}", act.dies?.0))).collect();
    assert!(deaths.len() >= 3, "{deaths:?}");
    let sweeps = cases.iter().flat_map(|case| &case.acts).filter(|act| matches!(act.how, How::Sweeps { .. }));
    assert!(sweeps.filter(|act| act.dies.is_some()).count() > 30);
    let longest = cases.iter().map(|case| case.acts.iter().map(|act| act.lasts).sum::<Duration>()).max();
    assert!(longest > Some(Duration::from_secs(5_400)), "{longest:?}");
}
