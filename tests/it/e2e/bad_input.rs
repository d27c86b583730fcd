//! Wrong input to an installation that has been running: one clear sentence, exit code 2, and nothing is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sierra_sync::simulator::Kind;
use sierra_sync::store::StateLock;

use super::support::{Site, patiently};

/// A loaded site, a bib of which was edited: the edit must arrive once the input is right again.
fn edited() -> Site {
    let site = Site::loaded();
    let bib = site.library.ids(Kind::Bibs)[9];
    site.library.edits(|world| world.edit_bib(bib)).unwrap();
    site
}

/// Runs `sync`, which must refuse with `sentence` before it touches anything or asks Sierra.
#[track_caller]
fn assert_refused(site: &Site, arguments: &[&str], sentence: &str) {
    let before = ["state", "lines", "xml"].map(|name| site.bench.files(name));
    site.library.clear_journal();
    let run = site.sync(arguments).ends(2).complains(sentence);
    assert_eq!((&run.summary()["exit"], site.library.calls().len()), (&2.into(), 0));
    assert!(!run.stderr.contains("panicked") && run.stderr.lines().count() <= 4, "{}", run.stderr);
    assert!(["state", "lines", "xml"].map(|name| site.bench.files(name)) == before, "{sentence}: something changed");
}

#[track_caller]
fn assert_nothing_lost(site: &Site) {
    site.configure(|text| text);
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 1);
    site.assert_converged();
}

#[test]
fn mistakes_in_the_configuration_are_refused_and_cost_nothing() {
    let site = edited();
    for (right, wrong, sentence) in [
        ("settle = ", "setle = ", "streams.bibs.setle: is not a known key; did you mean \"settle\"?"),
        ("settle = \"0s\"", "settle = \"0 sec\"", "streams.bibs.settle: \"0 sec\" has an unknown unit"),
        ("min_free = \"1MiB\"", "min_free = \"1MX\"", "state.min_free: \"1MX\" has an unknown unit"),
        (
            "page_size = 40",
            "page_size = 4000",
            "streams.bibs.page_size: 4000 is out of range; write a whole number from 1 to 2000",
        ),
        ("config_version = 1", "config_version = 2", "config_version: "),
        ("type = \"file\"", "type = \"postgres\"", "\"postgres\" is not built yet; built are file and stdout"),
        ("format = \"marcxml\"", "format = \"mrc\"", "\"mrc\" is not built yet; built are ndjson and marcxml"),
        ("http://127.0.0.1", "http://catalog.example.edu", "sierra.base_url"),
        ("[sinks.", "[sink.", "sink: is not a known key; did you mean \"sinks\"?"),
    ] {
        site.configure(|text| {
            assert!(text.contains(right), "{right}");
            text.replacen(right, wrong, if right == "[sinks." { 9 } else { 1 })
        });
        assert_refused(&site, &[], sentence);
    }
    site.configure(|text| text);
    assert_refused(&site, &["--set", "retry.cap=fast"], "retry.cap: \"fast\"");
    assert_refused(&site, &["--stream", "holdings"], "invalid value 'holdings' for '--stream <STREAM>'");
    assert_refused(&site, &["--config", "nowhere.toml"], "nowhere.toml: there is no such file");
    assert_nothing_lost(&site);
}

#[test]
fn a_secret_that_is_missing_or_open_to_all_is_refused() {
    let mut site = edited();
    site.give_secret(None);
    assert_refused(&site, &[], "sierra.client_secret: is missing; set client_secret_file");
    let path = site.bench.write("secret", "simulator-secret\n");
    let with_file = |text: String| text.replace("[state]", "client_secret_file = \"./secret\"\n\n[state]");
    site.configure(with_file);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_refused(&site, &[], "./secret can be read by every user of this machine; run: chmod 600 ./secret");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(site.sync_well()["streams"]["bibs"]["changed"], 1);
    site.assert_converged();
}

/// A command that looks holds the state for a moment, and answers nobody meanwhile: a pass that begins just then waits
/// for its end. A lock that stays is told, with 75.
#[test]
fn a_pass_waits_for_the_end_of_a_look() {
    let site = Site::loaded();
    let look = StateLock::acquire(&site.bench.path("state")).expect("free");
    let pass = site.bench.start(&["sync", "--json", "--log", "debug"]);
    patiently("the pass to wait", || pass.stderr().contains("state_held").then_some(()));
    drop(look);
    pass.ended().ends(0);
}
