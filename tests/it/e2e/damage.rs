//! A state that is damaged: set aside, rebuilt, and told of; and what looks like damage and is none.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::RngExt;
use serde_json::Value;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::Kind;

use super::support::{Site, patiently};
use crate::store::raw;

/// What was set aside below the state.
fn aside(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(site.bench.path("state")).expect("there").map(|entry| entry.expect("an entry").path());
    let name = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("damaged-"));
    entries.filter(name).collect()
}

/// A loaded site whose sinks hold what its state will know nothing of: a bib that came and goes while nobody looks, one
/// that goes, and an edit.
fn lived_in() -> Site {
    let site = Site::loaded();
    let new = site.library.edits(|world| [world.create_bib(), world.create_bib()]);
    site.sync_well();
    let ids = site.library.ids(Kind::Bibs);
    site.library.edits(|world| {
        world.delete(Kind::Bibs, new[0]).unwrap();
        world.delete(Kind::Bibs, ids[3]).unwrap();
        world.edit_bib(ids[5]).unwrap();
    });
    site.library.pass_a_second();
    site
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("inside");
    file.write_all_at(&[byte[0] ^ 0x10], at).expect("writable");
}

/// A value of ours that is damaged while the database itself is sound.
fn spoil(site: &Site, tree: &str) {
    let tree = raw::open(&site.bench.path("state")).open_tree(tree).unwrap();
    let (key, value) = tree.last().unwrap().expect("something");
    let mut value = value.to_vec();
    *value.last_mut().unwrap() ^= 1;
    tree.insert(key, value).unwrap();
}

/// Each kind of damage: one run later every output holds what Sierra holds, deletions of the meantime included; nothing
/// of the old state is gone, and it is told where it lies.
#[test]
fn a_damaged_state_is_set_aside_and_rebuilt_in_one_run() {
    type Damage = fn(&Site, &Path);
    let damages: [(&str, Damage); 7] = [
        ("cut in half", |_, db| {
            let file = OpenOptions::new().write(true).open(db).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }),
        ("emptied", |_, db| drop(OpenOptions::new().write(true).truncate(true).open(db).unwrap())),
        ("gone", |_, db| fs::remove_file(db).unwrap()),
        ("overwritten", |_, db| fs::write(db, vec![0x5a; 700_000]).unwrap()),
        ("another configuration", |_, db| flip(&db.with_file_name("conf"), 20)),
        ("a ledger row", |site, _| spoil(site, "ledger")),
        ("the place of a sink", |site, _| spoil(site, "sinks")),
    ];
    // Side by side: each rebuild waits five seconds before it believes the end of a stream.
    each_at_once(damages, |(name, damage)| {
        println!("{name}");
        let site = lived_in();
        let before = site.outputs().highest_seq();
        damage(&site, &site.bench.path("state/db/db"));
        let run = site.sync(&[]).ends(0).complains("state_set_aside").complains("rebuild_begun");
        let summary = run.summary();
        site.assert_converged();
        let found = aside(&site);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        let told = Path::new(summary["set_aside"].as_str().expect("a path"));
        assert_eq!(told.canonicalize().unwrap(), found[0].canonicalize().unwrap(), "{name}");
        assert!(found[0].join("db/conf").exists(), "{name}");
        let report: Value = serde_json::from_slice(&fs::read(found[0].join("report.json")).unwrap()).unwrap();
        assert!(report["why"].as_str().is_some_and(|why| !why.is_empty()), "{name}: {report}");
        let outputs = site.outputs();
        outputs.assert_each_seq_once();
        let again = outputs.since(before);
        assert!(again.len() > 480 && again.iter().all(|event| event["source"] == "rebuild"), "{name}");
        let second = site.sync_well();
        assert_eq!(second["sinks"]["lines"]["delivered"], 0, "{name}: it ends by itself");
        assert_eq!(aside(&site).len(), 1, "{name}");
    });
}

fn each_at_once<T: Send>(cases: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| check(case));
        }
    });
}

/// Flipped bits anywhere: whatever they hit, the run ends well and the outputs are right. Once it is found, it is told.
#[test]
fn flipped_bits_anywhere_do_not_end_in_a_wrong_output() {
    let seed = RootSeed::new(23);
    println!("seed {}", seed.value());
    let mut random = seed.generator("flips");
    let rebuilt = AtomicUsize::new(0);
    let chances: Vec<u64> = (0..6).map(|_| random.random()).collect();
    each_at_once(chances, |chance| {
        let mut random = RootSeed::new(chance).generator("flips of a round");
        let site = lived_in();
        let db = site.bench.path("state/db/db");
        let length = fs::metadata(&db).unwrap().len();
        let spots: Vec<u64> = (0..200).map(|_| random.random_range(0..length)).collect();
        spots.iter().for_each(|spot| flip(&db, *spot));
        site.sync(&[]).ends(0);
        site.assert_converged();
        rebuilt.fetch_add(aside(&site).len(), Ordering::SeqCst);
    });
    let rebuilt = rebuilt.into_inner();
    println!("{rebuilt} of 6 set aside");
    assert!(rebuilt > 0);
}

