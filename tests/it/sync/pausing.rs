//! What people hold back, let go, and ask for at once.

use std::sync::Arc;
use std::time::Duration;

use sierra_sync::record::Stream;
use sierra_sync::sync::engine::EngineError;
use sierra_sync::sync::ports::SourceErrorKind;
use sierra_sync::sync::report::status::{OverallState, Pause, SinkState, StreamState};
use sierra_sync::sync::{Engine, Pausable, RunKind};
use tokio_util::sync::CancellationToken;

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

fn stocked() -> Rig<ShelfSource> {
    let rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 50);
        shelf.stock(ITEMS, 50);
    });
    rig
}

fn pause(rig: &Rig<ShelfSource>) -> Pause {
    Pause { since: rig.now(), by: Some("ann".into()), reason: Some("upgrade".into()) }
}

fn add(rig: &Rig<ShelfSource>, stream: Stream, count: usize) {
    rig.library.with(|shelf| {
        for _ in 0..count {
            shelf.add(stream);
        }
    });
}

fn follow(engine: &Arc<Engine>) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let (cancel, engine) = (CancellationToken::new(), Arc::clone(engine));
    let token = cancel.clone();
    (cancel, tokio::spawn(async move { engine.follow(&token).await.expect("a sound store") }))
}

/// A paused stream is not read, the other goes on; a restart changes nothing about it; resumed, it catches up.
#[tokio::test(start_paused = true)]
async fn a_paused_stream_is_left_alone_over_restarts_until_it_is_resumed() {
    let mut rig = stocked();
    rig.sync_well().await;
    let vitals = NoVitals;
    let engine = rig.engine().await.expect("up");
    assert!(engine.pause(&Pausable::Stream(BIBS), pause(&rig)).await.expect("it exists"));
    assert!(!engine.pause(&Pausable::Stream(BIBS), pause(&rig)).await.expect("already"), "whoever was first is kept");
    add(&rig, BIBS, 5);
    add(&rig, ITEMS, 5);
    rig.run_for(minutes(20), None).await.expect("a sound store");
    assert_eq!((rig.sink("archive").holds(BIBS).len(), rig.sink("archive").holds(ITEMS).len()), (50, 55));

    rig.restart().await;
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&vitals.inputs()).await.expect("up");
    let paused = status.streams["bibs"].paused.clone().expect("still paused");
    assert_eq!(
        (status.streams["bibs"].state, paused.by.as_deref(), paused.reason.as_deref()),
        (StreamState::Paused, Some("ann"), Some("upgrade"))
    );
    assert_eq!(status.state, OverallState::Ok);
    assert!(status.message.contains("`sierra-sync resume --stream bibs`"), "{}", status.message);
    assert_eq!(status.streams["items"].paused, None);

    let summary = rig.sync_well().await;
    assert_eq!(summary.streams.keys().collect::<Vec<_>>(), ["items"], "cron leaves it alone too");
    rig.run_for(hours(1), None).await.expect("a sound store");
    let status = rig.engine().await.expect("up").status(&vitals.inputs()).await.expect("up");
    assert_eq!((status.state, status.streams["bibs"].state), (OverallState::Degraded, StreamState::Paused));
    assert!(status.message.contains("growing stale: bibs"), "{}", status.message);

    let engine = rig.engine().await.expect("up");
    assert!(engine.resume(&Pausable::Stream(BIBS)).await.expect("it exists"));
    assert!(!engine.resume(&Pausable::Stream(BIBS)).await.expect("it exists"));
    rig.run_for(minutes(20), None).await.expect("a sound store");
    rig.assert_converged();
    rig.restart().await;
    assert_eq!(rig.engine().await.expect("up").paused(BIBS), None);
}

/// Pausing ends a pass that is under way, without a page that would have to be fetched again.
#[tokio::test(start_paused = true)]
async fn pausing_ends_the_pass_under_way_and_resuming_goes_on_from_there() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 1000));
    rig.library.script(|_, _, _| Act::Slowly(Duration::from_secs(10)));
    let engine = rig.engine().await.expect("up");
    let (cancel, following) = follow(&engine);
    tokio::time::sleep(Duration::from_secs(35)).await;
    engine.pause(&Pausable::Stream(BIBS), pause(&rig)).await.expect("it exists");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let held = rig.sink("archive").holds(BIBS).len();
    assert!((100..=500).contains(&held), "{held}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(rig.sink("archive").holds(BIBS).len(), held);
    // No failure, neither here nor for a process that finds the state as it is now.
    let told = engine.status(&NoVitals.inputs()).await.expect("up");
    assert_eq!(told.streams["bibs"].last_error, None, "{told:?}");
    engine.resume(&Pausable::Stream(BIBS)).await.expect("it exists");
    tokio::time::sleep(Duration::from_secs(600)).await;
    cancel.cancel();
    following.await.expect("ends");
    rig.assert_converged();
}

