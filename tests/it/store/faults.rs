//! A disk that fails: any write, sync or opening may, once or for good.
//!
//! The failures are the kernel's own answers: `strace` gives them in the place of the call. Writes that are cut short are
//! another test's business (`kill.rs`): a limit on the size of files makes real ones.

use rand::RngExt;
use sierra_sync::seed::RootSeed;

use super::kill::{Said, check};
use super::{child, raw};
use crate::support::strace;

/// What is called, on which file below the state directory.
const CALLS: [(&str, &str); 7] = [
    ("pwrite64", "db/db"),
    ("sync_file_range", "db/db"),
    ("fsync", "db/db"),
    ("openat", "db/db"),
    ("pwrite64", "db/acknowledged"),
    ("openat", "db/acknowledged"),
    ("openat", "db/conf"),
];
/// Acknowledgements after which a child that met no failure is ended.
const UNHARMED: usize = 12;

/// BR-117: whichever call fails, and however often, the write is refused as a failure of the disk and the store ends;
/// on a disk that is well again everything acknowledged is there. One state goes through all of it.
#[test]
fn whatever_call_fails_nothing_acknowledged_is_lost_and_it_is_not_taken_for_damage() {
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return;
    }
    let seed = RootSeed::new(29);
    println!("seed {}", seed.value());
    let mut random = seed.generator("faults");
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let (mut said, mut struck) = (Said::default(), Vec::new());
    for (call, file) in CALLS {
        for (error, for_good) in [("EIO", false), ("EIO", true), ("ENOSPC", false), ("ENOSPC", true)] {
            // Files are opened once, at the beginning.
            let from = if call == "openat" { 1 } else { random.random_range(1..10) };
            let fault = format!("{call} of {file} fails with {error} from the {from}. on, for good: {for_good}");
            let mut running =
                child::start_traced(&state, &strace::spoiler(&state.join(file), call, error, from, for_good));
            let unharmed = acknowledged(&mut running, &mut said);
            running.kill();
            let failed = said.failed.take();
            println!("{fault}: {unharmed} acknowledged, then {failed:?}");
            assert!(unharmed == UNHARMED || failed.as_deref() == Some("Io"), "{fault}: {failed:?}");
            struck.extend(failed.map(|_| (call, file)));
            check(&child::open(&state).unwrap_or_else(|error| panic!("{fault}: {error}")), &said);
        }
    }
    struck.dedup();
    println!("{struck:?}");
    assert_eq!(struck.len(), CALLS.len(), "{struck:?}");
}

/// A disk that gives nothing while a state is opened. sled takes what it cannot read for what was never written, and cuts
/// it off: so it is not let near, and on a disk that is well again everything is there.
#[test]
fn what_cannot_be_read_at_an_opening_is_not_cut_off() {
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole");
    let mut before = Said::default();
    let mut running = child::start(&whole, "");
    acknowledged(&mut running, &mut before);
    running.kill();
    running.lines.iter().for_each(|line| before.hear(&line));
    for from in 1..=6 {
        let state = directory.path().join(format!("from-{from}"));
        raw::copy(&whole, &state);
        let mut said = Said { acknowledged: before.acknowledged, confirmed: before.confirmed, failed: None };
        let spoiler = strace::spoiler(&state.join("db/db"), "pread64,read", "EIO", from, true);
        let mut running = child::start_traced(&state, &spoiler);
        let unharmed = acknowledged(&mut running, &mut said);
        running.kill();
        running.lines.iter().for_each(|line| said.hear(&line));
        println!("no read from the {from}. on: {unharmed} acknowledged, then {:?}", said.failed);
        assert!(unharmed == UNHARMED || said.failed.as_deref() == Some("Io"), "{said:?}");
        check(&child::open(&state).unwrap_or_else(|error| panic!("from the {from}. on: {error}")), &said);
    }
}

/// Hears a child until it has acknowledged so much that no failure is to come, or has ended.
fn acknowledged(running: &mut child::Running, said: &mut Said) -> usize {
    let mut unharmed = 0;
    for line in running.lines.iter() {
        said.hear(&line);
        unharmed += usize::from(line.starts_with("acknowledged "));
        if unharmed == UNHARMED {
            break;
        }
    }
    unharmed
}
