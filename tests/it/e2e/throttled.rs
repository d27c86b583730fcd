//! A16 on the running binary: under a quota that is always too small, what was fetched lies in the queue, and memory is as
//! flat after many windows as after a few.

use serde_json::Value;
use sierra_sync::simulator::{Fault, Kind, RateLimit, VarField, World};

use super::support::{Site, patiently};

/// Rounds of edits, two in each quota window of two seconds; `SIERRA_SYNC_THROTTLED_WINDOWS` asks for more.
const WINDOWS: usize = 40;

/// Bibs that are edited before anything is throttled.
const WARM_UP: usize = 72;

/// Bibs that are edited in each round.
const EDITED: usize = 6;

/// What has to wait in the end besides: held in memory, it would show.
const QUEUED: usize = 100;

/// Edits a bib so that a few dozen of its versions, held in memory, would show beside everything else.
fn edit_at_length(world: &mut World, bib: u64) {
    let note = || VarField::marc('n', "500", "  ").with('a', "A long note. ".repeat(16_000));
    world
        .rewrite_bib(bib, |fields| {
            fields.retain(|field| field.text().is_none_or(|text| text.len() < 10_000));
            fields.retain(|field| field.subfield('a').is_none_or(|text| text.len() < 10_000));
            fields.push(note());
        })
        .unwrap();
    world.edit_bib(bib).unwrap();
}

/// Every window grants twelve calls, every fourth one is refused besides, and bibs of 200 kB are edited all the time
/// while a sink is away.
#[test]
fn memory_is_flat_while_every_window_is_throttled() {
    let windows = std::env::var("SIERRA_SYNC_THROTTLED_WINDOWS").map_or(WINDOWS, |text| text.parse().unwrap());
    let mut site = Site::loaded();
    // What is freed goes back at once: what is seen is what is held.
    site.bench.set("MIMALLOC_PURGE_DELAY", "0");
    let configure = |paused: bool| {
        site.configure(|text| {
            let streams = "interval = \"1s\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"";
            let text = text.replace("path = \"./xml\"", &format!("path = \"./xml\"\npaused = {paused}"));
            format!("{}\n[ops]\nlisten = \"127.0.0.1:0\"\n", text.replace("settle = \"0s\"", streams))
        });
    };
    configure(true);
    let service = site.bench.start(&["run", "--log-format", "json"]);
    patiently("the service", || service.stderr().contains("service_started").then_some(()));
    let bibs = site.library.ids(Kind::Bibs);
    let waiting = || {
        let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
        status["sinks"]["xml"]["pending"].as_u64().expect("a count")
    };
    // More at once than any window brings later: from then on there is room for all that is in work.
    site.library.edits(|world| bibs.iter().take(WARM_UP).for_each(|bib| edit_at_length(world, *bib)));
    site.library.pass_a_second();
    patiently("the first of the queue", || (waiting() >= WARM_UP as u64).then_some(()));
    site.library.with(|simulator| {
        simulator.limit_rate(Some(RateLimit { calls: 12, seconds: 2, ..RateLimit::default() }));
    });
    site.library.clear_journal();
    site.library.plan(Fault::retry_after("1").every(4));

    // The same ones in turn, so that no page outgrows the first however long a slow machine takes to come to it.
    let mut turn = bibs.iter().take(WARM_UP).cycle();
    let mut resident = Vec::new();
    patiently("rounds and what they bring", || {
        site.library.edits(|world| turn.by_ref().take(EDITED).for_each(|bib| edit_at_length(world, *bib)));
        site.library.pass_a_second();
        resident.push(service.resident_kib());
        (resident.len() >= windows && waiting() >= (WARM_UP + QUEUED) as u64).then_some(())
    });
    let refused =
        site.library.with(|simulator| simulator.journal.calls().filter(|call| call.status == Some(429)).count());
    let queued = waiting() - WARM_UP as u64;
    // A page of them in work takes megabytes for a moment: what stays is seen when it is gone.
    let least = |part: &[u64]| part.iter().copied().min().unwrap();
    let windows = resident.len();
    let (early, late) = (least(&resident[..windows / 4]), least(&resident[windows - windows / 4..]));
    println!(
        "{windows} rounds, {refused} refusals, {queued} entries queued: at least {early} KiB in the first quarter and \
         {late} KiB in the last"
    );
    assert!(refused >= 4, "{refused} refusals in {windows} rounds");
    // Each entry that were held would take 200 KiB at least.
    assert!(late <= early + queued * 150, "memory grows: {resident:?}");

    service.signal("TERM");
    service.ended().ends(0);
    site.library.with(|simulator| simulator.limit_rate(None));
    site.library.recover();
    configure(false);
    let summary: Value = site.sync_well();
    assert_eq!(summary["sinks"]["xml"]["pending"], 0, "{summary}");
    site.assert_converged();
    site.outputs().assert_each_seq_once();
}
