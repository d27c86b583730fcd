//! Sinks that no longer hold what they had confirmed: never passed over in silence, and no false alarm either.

use sierra_sync::record::Stream;
use sierra_sync::store::Step;
use sierra_sync::sync::backfill::BackfillOrder;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{OverallState, SinkState};

use crate::support::{NoVitals, Rig, ShelfSource, Trouble, minutes};

const BIBS: Stream = Stream::Bibs;

fn stocked(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS, Stream::Items]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, count);
        shelf.stock(Stream::Items, 5);
    });
    rig.add_sink("second");
    rig
}

async fn status(rig: &mut Rig<ShelfSource>) -> StatusReport {
    rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up")
}

fn alarms(rig: &Rig<ShelfSource>) -> usize {
    rig.watch.events().iter().filter(|event| matches!(event, Event::SinkLacks { .. })).count()
}

/// The run that finds it ends with 3 and says what to do; the sink stays as it is, with one gap, and the others go on.
#[tokio::test(start_paused = true)]
async fn a_sink_that_lost_what_it_confirmed_is_told_once_and_needs_a_reload() {
    let mut rig = stocked(50);
    rig.sync_well().await;
    rig.restart().await;
    rig.sink("archive").empty();
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync().await;
    let archive = &summary.sinks["archive"];
    assert_eq!((summary.exit, archive.state, archive.delivered), (3, SinkState::NeedsReload, 0));
    let error = archive.error.as_ref().expect("it is told");
    assert!(error.message.contains("it lacks some of 50 changes of bibs"), "{error:?}");
    let hint = "run `sierra-sync backfill bibs --sink archive --force`, then `sierra-sync backfill items --sink archive --force`";
    assert_eq!((error.kind.as_str(), error.hint.as_deref()), ("needs_reload", Some(hint)));
    assert_eq!((alarms(&rig), summary.sinks["second"].delivered), (1, 1));
    for _ in 0..2 {
        let status = status(&mut rig).await;
        assert_eq!((status.state, status.sinks["archive"].state), (OverallState::Degraded, SinkState::NeedsReload));
        assert!(
            status.message.contains("archive must be loaded again: run `sierra-sync backfill"),
            "{}",
            status.message
        );
        assert_eq!(status.sinks["archive"].gaps.len(), 1);
        rig.restart().await;
        let later = rig.sync_well().await;
        assert_eq!((later.sinks["archive"].state, later.sinks["archive"].delivered), (SinkState::NeedsReload, 0));
    }
    assert_eq!(alarms(&rig), 0, "and not once more");
}

/// What is captured while a sink has no place never reaches it: a gap of that run as well. A run that captures nothing,
/// or nothing that the sink takes, leaves none.
#[tokio::test(start_paused = true)]
async fn a_run_that_captures_what_a_lost_sink_misses_ends_with_3() {
    let mut rig = stocked(50);
    rig.sinks.get_mut("archive").expect("it exists").0.streams = vec![BIBS];
    rig.sync_well().await;
    rig.restart().await;
    rig.sink("archive").empty();
    assert_eq!(rig.sync().await.exit, 3, "it is found");
    assert_eq!(rig.sync().await.exit, 0, "nothing happened");
    for (stream, exit) in [(BIBS, 3), (Stream::Items, 0), (BIBS, 3)] {
        rig.library.with(|shelf| shelf.edit(stream, 1004));
        tokio::time::sleep(minutes(12)).await;
        let summary = rig.sync().await;
        assert_eq!((summary.exit, summary.sinks["archive"].state), (exit, SinkState::NeedsReload), "{stream}");
    }
    assert_eq!(rig.backfill(&BackfillOrder::reload(BIBS, "archive", false)).await.exit, 0);
    rig.library.with(|shelf| shelf.edit(BIBS, 1004));
    tokio::time::sleep(minutes(12)).await;
    rig.sync_well().await;
}

