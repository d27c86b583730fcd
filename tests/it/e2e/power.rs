//! Losses of power under the real binary: a run is recorded call by call, outputs included, and whatever a disk makes of
//! what was not synced, the next run ends with what Sierra holds.

use std::collections::BTreeMap;
use std::fs;

use rand::RngExt;
use sierra_sync::simulator::Kind;

use super::support::{Outputs, Site};
use crate::support::power::{Disk, Promise, losses_asked_for, moments};
use crate::support::strace;

/// Losses of power in one run of this test; `SIERRA_SYNC_POWER_LOSSES` asks for more.
const LOSSES: usize = 16;

/// BR-071, BR-117: state and outputs as they are found after a loss of power, at random moments of a pass that captures
/// and delivers.
#[test]
fn a_pass_that_loses_its_power_is_made_good_by_the_next_one() {
    let Some((losses, mut random)) = losses_asked_for(LOSSES) else { return };
    let site = Site::loaded();
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    site.library.edits(|world| {
        bibs[..150].iter().for_each(|id| world.edit_bib(*id).unwrap());
        bibs[150..170].iter().for_each(|id| world.delete(Kind::Bibs, *id).unwrap());
        items[..100].iter().for_each(|id| world.set_status(*id, 'm').unwrap());
    });
    let root = site.bench.path("");
    let mut disk = Disk::holding(&root);
    let log = tempfile::NamedTempFile::new().unwrap();
    let recorder = strace::recorder(log.path());
    site.bench.start_traced(&recorder, &["sync", "--json"]).ended().ends(0);
    site.assert_converged();
    let steps = strace::read(&fs::read_to_string(log.path()).unwrap(), &root);

    let mut moments = moments(losses, steps.len(), &mut random);
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (moment, step) in steps.iter().enumerate() {
        disk.play(step);
        while moments.next_if_eq(&moment).is_some() {
            let promise = if random.random_bool(0.5) { Promise::Journal } else { Promise::Posix };
            println!("moment {moment} of {}, {promise:?}", steps.len());
            let bench = site.bench.another();
            disk.lose_power(promise, &mut random, &bench.path(""));
            let summary = bench.run(&["sync", "--json"]).ends(0).summary();
            site.assert_holds_all(&Outputs::read(&bench.path("lines"), &bench.path("xml")));
            let kind = if summary["set_aside"].is_null() { "went on" } else { "was begun anew" };
            *found.entry(kind.to_owned()).or_default() += 1;
        }
    }
    println!("{losses} losses of power in {} calls: {found:?}", steps.len() / 2);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["went on"], "a loss of power is no damage");
}
