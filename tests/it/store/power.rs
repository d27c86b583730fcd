//! Losses of power: a run is recorded call by call, and whatever the disk makes of what was not synced, the store that
//! is found afterwards holds everything it acknowledged.

use std::collections::BTreeMap;
use std::path::Path;

use rand::RngExt;
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{Store, StoreErrorKind};

use super::child::{self, SLICE};
use super::kill::{Said, check};
use crate::support::power::{Disk, Promise, losses_asked_for, moments};
use crate::support::strace::{self, Call, Step};

/// Losses of power in one run of this test; `SIERRA_SYNC_POWER_LOSSES` asks for more.
const LOSSES: usize = 48;
/// Acknowledgements of each life of the child.
const ACKNOWLEDGED: usize = 24;

/// BR-117, BR-118: three lives of a process that is killed are recorded, and the power fails at random moments of them,
/// between the calls and within. Both kinds of file system are tried.
#[test]
fn nothing_acknowledged_is_lost_when_the_power_fails_at_any_moment() {
    let Some((losses, mut random)) = losses_asked_for(LOSSES) else { return };
    let root = tempfile::tempdir().unwrap();
    let steps = recorded(root.path());

    let mut moments = moments(losses, steps.len(), &mut random);
    let (mut disk, mut said) = (Disk::empty(root.path()), Said::default());
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (moment, step) in steps.iter().enumerate() {
        disk.play(step);
        if let Step::Begun(_, Call::Said(line)) = step {
            said.hear(line.trim_end());
        }
        while moments.next_if_eq(&moment).is_some() {
            let promise = if random.random_bool(0.5) { Promise::Journal } else { Promise::Posix };
            let after = tempfile::tempdir().unwrap();
            disk.lose_power(promise, &mut random, after.path());
            println!("moment {moment} of {}, {promise:?}, {said:?}", steps.len());
            *found.entry(after_loss(&after.path().join("state"), &said)).or_default() += 1;
        }
    }
    println!("{losses} losses of power in {} calls, {} acknowledged: {found:?}", steps.len() / 2, acknowledged(&said));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["opened"], "a loss of power is no damage");
}

/// What the child did in three lives, each ended by a kill.
fn recorded(root: &Path) -> Vec<Step> {
    let mut text = String::new();
    for life in 0..3 {
        let log = root.join(format!("life-{life}"));
        let mut running = child::start_traced(&root.join("state"), &strace::recorder(&log));
        let told = running.lines.iter().filter(|line| line.starts_with("acknowledged ")).take(ACKNOWLEDGED).count();
        running.kill();
        assert_eq!(told, ACKNOWLEDGED, "life {life}");
        text.push_str(&std::fs::read_to_string(log).unwrap());
    }
    strace::read(&text, root)
}

/// Opens what was found, holds it to what was said before, and lets it work on.
fn after_loss(state: &Path, said: &Said) -> String {
    let store = match child::open(state) {
        Ok(store) => store,
        Err(error) if error.kind == StoreErrorKind::Corrupt => {
            println!("{error}");
            return "reported as damaged".into();
        }
        Err(error) => panic!("{error}"),
    };
    check(&store, said);
    assert!(store.verify().unwrap().is_sound());
    let position = store.ledger(Stream::Bibs).unwrap().first().and_then(|row| row.position);
    let next = position.map_or(0, |position| position.value() / SLICE + 1);
    if !store.sink_positions().unwrap().is_empty() {
        store.commit(child::slice_of(next)).unwrap();
        drop(store);
        check(&child::open(state).unwrap(), &Said { acknowledged: Some(next), ..Said::default() });
    }
    "opened".into()
}

fn acknowledged(said: &Said) -> u64 {
    said.acknowledged.map_or(0, |round| round + 1)
}
