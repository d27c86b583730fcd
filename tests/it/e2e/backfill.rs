//! `backfill`: what a person asks for is read once more, by the real binary from a real state.

use serde_json::json;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::simulator::{Endpoint, Fault, Kind, When};

use super::support::Site;

/// Edits a bib without a stamp, so that only a backfill can find it.
fn edited_silently(site: &Site, place: usize) -> u64 {
    let bib = site.library.ids(Kind::Bibs)[place];
    site.library.edits(|world| world.silently(|world| world.edit_bib(bib))).unwrap();
    bib
}

/// Every call from the `first` on.
fn from(first: u64) -> When {
    When::Calls { from: first, to: u64::MAX }
}

#[test]
fn a_range_a_list_and_a_whole_stream() {
    let site = Site::loaded();
    let bibs = site.library.ids(Kind::Bibs);
    let before = site.outputs().highest_seq();
    let range = format!("{}..{}", bibs[10], bibs[29]);
    let run = site.bench.run(&["backfill", "bibs", "--json", "--ids", &range]).ends(0).summary();
    assert_eq!((&run["streams"]["bibs"]["fetched"], &run["streams"]["bibs"]["changed"]), (&20.into(), &0.into()));
    let displayed = RecordNumber::new(bibs[5]).display_form(Stream::Bibs);
    let list = format!(
        "\u{feff}# three\r\nb{}\r\n\r\nhttps://catalog/iii/sierra-api/v6/bibs/{}\r\n{displayed}\r\n",
        bibs[3], bibs[4]
    );
    site.bench.write("ids.txt", &list);
    let run = site.bench.run(&["backfill", "bibs", "--json", "--ids-file", "ids.txt", "--force"]).ends(0).summary();
    assert_eq!(run["streams"]["bibs"]["changed"], 3);
    let outputs = site.outputs();
    let told = outputs.since(before);
    assert!(told.iter().all(|event| event["source"] == "backfill"), "{told:?}");
    let run = site.bench.run(&["backfill", "items", "--json", "--force", "--sink", "lines"]).ends(0).summary();
    assert_eq!((&run["streams"]["items"]["changed"], &run["sinks"]["lines"]["delivered"]), (&260.into(), &260.into()));
    assert!(site.library.calls().iter().all(|call| call.parameter("offset").is_none()));
    site.assert_converged();
}

/// The plan asks nobody, changes nothing, and tells what it would take.
#[test]
fn a_plan_sends_nothing() {
    let site = Site::loaded();
    let before = ["lines", "xml"].map(|name| site.bench.files(name));
    let run = site.bench.run(&["backfill", "bibs", "--plan", "--json"]).ends(0);
    let plan = run.json_lines().pop().expect("one object");
    assert_eq!((&plan["ranges"], &plan["windows"]), (&1.into(), &json!(null)));
    assert!(plan["calls"].as_u64().is_some_and(|calls| calls >= 3) && plan["eta_seconds"].is_u64(), "{plan}");
    let text = site.bench.run(&["backfill", "bibs", "--plan"]).ends(0).stdout;
    assert!(text.contains("220 records known in 1 range") && text.contains("Nothing was sent"), "{text}");
    assert_eq!(site.library.calls(), []);
    assert!(["lines", "xml"].map(|name| site.bench.files(name)) == before, "an output changed");
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().pop().expect("the status");
    assert_eq!(status["streams"]["bibs"]["backfill"], json!(null), "nothing was begun");
}

/// Killed in the middle it goes on where it was: at most one page is fetched again.
#[test]
fn a_killed_backfill_goes_on_where_it_was() {
    let site = Site::loaded();
    let bibs = site.library.ids(Kind::Bibs).len() as u64;
    site.library.plan(Fault::Hang.when(from(5)).at(Endpoint::Bibs));
    let arguments = ["backfill", "bibs", "--json", "--force", "--set", "streams.bibs.page_size=20"];
    let running = site.bench.start(&arguments);
    super::support::patiently("the page that hangs", || (site.library.count(Endpoint::Bibs) >= 5).then_some(()));
    drop(running);
    site.library.with(|simulator| simulator.cancel_all_faults());
    site.library.clear_journal();
    let rest = site.bench.run(&arguments).ends(0).summary();
    let fetched = rest["streams"]["bibs"]["fetched"].as_u64().expect("a count");
    assert!((bibs - 80..=bibs - 60).contains(&fetched), "{fetched} of {bibs}");
    site.assert_converged();
}