/// A torn hint of sled, as an opening leaves it that was killed or met a full disk, and one that is damaged: neither is
/// damage of the state.
#[test]
fn torn_hints_of_the_database_are_no_damage() {
    let site = lived_in();
    let database = site.bench.path("state/db");
    fs::write(database.join("snap.00000000FFFFFFFF.generating"), [0; 4096]).unwrap();
    for entry in fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.file_name().unwrap().to_string_lossy().starts_with("snap.") {
            flip(&entry, 5);
        }
    }
    let summary = site.sync_well();
    assert_eq!(
        (&summary["streams"]["bibs"]["changed"], &summary["streams"]["bibs"]["deleted"]),
        (&1.into(), &2.into())
    );
    assert_eq!(aside(&site).len(), 0);
    site.assert_converged();
}

/// A state that is damaged again right away, or each time it is looked at, is left as it is: a person has to look. The
/// status is what was last known, and says why.
#[test]
fn a_state_that_is_damaged_again_is_left_and_a_sentence_says_why() {
    let site = lived_in();
    spoil(&site, "ledger");
    site.sync(&[]).ends(0);
    let first = aside(&site).remove(0);
    spoil(&site, "sinks");
    for _ in 0..2 {
        let summary = site.sync(&[]).ends(74).summary();
        let message = summary["error"]["message"].as_str().expect("a sentence");
        assert!(message.contains("damaged again") && message.contains("less than a day ago"), "{message}");
        assert!(
            message.contains(first.file_name().unwrap().to_str().unwrap())
                && message.contains("check the machine's disk"),
            "{message}"
        );
    }
    assert_eq!(aside(&site), std::slice::from_ref(&first));
    let service = site.bench.run(&["run", "--set", "ops.listen=127.0.0.1:0"]).ends(74);
    assert!(service.stderr.contains("damaged again"), "{}", service.stderr);
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!((&status["state"], &status["store"]["state"]), (&"failing".into(), &"failed".into()));
    assert!(status["message"].as_str().is_some_and(|message| message.contains("damaged")), "{status}");

    // A day later it may be done once more; and three of them are enough.
    let renamed = |stamp: &str| first.with_file_name(format!("damaged-{stamp}"));
    fs::rename(&first, renamed("20250101T000000Z")).unwrap();
    site.sync(&[]).ends(0).complains("state_set_aside");
    site.assert_converged();
    for stamp in ["20250201T000000Z", "20250301T000000Z"] {
        raw::copy(&renamed("20250101T000000Z"), &renamed(stamp));
    }
    let recent = aside(&site).into_iter().find(|path| !path.to_string_lossy().contains("-2025")).unwrap();
    fs::remove_dir_all(recent).unwrap();
    spoil(&site, "sinks");
    let run = site.sync(&[]).ends(74);
    assert!(run.stderr.contains("set aside 3 times already"), "{}", run.stderr);
}

/// The service finds damage while it works: it begins anew in its place and goes on.
#[test]
fn a_service_that_meets_damage_begins_anew_and_goes_on() {
    let site = lived_in();
    spoil(&site, "ledger");
    site.configure(|text| {
        let text = text.replace("settle = \"0s\"", "interval = \"1s\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"");
        format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n")
    });
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("the end of the rebuild", || (service.stderr().matches("rebuild_done").count() >= 2).then_some(()));
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!(status["store"]["state"], "ok", "{status}");
    service.signal("TERM");
    service.ended().ends(0);
    assert_eq!(aside(&site).len(), 1);
    site.assert_converged();
}

/// Neither a newer format, nor a lock that is held, is damage; nor is it for a command to decide that only looks.
#[test]
fn what_is_no_damage_is_refused_and_left_alone() {
    let site = lived_in();
    let lock = sierra_sync::store::StateLock::acquire(&site.bench.path("state")).expect("nobody holds it");
    site.sync(&[]).ends(75);
    drop(lock);
    let backup = site.bench.files("state");
    spoil(&site, "sinks");
    let run = site.bench.run(&["queue", "list"]).ends(74);
    assert!(run.stderr.contains("the next `sierra-sync sync`"), "{}", run.stderr);
    assert_eq!(aside(&site).len(), 0);
    fs::remove_dir_all(site.bench.path("state")).unwrap();
    backup.put(&site.bench.path("state"));
    {
        let meta = raw::open(&site.bench.path("state")).open_tree("meta").unwrap();
        meta.insert("format", raw::wrap(1, &[2, 0])).unwrap();
    }
    let summary = site.sync(&[]).ends(74).summary();
    let message = summary["error"]["message"].as_str().expect("a sentence");
    assert!(message.contains("newer than") && message.contains("update sierra-sync"), "{message}");
    assert_eq!(aside(&site).len(), 0);
}
