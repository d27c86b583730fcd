//! A store that is older than its sinks: restored from a backup, or lost. It rebuilds by itself, once, to the end.

use sierra_sync::record::Stream;
use sierra_sync::simulator::Fault;
use sierra_sync::store::{MemoryStore, Step};
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::rebuild::Damage;
use sierra_sync::sync::report::status::OverallState;
use sierra_sync::sync::report::summary::StreamOutcome;
use sierra_sync::sync::{Origin, Seq, Store};

use crate::support::{Act, NoVitals, Rig, ShelfSource, Sim, hours, minutes, seeds};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

fn stocked(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, count);
        shelf.stock(ITEMS, count);
    });
    for stream in [BIBS, ITEMS] {
        rig.settings(stream).page_size = 20;
    }
    rig
}

/// What happens after the backup, some of which nothing but a rebuild can find: records that came and went.
async fn life_after_the_backup(rig: &mut Rig<ShelfSource>) {
    let new = rig.library.with(|shelf| {
        shelf.edit(BIBS, 1001);
        shelf.delete(BIBS, 1004);
        shelf.change(ITEMS, 1004, |version| version.bib_ids = vec![1007, 1010]);
        [shelf.add(BIBS), shelf.add(BIBS)]
    });
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.library.with(|shelf| shelf.delete(BIBS, new[0]));
    tokio::time::sleep(hours(24 * 5)).await;
    rig.sync_well().await;
    assert!(rig.sink("archive").holds(BIBS).contains_key(&new[1].to_string()));
    // And this one goes while nobody looks.
    rig.library.with(|shelf| shelf.delete(BIBS, new[1]));
    tokio::time::sleep(hours(24 * 5)).await;
    rig.sink("archive").sources();
    rig.watch.events();
}

fn count(events: &[Event], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|event| wanted(event)).count()
}

async fn assert_rebuilt_once(rig: &mut Rig<ShelfSource>, context: &str) {
    let events = rig.watch.events();
    let begun = count(&events, |event| matches!(event, Event::RebuildBegun { .. }));
    assert!(begun <= 1, "{context}: begun {begun} times");
    rig.assert_converged();
    // It ends by itself, and nothing begins it again.
    for _ in 0..2 {
        rig.restart().await;
        tokio::time::sleep(minutes(20)).await;
        let later = rig.sync_well().await;
        assert_eq!(later.sinks["archive"].delivered, 0, "{context}");
    }
    let events = rig.watch.events();
    assert_eq!(count(&events, |event| matches!(event, Event::RebuildBegun { .. })), 0, "{context}: it loops");
}

/// §9: everything is emitted again, changed or not, marked as such, and so is every deletion; exit 0.
#[tokio::test(start_paused = true)]
async fn a_restored_backup_is_rebuilt_and_says_so() {
    let mut rig = stocked(45);
    rig.sync_well().await;
    let backup = rig.store.backup();
    life_after_the_backup(&mut rig).await;
    rig.restore(backup);
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&NoVitals.inputs()).await.expect("up");
    assert_ne!(status.state, OverallState::Failing);
    let summary = rig.sync_well().await;
    let events = rig.watch.events();
    assert_eq!(count(&events, |event| matches!(event, Event::SinkAhead { sink, .. } if sink == "archive")), 1);
    assert_eq!(count(&events, |event| matches!(event, Event::RebuildBegun { streams } if streams.len() == 2)), 1);
    assert_eq!(count(&events, |event| matches!(event, Event::RebuildDone { .. })), 2);
    assert_eq!(summary.streams["bibs"].state, StreamOutcome::CaughtUp);
    assert!(summary.sinks["archive"].delivered >= 89, "{summary:#?}");
    assert!(rig.sink("archive").sources().contains(&Origin::Rebuild));
    assert_rebuilt_once(&mut rig, "restored").await;
}

/// A lost state beside old sinks: the first load is the rebuild's sweep, not a second one.
#[tokio::test(start_paused = true)]
async fn a_lost_state_is_rebuilt_in_one_load() {
    let mut rig = stocked(45);
    rig.sync_well().await;
    life_after_the_backup(&mut rig).await;
    rig.restore(MemoryStore::new(rig.clock.clone()));
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&NoVitals.inputs()).await.expect("up");
    assert_eq!(status.state, OverallState::Ok);
    assert!(status.message.starts_with("A rebuild is under way") && status.message.ends_with(": bibs, items."));
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["items"].changed, summary.streams["items"].fetched), (45, 45));
    assert_eq!(rig.sink("archive").sources(), [Origin::Rebuild]);
    assert_rebuilt_once(&mut rig, "lost").await;
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    assert_eq!(status.message, "All streams are fresh.");
}