#[test]
fn what_is_wrong_is_told_all_at_once_and_nothing_is_done() {
    let site = Site::loaded();
    site.bench.write("ids.txt", "1024364\nb10243642\ni1024364\n");
    let run = site.bench.run(&["backfill", "bibs", "--ids-file", "ids.txt", "--since", "soon"]).ends(2);
    for part in ["ids.txt:2: ", "ids.txt:3: ", "--since \"soon\""] {
        assert!(run.stderr.contains(part), "{part} in {}", run.stderr);
    }
    for (arguments, sentence) in [
        (&["patrons"][..], "[streams.patrons] is not configured"),
        (&["bibs", "--sink", "nowhere", "--force"], "no sink is called \"nowhere\"; configured are: lines, xml"),
        (&["bibs", "--sink", "lines"], "--force"),
        (&["bibs", "--ids", "9..7"], "lies behind the last one"),
        (&["bibs", "--ids", "1..2", "--ids-file", "ids.txt"], "cannot be used with"),
        (&["bibs", "--since", "2024-03-09", "--until", "2024-03-09"], "nothing lies between them"),
    ] {
        site.bench.run(&[&["backfill"], arguments].concat()).ends(2).complains(sentence);
    }
    assert_eq!(site.library.calls(), []);
}

/// A range that cannot be had, since Sierra does not answer any more: exit 69, and it is named.
#[test]
fn what_cannot_be_had_is_named() {
    let site = Site::loaded();
    let bibs = site.library.ids(Kind::Bibs);
    let bib = edited_silently(&site, 7);
    site.library.plan(Fault::Html { status: 503 }.when(from(3)).at(Endpoint::Bibs));
    let quick = ["--set", "retry.max_attempts=1", "--set", "streams.bibs.page_size=20"];
    let range = format!("{}..{}", bibs[0], bibs[99]);
    let arguments = [&["backfill", "bibs", "--ids", &range][..], &quick].concat();
    let run = site.bench.run(&arguments).ends(69);
    assert!(run.stdout.contains("Something is left") && run.stdout.contains("left: bibs from "), "{}", run.stdout);
    assert!(run.stdout.contains("The same command goes on"), "{}", run.stdout);
    // Nothing else tries it again.
    let again = format!("`sierra-sync backfill bibs --ids {range}` tries again what is left");
    assert!(run.stdout.contains(&again) && !run.stdout.contains("nothing to do"), "{}", run.stdout);
    assert!(!run.stderr.contains("nothing to do"), "{}", run.stderr);
    site.library.with(|simulator| simulator.cancel_all_faults());
    let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().pop().expect("the status");
    assert_eq!(status["streams"]["bibs"]["backfill"]["state"], "parked");
    site.bench.run(&arguments).ends(0);
    let events = site.outputs();
    assert!(events.newest("bibs").contains_key(bib.to_string().as_str()));
    site.assert_converged();
}

/// By way of the export of MARC the same is emitted, and no file is left on the server.
#[test]
fn an_export_of_marc_brings_the_same() {
    let site = Site::loaded();
    let bib = edited_silently(&site, 11);
    let before = site.outputs().highest_seq();
    let run = site.bench.run(&["backfill", "bibs", "--via", "marc-export", "--json"]).ends(0).summary();
    assert_eq!((&run["streams"]["bibs"]["fetched"], &run["streams"]["bibs"]["changed"]), (&220.into(), &1.into()));
    let outputs = site.outputs();
    assert_eq!(outputs.since(before).iter().map(|event| event["id"].clone()).collect::<Vec<_>>(), [bib.to_string()]);
    assert!(site.library.count(Endpoint::MarcExport) >= 6);
    assert_eq!(site.library.with(|simulator| simulator.export_files()), 0);
    site.assert_converged();
    for wrong in [&["items"][..], &["bibs", "--ids", "7"], &["bibs", "--since", "2024-03-09"]] {
        site.bench.run(&[&["backfill", "--via", "marc-export"], wrong].concat()).ends(2).complains("--via marc-export");
    }
}
