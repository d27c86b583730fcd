//! A disk that takes nothing more: one sentence that names it, nothing lost, and the next run goes on.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sierra_sync::simulator::Kind;

use super::support::{Library, Run, Site};

#[track_caller]
fn assert_says_what_to_do(run: &Run, state: &Path, problem: &str) {
    let summary: Value = run.summary();
    let message = summary["error"]["message"].as_str().expect("a sentence");
    for part in [&*state.to_string_lossy(), problem, " MiB free)", "then start again", "is kept"] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    // What was done until then is not known, and is not given as nothing.
    let has_streams = summary["streams"].as_object().is_some_and(|streams| !streams.is_empty());
    assert_eq!(message.contains("cut short"), !has_streams, "{summary}");
    for noise in ["sled", "panicked", "Os {"] {
        assert!(!run.stderr.contains(noise), "{noise} in {}", run.stderr);
    }
}

/// Files that may not grow: every write beyond the limit fails half done, at many different places.
#[test]
fn a_state_that_may_not_grow_ends_in_a_sentence_and_loses_nothing() {
    let site = Site::new(Library::sized(300, 100, 0));
    // No file of a sink comes near the least of these limits.
    for kibibytes in [1_024, 1_536, 2_048] {
        let shell = format!("trap '' XFSZ; ulimit -f {kibibytes};");
        let run = site.bench.start_under(&shell, &["sync", "--json", "--set", "sinks.lines.paused=true"]).ended();
        if run.code == Some(0) {
            break;
        }
        let run = run.ends(74);
        assert_says_what_to_do(&run, &site.bench.path("state"), "may not grow (");
    }
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!(status["store"]["state"], "ok", "{status}");
    site.sync_well();
    site.assert_converged();
    let entries = fs::read_dir(site.bench.path("state")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("damaged-")), "a full disk is no damage: {names:?}");
}

/// A file system that is really full, where this user may mount one.
#[test]
fn a_disk_that_is_full_is_named_with_its_room_and_the_status_still_tells() {
    let Some(disk) = Disk::mounted() else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let site = Site::loaded();
    let state = disk.0.path().join("state");
    super::super::store::raw::copy(&site.bench.path("state"), &state);
    let at = format!("state.path={}", state.display());
    let at: &[&str] = &["--set", &at, "--set", "state.min_free=0B"];
    site.sync(at).ends(0);
    let ids = site.library.ids(Kind::Bibs);
    for round in 0..2 {
        let filler = disk.fill();
        // What is there of the database's file is used first; what waits for a sink that is away needs more soon.
        let away = [at, &["--set", "sinks.lines.paused=true"]].concat();
        let refused = (0..20).find_map(|_| {
            site.library.edits(|world| ids.iter().for_each(|id| world.edit_bib(*id).unwrap()));
            site.library.pass_a_second();
            let run = site.sync(&away);
            (run.code != Some(0)).then_some(run)
        });
        assert_says_what_to_do(&refused.expect("it is full").ends(74), &state, "is full (");
        let status = site.bench.run(&[&["status", "--json"], at].concat()).ends(0).json_lines().remove(0);
        assert!(status["streams"]["bibs"].is_object(), "{status}");
        fs::remove_file(filler).unwrap();
        let summary = site.sync(at).ends(0).summary();
        assert_eq!(summary["set_aside"], Value::Null, "round {round}: {summary}");
        site.assert_converged();
    }
}

/// A small file system in memory.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mounted() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(directory.path()).output();
        mounted.is_ok_and(|done| done.status.success()).then_some(Self(directory))
    }

    /// Takes all the room that is left.
    fn fill(&self) -> std::path::PathBuf {
        let path = self.0.path().join("filler");
        let mut file = fs::File::create(&path).unwrap();
        let block = [0_u8; 4096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().ok();
    }
}
