//! Sinks that are slow, paused, broken, picky or full: what waits for them is kept, in order, and nobody else waits.

use std::time::Duration;

use sierra_sync::record::Stream;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::SourceErrorKind;
use sierra_sync::sync::report::status::SinkState;
use sierra_sync::sync::settings::WhenFull;
use sierra_sync::sync::{Change, Store};

use crate::support::{Act, Rig, ShelfSource, Trouble, hours, minutes};

const BIBS: Stream = Stream::Bibs;

fn stocked(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.add_sink("second");
    rig
}

fn holds(batch: &[Change], id: &str) -> bool {
    batch.iter().any(|change| change.id == id)
}

/// A10: what a paused sink is owed stays in the queue, across a restart, and drains when it is resumed.
#[tokio::test(start_paused = true)]
async fn a_paused_sink_keeps_its_backlog_and_drains_it_later() {
    let mut rig = stocked(300);
    let engine = rig.engine().await.expect("up");
    engine.pause_sink("second").expect("it exists");
    let summary = rig.sync_well().await;
    let second = &summary.sinks["second"];
    assert_eq!((second.delivered, second.pending, second.state), (0, 300, SinkState::Paused));
    assert_eq!(summary.sinks["archive"].delivered, 300);
    rig.sinks.get_mut("second").expect("it exists").0.paused = true;
    rig.restart().await;
    assert_eq!(rig.sync_well().await.sinks["second"].pending, 300);
    let engine = rig.engine().await.expect("up");
    engine.resume_sink("second").expect("it exists");
    let drained = rig.sync_well().await;
    assert_eq!((drained.sinks["second"].delivered, drained.sinks["second"].pending), (300, 0));
    assert!(engine.pause_sink("third").is_err());
    rig.assert_converged();
    assert_eq!(rig.store.outbox_usage().expect("up").entries, 0, "and the queue is empty again");
}

/// A10: in the service too, with Sierra's breaker open: the backlog drains from the queue alone.
#[tokio::test(start_paused = true)]
async fn a_backlog_drains_while_sierra_does_not_answer() {
    let mut rig = stocked(300);
    let engine = rig.engine().await.expect("up");
    engine.pause_sink("second").expect("it exists");
    rig.sync_well().await;
    rig.library.script(|_, _, _| Act::Fail(SourceErrorKind::CircuitOpen));
    rig.library.script_pulse(|_| Some(SourceErrorKind::CircuitOpen));
    engine.resume_sink("second").expect("it exists");
    rig.run_for(minutes(1), None).await.expect("a sound store");
    rig.assert_converged();
}

/// BR-018, BR-114: nothing counts as delivered before the destination says so.
#[tokio::test(start_paused = true)]
async fn a_busy_sink_is_tried_again_and_the_other_does_not_wait() {
    let mut rig = stocked(300);
    let mut calls = 0;
    rig.sink("second").script(move |_| {
        calls += 1;
        (calls <= 3).then_some(Trouble::Busy)
    });
    let summary = rig.sync_well().await;
    assert_eq!((summary.sinks["second"].delivered, summary.sinks["second"].state), (300, SinkState::Ok));
    rig.assert_converged();
}

/// BR-019, BR-071: a lost acknowledgement or a crash before the confirmation means delivering again, never skipping.
#[tokio::test(start_paused = true)]
async fn what_is_not_confirmed_is_delivered_again() {
    let mut rig = stocked(300);
    let mut calls = 0;
    rig.sink("archive").script(move |_| {
        calls += 1;
        (calls == 1).then_some(Trouble::LostAcknowledgement)
    });
    rig.sync_well().await;
    let keys = rig.sink("archive").delivered();
    let distinct: std::collections::BTreeSet<_> = keys.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!((keys.len() > 300, distinct.len()), (true, 300), "a redelivery repeats its key");
    rig.assert_converged();
}