/// A state that was begun in the place of a damaged one rebuilds although no sink can tell how far it is: nobody knows
/// any more what they were given. It is told why, and it ends by itself.
#[tokio::test(start_paused = true)]
async fn a_state_begun_after_damage_is_rebuilt_whatever_the_sinks_can_tell() {
    let mut rig = stocked(45);
    rig.sync_well().await;
    life_after_the_backup(&mut rig).await;
    rig.sink("archive").cannot_tell();
    let new = MemoryStore::new(rig.clock.clone());
    let set_aside = "damaged-20260105T100000Z".to_owned();
    let damage = Damage { at: rig.now(), why: "read a value: it is damaged".into(), set_aside };
    damage.owe_rebuild(&new).expect("up");
    rig.restore(new);
    let engine = rig.engine().await.expect("up");
    let status = engine.status(&NoVitals.inputs()).await.expect("up");
    assert!(status.message.contains("the state was damaged and lies in damaged-2026"), "{}", status.message);
    rig.sync_well().await;
    let events = rig.watch.events();
    assert_eq!(count(&events, |event| matches!(event, Event::SinkAhead { .. })), 0);
    assert_eq!(count(&events, |event| matches!(event, Event::RebuildDone { .. })), 2);
    rig.assert_converged();
    for _ in 0..2 {
        rig.restart().await;
        tokio::time::sleep(minutes(20)).await;
        assert_eq!(rig.sync_well().await.sinks["archive"].delivered, 0);
    }
}

/// Killed at every single step, it is resumed and comes to its end.
#[tokio::test(start_paused = true)]
async fn a_rebuild_is_resumed_when_killed_at_every_step() {
    for is_lost in [false, true] {
        let steps = {
            let mut rig = set_back(is_lost).await;
            rig.sync_well().await;
            rig.store.writes()
        };
        for step in Step::OF_A_WRITE {
            for spared in 0..steps {
                let context = format!("lost {is_lost}, {step:?} {spared} of {steps}");
                let mut rig = set_back(is_lost).await;
                rig.store.fail_at(step, spared);
                let struck = rig.try_sync().await.is_err();
                assert!(struck, "{context}");
                rig.crash();
                rig.sync_well().await;
                assert_rebuilt_once(&mut rig, &context).await;
            }
        }
    }
}

/// A small library whose state was set back behind its sink.
async fn set_back(is_lost: bool) -> Rig<ShelfSource> {
    let mut rig = stocked(12);
    rig.settings(BIBS).page_size = 5;
    rig.settings(ITEMS).page_size = 5;
    rig.sync_well().await;
    let backup = rig.store.backup();
    life_after_the_backup(&mut rig).await;
    let lost = MemoryStore::new(rig.clock.clone());
    rig.restore(if is_lost { lost } else { backup });
    rig
}

/// A backup that was taken in mid-load, or in mid-rebuild, is one like any other.
#[tokio::test(start_paused = true)]
async fn a_backup_from_the_middle_of_a_load_is_rebuilt_from_the_beginning() {
    for writes in [10, 14, 18] {
        let mut rig = stocked(60);
        rig.settings(BIBS).page_size = 5;
        rig.store.fail_at(Step::BeforeCommit, writes);
        assert!(rig.try_sync().await.is_err());
        rig.crash();
        let backup = rig.store.backup();
        rig.sync_well().await;
        life_after_the_backup(&mut rig).await;
        rig.restore(backup);
        rig.store.fail_at(Step::BeforeCommit, writes);
        assert!(rig.try_sync().await.is_err());
        rig.crash();
        let second = rig.store.backup();
        rig.sync_well().await;
        rig.library.with(|shelf| shelf.edit(BIBS, 1001));
        tokio::time::sleep(minutes(20)).await;
        rig.sync_well().await;
        rig.restore(second);
        rig.watch.events();
        rig.sync_well().await;
        assert_rebuilt_once(&mut rig, &format!("{writes} writes")).await;
    }
}