/// A sink that must be loaded again is still counted: what goes besides is one more gap, in another process or in the
/// same, and the load ends all of them. Files that are cleared away for the load are no loss of it.
#[tokio::test(start_paused = true)]
async fn what_a_sink_loses_while_it_waits_for_a_reload_is_told_too() {
    for is_service in [false, true] {
        let mut rig = stocked(50);
        rig.sync_well().await;
        for loss in 1..=3 {
            rig.sink("archive").lose(BIBS, 10);
            if is_service {
                rig.run_for(minutes(3), None).await.expect("a sound store");
            } else {
                rig.restart().await;
                rig.sync().await;
            }
            let place = status(&mut rig).await.sinks["archive"].clone();
            let told: Vec<_> = place.gaps.iter().filter_map(|gap| gap.error.clone()).collect();
            let lacks = |left: u64| format!("it lacks some of {left} changes of bibs");
            assert_eq!(told, [lacks(50), lacks(40), lacks(30)][..loss], "service: {is_service}");
            assert_eq!((place.state, alarms(&rig)), (SinkState::NeedsReload, 1));
        }
        rig.restart().await;
        rig.sync().await;
        assert_eq!(status(&mut rig).await.sinks["archive"].gaps.len(), 3, "nothing more is gone");
        rig.sink("archive").empty();
        rig.restart().await;
        for stream in [BIBS, Stream::Items] {
            rig.backfill(&BackfillOrder::reload(stream, "archive", true)).await;
        }
        let place = status(&mut rig).await.sinks["archive"].clone();
        assert_eq!((place.state, place.gaps.len()), (SinkState::Ok, 0), "{place:?}");
    }
}

/// The service finds it while nothing is delivered at all.
#[tokio::test(start_paused = true)]
async fn the_service_finds_a_loss_while_nothing_changes() {
    let mut rig = stocked(50);
    rig.sync_well().await;
    rig.run_for(minutes(2), None).await.expect("a sound store");
    rig.sink("archive").empty();
    rig.run_for(minutes(2), None).await.expect("a sound store");
    assert_eq!(alarms(&rig), 1);
    assert_eq!(status(&mut rig).await.sinks["archive"].state, SinkState::NeedsReload);
}

/// What a process had confirmed before it was killed in mid-load counts, too.
#[tokio::test(start_paused = true)]
async fn a_loss_after_a_load_that_was_killed_is_found() {
    let mut rig = stocked(400);
    rig.settings(BIBS).page_size = 20;
    rig.store.fail_at(Step::BeforeCommit, 40);
    assert!(rig.try_sync().await.is_err());
    rig.crash();
    assert!(!rig.sink("archive").holds(BIBS).is_empty(), "something was confirmed");
    rig.sink("archive").empty();
    let summary = rig.sync().await;
    assert_eq!((summary.exit, summary.sinks["archive"].state), (3, SinkState::NeedsReload));
}

/// Killed while it takes note of the loss: the next start finds the same, and there is one gap.
#[tokio::test(start_paused = true)]
async fn a_loss_is_noted_once_when_killed_at_every_step() {
    for step in Step::OF_A_WRITE {
        for spared in 0..12 {
            let mut rig = stocked(5);
            rig.sync_well().await;
            rig.restart().await;
            rig.sink("archive").empty();
            rig.store.fail_at(step, spared);
            let _ended = rig.try_sync().await;
            rig.crash();
            let summary = rig.sync().await;
            assert_eq!(summary.sinks["archive"].state, SinkState::NeedsReload, "{step:?} {spared}");
            let gaps = status(&mut rig).await.sinks["archive"].gaps.clone();
            assert_eq!(gaps.len(), 1, "{step:?} {spared}: {gaps:?}");
        }
    }
}

/// A sink that is given less than was captured, by location, by stream or because it refused, holds less and lost
/// nothing; nor did one that is not answering.
#[tokio::test(start_paused = true)]
async fn what_a_sink_was_never_given_is_no_loss() {
    let mut rig = stocked(50);
    rig.library.with(|shelf| shelf.change(BIBS, 1004, |version| version.location = "branch".into()));
    rig.sinks.get_mut("archive").expect("it exists").0.locations = vec!["branch".into()];
    rig.sinks.get_mut("second").expect("it exists").0.streams = vec![Stream::Items];
    rig.sync_well().await;
    for round in 0..6 {
        match round {
            1 => rig.sink("archive").mute(2),
            // Nobody cares any more what it holds of a stream that it no longer takes.
            3 => rig.sinks.get_mut("second").expect("it exists").0.streams = Vec::new(),
            4 => rig.sink("second").empty(),
            5 => rig.sink("archive").script(|_| Some(Trouble::Busy)),
            _ => {}
        }
        rig.restart().await;
        rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
        tokio::time::sleep(minutes(12)).await;
        let summary = rig.sync().await;
        let states = ["archive", "second"].map(|name| summary.sinks[name].state);
        let expected = if round == 5 { [SinkState::Open, SinkState::Ok] } else { [SinkState::Ok, SinkState::Ok] };
        assert_eq!((states, alarms(&rig)), (expected, 0), "round {round}: {summary:#?}");
    }
}
