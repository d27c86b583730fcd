//! The commands around `sync`: `check`, `status`, `init`, `schema`.

use std::fs;
use std::path::Path;

use sierra_sync::cli::schema::SchemaName;
use sierra_sync::simulator::{Fault, Kind, Permission};

use super::support::{Bench, Site, assert_valid};

/// `check` looks at everything, moves no position and writes nothing.
#[test]
fn check_finds_a_sound_installation_sound() {
    let site = Site::loaded();
    let bib = site.library.ids(Kind::Bibs)[3];
    site.library.edits(|world| world.edit_bib(bib)).unwrap();
    let before = site.bench.files("state");
    let run = site.bench.run(&["check", "--json"]).ends(0);
    let lines = run.json_lines();
    assert!(lines.iter().all(|line| line["ok"] == true), "{lines:#?}");
    let probes: Vec<&str> = lines.iter().map(|line| line["probe"].as_str().unwrap()).collect();
    for probe in
        ["config", "state", "disk", "token", "clock", "roles", "stream bibs", "stream items", "sink lines", "sink xml"]
    {
        assert!(probes.contains(&probe), "{probe} is missing in {probes:?}");
    }
    let calls = site.library.calls();
    assert!(calls.len() < 10 && calls.iter().all(|call| call.entries <= 2), "{calls:#?}");
    assert!(site.bench.files("state") == before, "the state changed");
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 1);
}

#[test]
fn check_offline_asks_nobody() {
    let site = Site::loaded();
    let lines = site.bench.run(&["check", "--offline", "--json"]).ends(0).json_lines();
    assert!(lines.iter().all(|line| line["ok"] == true), "{lines:#?}");
    assert_eq!(site.library.calls(), []);
}

#[test]
fn check_says_which_of_several_things_is_wrong() {
    let mut site = Site::loaded();
    site.library.with(|simulator| {
        simulator.access.permissions.remove(&Permission::ItemsList);
        simulator.access.permissions.remove(&Permission::ItemsRead);
    });
    let run = site.bench.run(&["check"]).ends(77);
    assert!(run.stdout.contains("FAIL roles: the key lacks what \"Items Read\" needs"), "{}", run.stdout);
    assert!(run.stdout.contains("FAIL stream items") && run.stdout.contains("ok   stream bibs"), "{}", run.stdout);

    let outage = site.library.plan(Fault::Html { status: 503 }.always());
    let run = site.bench.run(&["check"]).ends(69);
    assert!(run.stdout.contains("FAIL token: "), "{}", run.stdout);
    site.library.with(|simulator| simulator.cancel(outage));

    site.library.clear_journal();
    site.give_secret(Some("wrong"));
    let run = site.bench.run(&["check"]).ends(77);
    assert!(run.stdout.contains("FAIL token: "), "{}", run.stdout);
    assert!(site.library.calls().len() <= 2, "{:?}", site.library.calls());
}

/// BR-094: looking twenty times moves nothing.
#[test]
fn status_tells_how_everything_stands_and_moves_nothing() {
    let site = Site::loaded();
    let bib = site.library.ids(Kind::Bibs)[3];
    site.library.edits(|world| world.edit_bib(bib)).unwrap();
    let outputs = ["lines", "xml"].map(|name| site.bench.files(name));
    let mut seen = Vec::new();
    for _ in 0..20 {
        let mut status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
        assert_valid(SchemaName::Status, [&status]);
        let document = status.as_object_mut().unwrap();
        document.remove("now").unwrap();
        for stream in document["streams"].as_object_mut().unwrap().values_mut() {
            stream.as_object_mut().unwrap().remove("lag_seconds").unwrap();
        }
        seen.push(status);
    }
    assert!(seen.iter().all(|status| *status == seen[0]), "{:#}", seen[19]);
    let status = &seen[0];
    assert_eq!((&status["state"], &status["streams"]["bibs"]["state"]), (&"ok".into(), &"ok".into()), "{status:#}");
    assert_eq!(site.library.calls(), []);
    assert!(["lines", "xml"].map(|name| site.bench.files(name)) == outputs, "an output changed");
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 1);
    site.assert_converged();

    let page = site.bench.run(&["status"]).ends(0).stdout;
    assert!(page.starts_with("ok: "), "{page}");
}

/// From nothing to a run: `init`, two settings and a secret, `sync`.
#[test]
fn the_file_that_init_writes_needs_only_address_key_and_secret() {
    let site = Site::loaded();
    fs::remove_file(site.bench.path("sierra-sync.toml")).unwrap();
    let run = site.bench.run(&["init"]).ends(0);
    assert_eq!(run.stdout, "");
    let path = site.bench.path("sierra-sync.toml");
    let written = fs::read_to_string(&path).unwrap();
    let again = site.bench.run(&["init"]).ends(2).complains("sierra-sync.toml exists and is never overwritten");
    assert_eq!((again.stdout.as_str(), fs::read_to_string(&path).unwrap() == written), ("", true));
    let base_url = format!("sierra.base_url={}", site.library.base_url());
    let run = site.bench.run(&["check", "--set", &base_url, "--set", "sierra.client_key=simulator-key"]).ends(0);
    assert!(run.stdout.contains("ok   stream bibs: readable page by page"), "{}", run.stdout);
}

#[test]
fn schemas_are_printed_as_they_stand_in_their_files() {
    let bench = Bench::new();
    for name in SchemaName::ALL {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name.file());
        let printed = bench.run(&["schema", name.file().trim_end_matches(".json")]).ends(0).stdout;
        assert!(printed == fs::read_to_string(file).unwrap(), "{} is printed differently", name.file());
    }
}