#[tokio::test(start_paused = true)]
async fn a_sink_paused_by_command_stays_so_over_restarts() {
    let mut rig = stocked();
    rig.add_sink("second");
    let engine = rig.engine().await.expect("up");
    let second = Pausable::Sink("second".into());
    engine.pause(&second, pause(&rig)).await.expect("it exists");
    rig.restart().await;
    let summary = rig.sync_well().await;
    assert_eq!((summary.sinks["second"].pending, summary.sinks["second"].state), (100, SinkState::Paused));
    let vitals = NoVitals;
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&vitals.inputs()).await.expect("up");
    assert_eq!(status.sinks["second"].paused.as_ref().and_then(|pause| pause.by.as_deref()), Some("ann"));
    assert!(status.message.contains("resume --sink second"), "{}", status.message);
    assert!(engine.resume(&second).await.expect("it exists"));
    rig.sync_well().await;
    rig.assert_converged();
    let unknown = Pausable::Sink("third".into());
    assert!(matches!(engine.pause(&unknown, pause(&rig)).await, Err(EngineError::UnknownSink { .. })));
}

/// What the configuration pauses, no command lets go: it says where to look.
#[tokio::test(start_paused = true)]
async fn the_configuration_decides_about_what_it_pauses() {
    let mut rig = stocked();
    rig.sinks.get_mut("archive").expect("it exists").0.paused = true;
    let engine = rig.engine().await.expect("up");
    let archive = Pausable::Sink("archive".into());
    let refused = engine.resume(&archive).await.expect_err("refused");
    assert!(refused.to_string().contains("sinks.archive.paused = false"), "{refused}");
    engine.pause(&archive, pause(&rig)).await.expect("it exists");
    assert!(engine.resume(&archive).await.is_err(), "the command's pause is over, the configuration's is not");
    assert_eq!(rig.sync_well().await.sinks["archive"].state, SinkState::Paused);
    rig.sinks.get_mut("archive").expect("it exists").0.paused = false;
    rig.restart().await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// Asked for at once, a pass does not wait for its schedule; a paused stream says so.
#[tokio::test(start_paused = true)]
async fn a_pass_that_is_asked_for_runs_at_once() {
    let mut rig = stocked();
    rig.settings(BIBS).cadence = sierra_sync::sync::settings::Cadence::Every(hours(6));
    rig.sync_well().await;
    let engine = rig.engine().await.expect("up");
    let (cancel, following) = follow(&engine);
    tokio::time::sleep(minutes(5)).await;
    add(&rig, BIBS, 3);
    tokio::time::sleep(minutes(20)).await;
    assert_eq!(rig.sink("archive").holds(BIBS).len(), 50, "its time has not come");
    engine.ask_for_pass(BIBS).expect("it exists");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(rig.sink("archive").holds(BIBS).len(), 53);
    engine.pause(&Pausable::Stream(BIBS), pause(&rig)).await.expect("it exists");
    assert!(matches!(engine.ask_for_pass(BIBS), Err(EngineError::Paused { .. })));
    assert!(matches!(engine.ask_for_pass(Stream::Patrons), Err(EngineError::UnknownStream { .. })));
    cancel.cancel();
    following.await.expect("ends");
}

/// Runs are remembered with what came of them, over restarts.
#[tokio::test(start_paused = true)]
async fn recent_runs_are_remembered() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 50));
    rig.sync_well().await;
    rig.run_for(minutes(30), None).await.expect("a sound store");
    rig.library.script_pulse(|_| Some(SourceErrorKind::Exhausted));
    rig.run_for(minutes(30), None).await.expect("a sound store");
    let engine = rig.engine().await.expect("up");
    let runs = engine.runs();
    assert_eq!((runs[0].kind, runs[0].changed, runs[0].times, runs[0].error.as_deref()), (RunKind::Pass, 50, 1, None));
    let last = runs.last().expect("several");
    assert!(last.error.is_some() && last.times > 1, "{last:?}");
    assert!(runs.len() <= 6, "passes that found nothing are one entry: {runs:#?}");
    engine.keep_runs(rig.store.as_ref()).expect("up");
    rig.restart().await;
    assert_eq!(rig.engine().await.expect("up").runs(), runs);
}
