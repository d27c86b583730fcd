//! A disk whose calls fail under the real binary: the run ends in a sentence, nothing is lost, nothing is taken for
//! damage, and the next run on a sound disk goes on. The failures are given by the kernel, through `strace`.

use std::fs;

use rand::RngExt;
use rand::rngs::StdRng;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::Kind;

use super::support::{Run, Site, patiently};
use crate::support::strace;

/// What is called, on which file of the state.
const CALLS: [(&str, &str); 6] = [
    ("pwrite64", "db/db"),
    ("sync_file_range", "db/db"),
    ("fsync", "db/db"),
    ("openat", "db/db"),
    ("pwrite64", "db/acknowledged"),
    ("openat", "lock"),
];

fn spoiler(site: &Site, (call, file): (&str, &str), error: &str, from: u64, for_good: bool) -> String {
    strace::spoiler(&site.bench.path("state").join(file), call, error, from, for_good)
}

/// Staff edit some bibs, so that there is something to write.
fn edit(site: &Site, random: &mut StdRng) {
    let ids = site.library.ids(Kind::Bibs);
    let from = random.random_range(0..ids.len() - 60);
    site.library.edits(|world| ids[from..from + 60].iter().for_each(|id| world.edit_bib(*id).unwrap()));
    site.library.pass_a_second();
}

/// 74, in one sentence of ours that names the place and says what to do.
#[track_caller]
fn assert_ends_in_a_sentence(site: &Site, run: Run) {
    let run = run.ends(74);
    let message = run.summary()["error"]["message"].as_str().expect("a sentence").to_owned();
    for part in [&*site.bench.path("state").to_string_lossy(), " MiB free)", "then start again", "is kept"] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    for noise in ["sled", "panicked", "Os {"] {
        assert!(!run.stderr.contains(noise), "{noise} in {}", run.stderr);
    }
}

#[track_caller]
fn assert_nothing_was_set_aside(site: &Site) {
    let entries = fs::read_dir(site.bench.path("state")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("damaged-")), "a failing disk is no damage: {names:?}");
}

/// BR-117: one call of each kind fails once, and each kind fails for good.
#[test]
fn a_run_whose_disk_fails_ends_in_a_sentence_and_the_next_one_goes_on() {
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return;
    }
    let seed = RootSeed::new(31);
    println!("seed {}", seed.value());
    let mut random = seed.generator("failing disk");
    let site = Site::loaded();
    let mut refused = 0;
    for call in CALLS {
        for (error, for_good) in [("EIO", false), ("ENOSPC", true)] {
            edit(&site, &mut random);
            let from = if call.0 == "openat" { 1 } else { random.random_range(1..8) };
            println!("{call:?} fails with {error} from the {from}. on, for good: {for_good}");
            let spoiler = spoiler(&site, call, error, from, for_good);
            let run = site.bench.start_traced(&spoiler, &["sync", "--json"]).ended();
            // It may have made fewer calls.
            if run.code != Some(0) {
                assert_ends_in_a_sentence(&site, run);
                refused += 1;
            }
            assert_nothing_was_set_aside(&site);
            site.sync_well();
            site.assert_converged();
        }
    }
    site.outputs().assert_each_seq_once();
    println!("{refused} of {} runs refused", 2 * CALLS.len());
    assert!(refused >= CALLS.len(), "{refused}");
}

/// A disk that stays broken is met again by every run: each ends in the same sentence, and none makes it worse.
#[test]
fn a_disk_that_stays_broken_is_told_by_every_run_and_nothing_is_set_aside() {
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return;
    }
    let site = Site::loaded();
    edit(&site, &mut RootSeed::new(31).generator("broken disk"));
    for _ in 0..4 {
        let spoiler = spoiler(&site, ("fsync", "db/db"), "EIO", 1, true);
        assert_ends_in_a_sentence(&site, site.bench.start_traced(&spoiler, &["sync", "--json"]).ended());
        assert_nothing_was_set_aside(&site);
    }
    site.sync_well();
    site.assert_converged();
}

/// A service whose disk fails in its midst ends by itself, so that whoever watches it knows; started again it goes on.
#[test]
fn a_service_whose_disk_fails_ends_and_goes_on_when_it_is_started_again() {
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return;
    }
    let mut random = RootSeed::new(31).generator("failing service");
    let site = Site::loaded();
    site.configure(|text| {
        let streams = "interval = \"1s\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"";
        format!("{}\n[ops]\nlisten = \"127.0.0.1:0\"\n", text.replace("settle = \"0s\"", streams))
    });
    edit(&site, &mut random);
    let spoiler = spoiler(&site, ("fsync", "db/db"), "EIO", 12, false);
    let service = site.bench.start_traced(&spoiler, &["run", "--log-format", "json"]);
    let run = service.ended().ends(74);
    assert!(run.stderr.contains("is kept") && !run.stderr.contains("panicked"), "{}", run.stderr);
    assert_nothing_was_set_aside(&site);
    edit(&site, &mut random);
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("a service that is ready", || service.stderr().contains("service_started").then_some(()));
    service.signal("TERM");
    service.ended().ends(0);
    site.sync_well();
    site.assert_converged();
}
