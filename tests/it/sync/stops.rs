//! Loads that end although the library lives, shutdowns that lose nothing, and what a process that has ended still
//! tells.

use std::time::Duration;

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::simulator::{Endpoint, Fault, Kind, Life};
use sierra_sync::sync::engine::StatusInputs;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{CallClass, PageFilter, PageQuery, SourceErrorKind};
use sierra_sync::sync::report::status::{SinkState, StreamState};
use sierra_sync::sync::report::summary::StreamOutcome;
use sierra_sync::sync::{Seq, Store, SyncOptions};
use tokio_util::sync::CancellationToken;

use crate::support::{Act, NoVitals, Rig, ShelfSource, Sim, Trouble, minutes};

const BIBS: Stream = Stream::Bibs;

/// A library that adds a bib every second, for as long as the test lives.
fn adds_every_second(sim: &Sim) -> tokio::task::JoinHandle<()> {
    let simulator = sim.library.simulator.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            simulator.world(|world| world.create_bib());
        }
    })
}

async fn growing(faults: Vec<sierra_sync::simulator::PlannedFault>, page_size: u32) {
    let plan = Sim::seeded(1).library(500).streams(&[BIBS]).page_size(page_size).life(Life::default());
    let mut sim = faults.into_iter().fold(plan, |plan, fault| plan.fault(fault)).start().await;
    let library = adds_every_second(&sim);
    let loaded = tokio::time::timeout(minutes(10), sim.sync_well()).await.expect("the load ends");
    assert!(loaded.streams["bibs"].changed >= 200);
    tokio::time::sleep(minutes(3)).await;
    tokio::time::timeout(minutes(10), sim.sync_well()).await.expect("the pass ends");
    library.abort();
    sim.assert_converged().await;
}

/// Records that are added while the load goes on belong to the update pass: they must not keep it from ending.
#[tokio::test(start_paused = true)]
async fn a_load_ends_although_a_bib_is_added_every_second() {
    for page_size in [3, 100, 2000] {
        growing(Vec::new(), page_size).await;
    }
}

/// The same with calls so slow that no answer is ever empty.
#[tokio::test(start_paused = true)]
async fn a_load_ends_although_no_answer_is_ever_empty() {
    growing(vec![Fault::Delay { milliseconds: 2500 }.at(Endpoint::Bibs)], 50).await;
}

/// BR-054: empty answers in mid-load lie; the load goes on and misses nobody.
#[tokio::test(start_paused = true)]
async fn empty_answers_that_lie_do_not_end_a_load_of_a_library_that_grows() {
    for lies in [vec![2], vec![3, 5], vec![4, 6, 8]] {
        let lies = lies.into_iter().map(|n| Fault::EmptyPage.nth(n).at(Endpoint::Bibs));
        growing(lies.collect(), 20).await;
    }
    growing(vec![Fault::ShortPage { entries: 1 }.every(2).at(Endpoint::Bibs)], 20).await;
}

/// BR-054: a window that was longer than its overlap, and was answered with "nothing" although an edit and a deletion lay
/// in it, is read once more by the next one; and no longer once something came.
#[tokio::test(start_paused = true)]
async fn what_was_said_to_be_nothing_is_read_once_more() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 20));
    rig.sync_well().await;
    tokio::time::sleep(minutes(10)).await;
    rig.library.with(|shelf| {
        shelf.edit(BIBS, 1010);
        shelf.delete(BIBS, 1013);
    });
    tokio::time::sleep(minutes(72 * 60)).await;
    rig.library.script(|_, query, _| match query.class {
        CallClass::Incremental => Act::Nothing,
        _ => Act::Serve,
    });
    rig.sync_well().await;
    rig.library.behave();
    tokio::time::sleep(minutes(72 * 60)).await;
    let found = rig.sync_well().await;
    assert_eq!((found.streams["bibs"].changed, found.streams["bibs"].deleted), (1, 1), "{found:?}");
    rig.assert_converged();
    tokio::time::sleep(minutes(72 * 60)).await;
    rig.library.asked();
    rig.sync_well().await;
    let back = rig.now() - SignedDuration::from_hours(73);
    // The days reach one further back by themselves.
    let first_day = jiff::tz::TimeZone::UTC.to_datetime(back - SignedDuration::from_hours(24)).date();
    let reaches = |query: &PageQuery| match query.filter {
        PageFilter::Updated(window) => window.start() < back,
        PageFilter::Deleted { from, .. } => from < first_day,
        _ => false,
    };
    let asked = rig.library.asked();
    assert!(!asked.iter().any(|(_, query)| reaches(query)), "{asked:?}");
}