/// A sink that stays down: exit 69, its state is told, what waits is kept; the other sink has everything.
#[tokio::test(start_paused = true)]
async fn a_sink_that_stays_down_is_exit_69_and_keeps_its_backlog() {
    let mut rig = stocked(300);
    for trouble in [Trouble::Busy, Trouble::Broken] {
        rig.sink("second").script(move |_| Some(trouble));
        let summary = rig.sync().await;
        let second = &summary.sinks["second"];
        assert_eq!((summary.exit, second.state, second.pending), (69, SinkState::Open, 300), "{trouble:?}");
        assert!(second.error.as_ref().is_some_and(|error| error.hint.is_some()));
        assert_eq!(summary.sinks["archive"].pending, 0);
    }
    rig.sink("second").behave();
    let summary = rig.sync_well().await;
    assert_eq!(summary.sinks["second"].state, SinkState::Ok);
    rig.assert_converged();
}

/// In the service a sink that was down is found again by itself.
#[tokio::test(start_paused = true)]
async fn the_service_finds_a_recovered_sink_again() {
    let mut rig = stocked(300);
    rig.sink("second").script(|_| Some(Trouble::Busy));
    rig.run_for(minutes(10), None).await.expect("a sound store");
    let calls = rig.sink("second").deliveries();
    assert!((10..=20).contains(&calls), "left alone between: {calls} calls in ten minutes");
    rig.sink("second").behave();
    rig.run_for(minutes(2), None).await.expect("a sound store");
    rig.assert_converged();
    let events = rig.watch.events();
    assert!(events.iter().any(|event| matches!(event, Event::SinkUp { sink } if sink == "second")) || calls < 5);
}

/// BR-119, BR-017, A14: one change that is refused for good goes to the quarantine, the others arrive, in order.
#[tokio::test(start_paused = true)]
async fn a_poisoned_change_is_set_aside_and_its_successors_arrive() {
    let mut rig = stocked(300);
    rig.sink("archive").script(|batch| holds(batch, "1301").then_some(Trouble::Refused));
    let summary = rig.sync().await;
    let archive = &summary.sinks["archive"];
    assert_eq!((summary.exit, archive.delivered, archive.quarantined, archive.pending), (3, 299, 1, 0));
    let entries = rig.store.quarantine(BIBS, 10).expect("up");
    assert_eq!((entries.len(), entries[0].record.as_str(), entries[0].sink.as_deref()), (1, "1301", Some("archive")));
    assert_eq!(summary.sinks["second"].delivered, 300);
    // A newer version that the sink takes closes the entry.
    rig.sink("archive").behave();
    rig.library.with(|shelf| shelf.edit(BIBS, 1301));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    rig.assert_converged();
}

/// A sink that refuses everything is stopped: its backlog is not drained into the quarantine.
#[tokio::test(start_paused = true)]
async fn a_sink_that_refuses_everything_is_stopped_and_keeps_its_backlog() {
    let mut rig = stocked(300);
    rig.sink("archive").script(|_| Some(Trouble::Refused));
    let summary = rig.sync().await;
    let archive = &summary.sinks["archive"];
    assert_eq!((summary.exit, archive.state), (69, SinkState::Open));
    assert!(archive.quarantined < 20 && archive.pending > 280, "{archive:?}");
    assert_eq!(summary.sinks["second"].delivered, 300);
}

/// BR-116: when the quarantine cannot be written, the change stays in the queue.
#[tokio::test(start_paused = true)]
async fn a_refused_change_is_not_passed_over_when_the_quarantine_fails() {
    for step in sierra_sync::store::Step::OF_A_WRITE {
        for spared in 0..12 {
            let mut rig = stocked(30);
            rig.engine().await.expect("up").pause_sink("archive").expect("it exists");
            rig.sync_well().await;
            rig.sink("archive").script(|batch| holds(batch, "1031").then_some(Trouble::Refused));
            rig.engine().await.expect("up").resume_sink("archive").expect("it exists");
            rig.store.fail_at(step, spared);
            let _ended = rig.try_sync().await;
            rig.crash();
            rig.sync().await;
            let refused = rig.store.quarantine(BIBS, 10).expect("up");
            assert_eq!(refused.len(), 1, "{step:?} {spared}");
            assert_eq!(rig.sink("archive").holds(BIBS).len(), 29, "{step:?} {spared}");
        }
    }
}