/// A rebuild that emits nothing leaves the store as far behind as before; it does not begin again for that.
#[tokio::test(start_paused = true)]
async fn a_rebuild_of_nothing_does_not_begin_again() {
    let mut rig = stocked(0);
    rig.sync_well().await;
    rig.sink("archive").claim(Seq::new(1 << 52).expect("a seq"));
    rig.restart().await;
    rig.sync_well().await;
    assert_eq!(count(&rig.watch.events(), |event| matches!(event, Event::RebuildBegun { .. })), 1);
    assert_rebuilt_once(&mut rig, "nothing").await;
    // A sink that turns out to be ahead by more is another matter.
    rig.sink("archive").claim(Seq::new((1 << 52) + 1).expect("a seq"));
    rig.restart().await;
    rig.sync_well().await;
    assert_eq!(count(&rig.watch.events(), |event| matches!(event, Event::RebuildBegun { .. })), 1);
}

/// A sink that cannot be asked when the store is opened is asked before its first delivery.
#[tokio::test(start_paused = true)]
async fn a_sink_that_answers_late_is_still_found_to_be_ahead() {
    let mut rig = stocked(45);
    rig.sync_well().await;
    let backup = rig.store.backup();
    life_after_the_backup(&mut rig).await;
    rig.restore(backup);
    rig.sink("archive").mute(2);
    rig.library.with(|shelf| shelf.edit(BIBS, 1010));
    tokio::time::sleep(minutes(2)).await;
    rig.sync().await;
    assert_eq!(count(&rig.watch.events(), |event| matches!(event, Event::RebuildBegun { .. })), 1);
    rig.sync_well().await;
    rig.sync_well().await;
    assert_rebuilt_once(&mut rig, "late").await;
}

/// A record that left the configured locations since the backup is withdrawn.
#[tokio::test(start_paused = true)]
async fn what_left_the_locations_since_the_backup_is_withdrawn() {
    let mut rig = stocked(12);
    rig.settings(BIBS).locations = vec!["branch".into()];
    rig.sync_well().await;
    let backup = rig.store.backup();
    rig.library.with(|shelf| shelf.change(BIBS, 1004, |version| version.location = "branch".into()));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    assert_eq!(rig.sink("archive").holds(BIBS).len(), 1);
    rig.library.with(|shelf| shelf.change(BIBS, 1004, |version| version.location = "main".into()));
    tokio::time::sleep(minutes(2)).await;
    rig.restore(backup);
    rig.sync_well().await;
    assert_eq!(rig.sink("archive").holds(BIBS).len(), 0);
}

/// A sweep that fails is a gap, its deletions wait for it, and the next run goes on.
#[tokio::test(start_paused = true)]
async fn a_rebuild_that_fails_half_way_is_owed_and_goes_on() {
    let mut rig = set_back(false).await;
    rig.library.script(|_, query, _| {
        let is_sweep = query.filter == sierra_sync::sync::ports::PageFilter::Live && query.after.is_some();
        if is_sweep { Act::Fail(sierra_sync::sync::ports::SourceErrorKind::Exhausted) } else { Act::Serve }
    });
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.state, bibs.gaps.len()), (69, StreamOutcome::Partial, 2), "{summary:#?}");
    rig.library.behave();
    rig.sync_well().await;
    assert_rebuilt_once(&mut rig, "failed").await;
}

/// The service rebuilds, too, against a simulated Sierra that misbehaves, and what changes meanwhile is not lost.
#[tokio::test(start_paused = true)]
async fn the_service_rebuilds_while_the_library_lives_and_sierra_misbehaves() {
    for seed in seeds(2) {
        let plan = Sim::seeded(seed).library(150).page_size(30).fault(Fault::MalformedJson.every(9));
        let mut sim = plan.start().await;
        sim.run_for(hours(2)).await;
        let backup = sim.store.backup();
        sim.run_for(hours(12)).await;
        sim.sync().await;
        sim.restore(backup);
        sim.run_for(hours(1)).await;
        assert_eq!(count(&sim.watch.events(), |event| matches!(event, Event::RebuildBegun { .. })), 1, "{seed}");
        sim.assert_converged().await;
        assert!(sim.store.ledger(BIBS).expect("up").len() < 10, "{seed}: nothing of it is left behind");
    }
}