fn stocked(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.settings(BIBS).page_size = 20;
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.add_sink("second");
    rig
}

/// Runs `sync` and asks it to stop after `after`; tells its summary and how long the stop took.
async fn interrupted(
    rig: &mut Rig<ShelfSource>,
    after: Duration,
) -> (sierra_sync::sync::report::PassSummary, Duration) {
    let engine = rig.engine().await.expect("up");
    let (cancel, options) = (CancellationToken::new(), SyncOptions::default());
    let stop = async {
        tokio::time::sleep(after).await;
        cancel.cancel();
        tokio::time::Instant::now()
    };
    let (summary, asked) = tokio::join!(engine.sync_once(&options, &cancel), stop);
    (summary.expect("a sound store"), asked.elapsed())
}

/// What was captured by the moment of a shutdown is delivered before the process ends.
#[tokio::test(start_paused = true)]
async fn a_shutdown_in_a_load_delivers_what_was_captured() {
    for milliseconds in [100, 700, 1300, 1900] {
        let mut rig = stocked(1000);
        let (summary, took) = interrupted(&mut rig, Duration::from_millis(milliseconds)).await;
        assert!(took <= Duration::from_secs(5), "{took:?}");
        let bibs = &summary.streams["bibs"];
        assert_eq!((summary.exit, bibs.error.as_ref().map(|error| error.kind.as_str())), (3, Some("interrupted")));
        for (name, sink) in &summary.sinks {
            assert_eq!((sink.delivered, sink.pending), (bibs.changed, 0), "{name} after {milliseconds} ms");
        }
        // A service goes on by itself, and asks nobody to.
        for (started, kind) in [(None, Some("interrupted")), (Some(rig.now()), None)] {
            let inputs = StatusInputs { started, ..crate::support::NoVitals.inputs() };
            let status = rig.engine().await.expect("up").status(&inputs).await.expect("up");
            assert_eq!(status.streams["bibs"].last_error.as_ref().map(|error| error.kind.as_str()), kind);
        }
        rig.restart().await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// The same in the service.
#[tokio::test(start_paused = true)]
async fn a_shutdown_of_the_service_delivers_what_was_captured() {
    let mut rig = stocked(1000);
    rig.run_for(Duration::from_millis(1300), None).await.expect("a sound store");
    let places = rig.store.sink_positions().expect("up");
    assert!(places.values().all(|place| place.pending == 0), "{places:?}");
    assert!(!rig.sink("archive").holds(BIBS).is_empty());
}

/// A sink that is not well is not waited for: what it is owed stays queued, and the summary says how much.
#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_sink_that_is_not_well() {
    let mut rig = stocked(1000);
    rig.sink("second").script(|_| Some(Trouble::Busy));
    let (summary, took) = interrupted(&mut rig, Duration::from_millis(1300)).await;
    assert!(took <= Duration::from_secs(5), "{took:?}");
    let (good, bad) = (&summary.sinks["archive"], &summary.sinks["second"]);
    assert_eq!((summary.exit, good.pending, bad.delivered), (69, 0, 0));
    assert_eq!((bad.pending, bad.state), (good.delivered, SinkState::Retrying));
    rig.sink("second").behave();
    rig.restart().await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// A shutdown while Sierra is asked for the time and does not answer.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_no_longer_for_the_time() {
    let mut sim = Sim::seeded(1).library(50).streams(&[BIBS]).fault(Fault::Hang.at(Endpoint::TokenInfo)).start().await;
    let engine = sim.engine().await.expect("up");
    let (cancel, options) = (CancellationToken::new(), SyncOptions::default());
    let stop = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        cancel.cancel();
        tokio::time::Instant::now()
    };
    let (summary, asked) = tokio::join!(engine.sync_once(&options, &cancel), stop);
    let summary = summary.expect("a sound store");
    assert!(asked.elapsed() <= Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!((summary.exit, summary.streams["bibs"].state), (3, StreamOutcome::Failed));
}

/// What is wrong with a sink is still told when the process that met it has ended, until a delivery succeeds.
#[tokio::test(start_paused = true)]
async fn a_troubled_sink_is_told_by_the_next_process() {
    let mut rig = stocked(60);
    rig.sink("second").script(|_| Some(Trouble::Broken));
    assert_eq!(rig.sync().await.exit, 69);
    let began = rig.now();
    rig.restart().await;
    tokio::time::sleep(minutes(10)).await;
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&NoVitals.inputs()).await.expect("up");
    let (good, bad) = (&status.sinks["archive"], &status.sinks["second"]);
    assert_eq!((good.state, good.error.clone(), good.since), (SinkState::Ok, None, None));
    assert_eq!((bad.state, bad.pending), (SinkState::Open, 60));
    assert!(bad.error.as_ref().is_some_and(|error| error.message.contains("Broken")), "{bad:?}");
    assert!(bad.since.is_some_and(|since| since <= began));
    assert!(status.message.contains("second"), "{}", status.message);
    rig.sink("second").behave();
    rig.sync_well().await;
    rig.restart().await;
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&NoVitals.inputs()).await.expect("up");
    let second = &status.sinks["second"];
    assert_eq!((second.state, second.error.clone(), second.since), (SinkState::Ok, None, None));
}