/// §9: a sink whose backlog fills the outbox is detached with one recorded gap; the others and capture go on.
#[tokio::test(start_paused = true)]
async fn a_sink_that_fills_the_outbox_is_detached() {
    let mut rig = stocked(2000);
    rig.sinks.get_mut("second").expect("it exists").0.paused = true;
    rig.limits.outbox_max_bytes = 200_000;
    let summary = rig.sync().await;
    let second = &summary.sinks["second"];
    assert_eq!((summary.exit, second.state, second.pending), (3, SinkState::NeedsReload, 0));
    assert_eq!((summary.sinks["archive"].delivered, summary.streams["bibs"].changed), (2000, 2000));
    let events = rig.watch.events();
    assert_eq!(
        events.iter().filter(|event| matches!(event, Event::SinkDetached { sink } if sink == "second")).count(),
        1
    );
    assert_eq!(events.iter().filter(|event| matches!(event, Event::OutboxFilling { .. })).count(), 1);
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&crate::support::NoVitals.inputs()).await.expect("up");
    assert_eq!(status.sinks["second"].gaps.len(), 1);
    // It stays detached: nothing is delivered past the gap.
    rig.crash();
    let engine = rig.engine().await.expect("up");
    engine.resume_sink("second").expect("it exists");
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(2)).await;
    let later = rig.sync().await;
    let second = &later.sinks["second"];
    assert_eq!((later.exit, second.state, second.delivered), (3, SinkState::NeedsReload, 0));
}

/// §9: a sink that chose `hold` makes capture wait instead, and loses nothing.
#[tokio::test(start_paused = true)]
async fn a_sink_that_chose_hold_makes_capture_wait() {
    let mut rig = stocked(2000);
    let second = &mut rig.sinks.get_mut("second").expect("it exists").0;
    (second.paused, second.when_full) = (true, WhenFull::Hold);
    rig.limits.outbox_max_bytes = 200_000;
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.error.as_ref().map(|error| error.kind.as_str())), (75, Some("outbox_full")));
    assert!(bibs.changed < 2000 && bibs.changed > 100, "{bibs:?}");
    let engine = rig.engine().await.expect("up");
    engine.resume_sink("second").expect("it exists");
    rig.run_for(minutes(30), None).await.expect("a sound store");
    rig.assert_converged();
}

/// BR-071: the published watermark of a sink covers what that sink has confirmed, and survives a restart.
#[tokio::test(start_paused = true)]
async fn the_published_watermark_waits_for_the_sink() {
    let mut rig = stocked(50);
    let first = rig.sync_well().await;
    let loaded = first.streams["bibs"].watermark;
    assert_eq!(first.sinks["second"].published["bibs"], loaded);
    rig.engine().await.expect("up").pause_sink("second").expect("it exists");
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(20)).await;
    let later = rig.sync_well().await;
    assert_eq!(later.sinks["archive"].published["bibs"], later.streams["bibs"].watermark);
    assert_eq!(later.sinks["second"].published["bibs"], loaded);
    rig.crash();
    rig.sinks.get_mut("second").expect("it exists").0.paused = true;
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&crate::support::NoVitals.inputs()).await.expect("up");
    assert_eq!(status.sinks["second"].published["bibs"], loaded);
    engine.resume_sink("second").expect("it exists");
    let last = rig.sync_well().await;
    assert_eq!(last.sinks["second"].published["bibs"], last.streams["bibs"].watermark);
}

