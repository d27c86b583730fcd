//! Files that vanish behind the program, and a state that is older than its files.

use std::fs;

use serde_json::Value;

use super::support::Site;

#[track_caller]
fn assert_needs_reload(site: &Site, summary: &Value, missing: &str) {
    let lines = &summary["sinks"]["lines"];
    assert_eq!((&lines["state"], &lines["error"]["kind"]), (&"needs_reload".into(), &"needs_reload".into()));
    let message = lines["error"]["message"].as_str().expect("a text");
    assert!(message.contains(missing), "{message}");
    assert!(
        lines["error"]["hint"].as_str().expect("a text").contains("sierra-sync backfill bibs --sink lines --force")
    );
    let status = &site.bench.run(&["status", "--json"]).ends(0).json_lines()[0];
    assert_eq!((&status["state"], &status["sinks"]["lines"]["state"]), (&"degraded".into(), &"needs_reload".into()));
    let gaps = status["sinks"]["lines"]["gaps"].as_array().expect("a list");
    assert_eq!((gaps.len(), gaps[0]["error"].as_str().expect("a text").contains(missing)), (1, true), "{gaps:?}");
    let page = site.bench.run(&["status"]).ends(0).stdout;
    assert!(page.contains("Sink lines must be loaded again") && page.contains(missing), "{page}");
}

#[test]
fn deleted_files_are_told_by_exit_code_summary_and_status() {
    let site = Site::loaded();
    let bibs = fs::read_dir(site.bench.path("lines/bibs")).expect("there").map(|entry| entry.expect("an entry").path());
    let file = bibs.last().expect("a file");
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    fs::remove_file(&file).expect("there");
    let run = site.sync(&[]).ends(3).complains("sink_lacks");
    assert_needs_reload(&site, &run.summary(), &format!("bibs/{name} is gone (220 changes, "));
    let later = site.sync(&[]).ends(0).summary();
    assert_needs_reload(&site, &later, &name);
    assert_eq!(later["sinks"]["xml"]["state"], "ok");
}

/// A second file that goes while the sink waits for its load is a gap of its own.
#[test]
fn a_file_deleted_after_another_is_told_as_well() {
    let site = Site::loaded();
    for (stream, gaps) in [("bibs", 1), ("items", 2)] {
        let files = fs::read_dir(site.bench.path(&format!("lines/{stream}"))).expect("there");
        files.for_each(|entry| fs::remove_file(entry.expect("an entry").path()).expect("there"));
        let summary = site.sync(&[]).summary();
        assert!(summary["sinks"]["lines"]["error"]["message"].as_str().is_some_and(|text| text.contains(stream)));
        for _ in 0..2 {
            let status = &site.bench.run(&["status", "--json"]).ends(0).json_lines()[0];
            let told = status["sinks"]["lines"]["gaps"].as_array().expect("a list");
            assert_eq!(told.len(), gaps, "{told:?}");
            assert!(told[gaps - 1]["error"].as_str().is_some_and(|text| text.contains(stream)), "{told:?}");
            site.sync(&[]).ends(0);
        }
    }
}

#[test]
fn an_emptied_directory_is_told() {
    let site = Site::loaded();
    fs::remove_dir_all(site.bench.path("lines")).expect("there");
    let summary = site.sync(&[]).ends(3).summary();
    assert_needs_reload(&site, &summary, "220 of 220 changes of bibs and 260 of 260 changes of items");
}

/// The records that were deleted meanwhile are the ones that an ordinary load would leave in the sinks for ever.
#[test]
fn a_restored_state_and_a_lost_one_are_rebuilt_and_end_equal() {
    for is_lost in [false, true] {
        let site = Site::loaded();
        let backup = site.bench.files("state");
        let new = site.library.edits(|world| [world.create_bib(), world.create_bib()]);
        site.sync_well();
        site.library.edits(|world| world.delete(sierra_sync::simulator::Kind::Bibs, new[0]).unwrap());
        let before = site.outputs().highest_seq();
        fs::remove_dir_all(site.bench.path("state")).expect("there");
        if !is_lost {
            backup.put(&site.bench.path("state"));
        }
        let run = site.sync(&[]).ends(0).complains("rebuild_begun").complains("rebuild_done");
        assert_eq!(run.summary()["sinks"]["lines"]["state"], "ok");
        site.assert_converged();
        let outputs = site.outputs();
        outputs.assert_each_seq_once();
        let again = outputs.since(before);
        assert!(again.len() > 480 && again.iter().any(|event| event["source"] == "rebuild" && event["op"] == "delete"));
        let second = site.sync_well();
        assert_eq!(second["sinks"]["lines"]["delivered"], 0, "it ends by itself");
    }
}