/// The same of a stream: its last failure outlives the process, and goes with the next success.
#[tokio::test(start_paused = true)]
async fn the_last_failure_of_a_stream_is_told_by_the_next_process() {
    let mut rig = stocked(60);
    rig.sync_well().await;
    for (kind, state) in [
        (SourceErrorKind::Exhausted, StreamState::Ok),
        (SourceErrorKind::Suspended, StreamState::Suspended),
        (SourceErrorKind::Credentials, StreamState::Stopped),
    ] {
        tokio::time::sleep(minutes(2)).await;
        rig.library.script(move |_, _, _| Act::Fail(kind));
        rig.sync().await;
        rig.restart().await;
        let engine = rig.engine().await.expect("up");
        let status = engine.status(&NoVitals.inputs()).await.expect("up");
        let bibs = &status.streams["bibs"];
        let told = bibs.last_error.as_ref().map(|error| error.message.contains("failed as planned"));
        assert_eq!((bibs.state, told), (state, Some(true)), "{kind:?}: {bibs:?}");
    }
    rig.library.behave();
    rig.sync_well().await;
    rig.restart().await;
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&NoVitals.inputs()).await.expect("up");
    assert_eq!((status.streams["bibs"].state, status.streams["bibs"].last_error.clone()), (StreamState::Ok, None));
}

/// A `Date` that cannot be is told and not followed: not by windows, not by `captured`, not by the order of changes.
#[tokio::test(start_paused = true)]
async fn an_absurd_date_is_not_followed() {
    const DAYS_74_YEARS: i64 = 74 * 365;
    for days in [DAYS_74_YEARS, -56 * 365, 3, -3] {
        let mut sim = Sim::seeded(1).library(60).streams(&[BIBS]).life(Life::default()).start().await;
        sim.sync_well().await;
        let ids = sim.library.simulator.world(|world| world.ids(Kind::Bibs));
        sim.crash_and_restart().await;
        let wrong = sim.library.simulator.plan(Fault::WrongDate { seconds: days * 86_400 }.always());
        sim.library.simulator.world(|world| world.edit_bib(ids[3])).expect("a bib");
        tokio::time::sleep(minutes(10)).await;
        sim.watch.events();
        let summary = sim.sync_well().await;
        let watermark = summary.streams["bibs"].watermark.expect("loaded");
        let behind = sim.now().duration_since(watermark);
        assert!(
            behind >= SignedDuration::from_secs(329) && behind < SignedDuration::from_secs(345),
            "{days}: {behind}"
        );
        assert_eq!(summary.streams["bibs"].changed, 1, "{days}");
        let told = |event: &Event| matches!(event, Event::DateNotBelieved { .. });
        assert_eq!(sim.watch.events().iter().filter(|event| told(event)).count(), 1, "{days}");
        let last = sim.store.last_seq().expect("up");
        assert!(last < Seq::floor_at(sim.now().as_second() + 86_400), "{days}: {last:?}");
        sim.library.simulator.with(|simulator| simulator.cancel_all_faults());
        let _planned = wrong;
        sim.library.simulator.world(|world| world.edit_bib(ids[4])).expect("a bib");
        sim.assert_converged().await;
    }
}

/// `captured` is the word of our own clock, however far off Sierra's is.
#[tokio::test(start_paused = true)]
async fn captured_goes_by_our_own_clock() {
    for offset in [-9_000, 9_000] {
        let mut rig = stocked(30);
        rig.library.with(|shelf| shelf.server_offset = SignedDuration::from_secs(offset));
        let engine = rig.engine().await.expect("up");
        engine.pause_sink("second").expect("it exists");
        rig.sync_well().await;
        let waiting = rig.store.outbox_entries_after(Seq::ZERO, usize::MAX).expect("up");
        assert_eq!(waiting.len(), 30);
        for entry in waiting {
            assert!(rig.now().duration_since(entry.captured).abs() < SignedDuration::from_secs(60), "{entry:?}");
        }
    }
}