/// A sink that is added later missed the load: the next pass loads it.
#[tokio::test(start_paused = true)]
async fn a_sink_that_is_added_later_is_loaded() {
    let mut rig = stocked(50);
    rig.sync_well().await;
    rig.add_sink("third");
    rig.restart().await;
    let summary = rig.sync_well().await;
    assert_eq!((summary.sinks["third"].state, summary.sinks["third"].delivered), (SinkState::Ok, 50));
    assert_eq!(summary.sinks["archive"].delivered, 0, "and nobody else hears of it");
    rig.assert_converged();
    // A sink that is no longer configured holds nothing back.
    rig.sinks.remove("second");
    rig.sinks.remove("third");
    rig.restart().await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    assert_eq!(rig.store.sink_positions().expect("up").len(), 1);
    assert_eq!(rig.store.outbox_usage().expect("up").entries, 0);
    rig.assert_converged();
}

/// A store that was restored from a backup must not give a seq that a sink holds already.
#[tokio::test(start_paused = true)]
async fn no_seq_is_given_twice_after_the_store_is_set_back() {
    let mut rig = stocked(50);
    rig.sync_well().await;
    // A new store beside the old sinks: the worst of backups. Its clock stands, too.
    rig.store = std::sync::Arc::new(sierra_sync::store::MemoryStore::new(rig.clock.clone()));
    let ahead = std::sync::Arc::new(sierra_sync::store::MemoryStore::new(rig.clock.clone()));
    rig.store = ahead;
    rig.forget_engine();
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    rig.watch.tolerate_holes();
    rig.sync().await;
    rig.assert_converged();
    let events = rig.watch.events();
    assert!(events.iter().any(|event| matches!(event, Event::SinkAhead { .. })));
}

/// Several sinks, one of which is slow: the slow one does not hold up the others.
#[tokio::test(start_paused = true)]
async fn a_slow_sink_holds_up_nobody() {
    let mut rig = stocked(600);
    let mut calls = 0;
    rig.sink("second").script(move |_| {
        calls += 1;
        (calls < 4).then_some(Trouble::Busy)
    });
    let engine = rig.engine().await.expect("up");
    let token = tokio_util::sync::CancellationToken::new();
    let cancel = token.clone();
    let running = tokio::spawn(async move { engine.sync_once(&Default::default(), &cancel).await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(rig.sink("archive").holds(BIBS).len(), 600);
    running.await.expect("no panic").expect("a sound store");
    rig.assert_converged();
}

/// A12: what waits for a sink keeps to the retention of patrons' data; the gap is told, other streams wait on.
#[tokio::test(start_paused = true)]
async fn changes_of_patrons_do_not_wait_longer_than_they_may_be_kept() {
    let mut rig = Rig::on_shelf(1, &[BIBS, Stream::Patrons]);
    rig.library.with(|shelf| shelf.stock(BIBS, 5));
    rig.library.with(|shelf| shelf.stock(Stream::Patrons, 7));
    rig.sinks.get_mut("archive").expect("it exists").0.paused = true;
    rig.limits.retention = hours(48);
    assert_eq!(rig.sync().await.sinks["archive"].pending, 12);
    tokio::time::sleep(hours(47)).await;
    assert_eq!(rig.sync().await.sinks["archive"].pending, 12);
    tokio::time::sleep(hours(2)).await;
    assert_eq!(rig.sync().await.sinks["archive"].pending, 5);
    let waiting = rig.store.outbox_entries_after(sierra_sync::sync::Seq::ZERO, 100).expect("up");
    assert!(waiting.iter().all(|entry| entry.stream == BIBS), "{waiting:?}");
    let told = rig.watch.events();
    let told =
        told.iter().filter(|event| matches!(event, Event::ChangesExpired { sink, count: 7 } if sink == "archive"));
    assert_eq!(told.count(), 1);
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&crate::support::NoVitals.inputs()).await.expect("up");
    let gap = &status.sinks["archive"].gaps[0];
    assert!(gap.error.as_ref().is_some_and(|why| why.contains("7 changes of patrons waited longer")), "{gap:?}");
}
