//! The late sweep: what became visible after its window was done is found within a day, and nothing is made of absence.

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{CallClass, PageFilter, SourceErrorKind};
use sierra_sync::sync::settings::Repeat;
use sierra_sync::sync::{Origin, Pass, RowState, Store};

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;

async fn loaded() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 60));
    rig.settings(BIBS).page_size = 20;
    rig.settings(BIBS).late_sweep = Some(Repeat::Daily);
    rig.sync_well().await;
    rig.sink("archive").sources();
    rig
}

/// An edit and a new record that readers see 40 minutes after their stamps: no window shows them. Another edit is seen at
/// once: a window that brings nothing is read once more, and would have shown them.
fn edit_late(rig: &Rig<ShelfSource>) {
    rig.library.with(|shelf| {
        shelf.commit_lag = SignedDuration::from_mins(40);
        shelf.edit(BIBS, 1010);
        shelf.add(BIBS);
        shelf.commit_lag = SignedDuration::ZERO;
        shelf.edit(BIBS, 1013);
    });
}

fn is_late(query: &sierra_sync::sync::ports::PageQuery) -> bool {
    query.class == CallClass::Paced && matches!(query.filter, PageFilter::Updated(_))
}

/// BR-072: by `sync`, every five minutes; the finished load counts as a sweep, so the first comes a day later.
#[tokio::test(start_paused = true)]
async fn records_that_became_visible_forty_minutes_late_are_found() {
    let mut rig = loaded().await;
    edit_late(&rig);
    for _ in 0..21 * 12 {
        tokio::time::sleep(minutes(5)).await;
        rig.sync_well().await;
    }
    assert_eq!(rig.sink("archive").sources(), [Origin::Incremental], "no window shows them, and no sweep is due");
    let shown = |event: &Event| matches!(event, Event::PageCaptured { pass: Pass::Update, changes: 2.., .. });
    assert!(!rig.watch.events().iter().any(shown), "the edit that is seen at once, and no other");
    rig.library.asked();
    for _ in 0..2 * 12 {
        tokio::time::sleep(minutes(5)).await;
        rig.sync_well().await;
    }
    assert_eq!(rig.sink("archive").sources(), [Origin::LateSweep]);
    let found = |event: &Event| matches!(event, Event::LateFound { stream: BIBS, count: 2 });
    assert_eq!(rig.watch.events().iter().filter(|event| found(event)).count(), 1, "it is told, once");
    rig.assert_converged();
    let asked = rig.library.asked();
    let begun: Vec<_> = asked.iter().filter(|(_, query)| is_late(query) && query.after.is_none()).collect();
    assert_eq!(begun.len(), 1, "once a day: {begun:?}");
    // The last success is stored: another process does not sweep again.
    rig.restart().await;
    rig.sync_well().await;
    assert!(!rig.library.asked().iter().any(|(_, query)| is_late(query)));
    let rows = rig.store.ledger(BIBS).expect("up");
    let swept: Vec<_> = rows.iter().filter(|row| row.pass == Pass::LateSweep).collect();
    assert_eq!((swept.len(), swept[0].state), (1, RowState::Done), "{rows:?}");
}

/// The service does the same by itself, day after day, and its passes go on meanwhile.
#[tokio::test(start_paused = true)]
async fn a_service_sweeps_every_day() {
    let mut rig = loaded().await;
    for day in 0..3 {
        edit_late(&rig);
        rig.run_for(hours(25), None).await.expect("a sound store");
        assert!(rig.sink("archive").sources().contains(&Origin::LateSweep), "day {day}");
        rig.assert_converged();
    }
}

/// What a sweep cannot have is shown as a gap until it is had; the stream's own passes have caught up all the same.
#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_is_a_gap_until_it_is_done() {
    let mut rig = loaded().await;
    edit_late(&rig);
    tokio::time::sleep(hours(25)).await;
    rig.library.script(|_, query, _| match is_late(query) && query.after.is_some() {
        true => Act::Fail(SourceErrorKind::Exhausted),
        false => Act::Serve,
    });
    let failed = rig.sync().await;
    assert_eq!((failed.exit, failed.streams["bibs"].gaps.len()), (3, 1), "{failed:?}");
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    assert_eq!(status.streams["bibs"].gaps.len(), 1);
    assert!(status.streams["bibs"].last_success.is_some_and(|at| at > rig.now() - SignedDuration::from_mins(5)));
    rig.library.behave();
    rig.restart().await;
    let healed = rig.sync_well().await;
    assert_eq!(healed.streams["bibs"].gaps, []);
    rig.assert_converged();
}

/// It concludes nothing from absence, and nothing of it is done when it is off.
#[tokio::test(start_paused = true)]
async fn nothing_is_concluded_from_absence_and_off_is_off() {
    let mut rig = loaded().await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1010));
    tokio::time::sleep(minutes(10)).await;
    rig.sync_well().await;
    rig.library.with(|shelf| shelf.vanish(BIBS, 1010));
    tokio::time::sleep(hours(25)).await;
    rig.sync_well().await;
    assert!(rig.sink("archive").holds(BIBS).contains_key("1010"));
    rig.settings(BIBS).late_sweep = None;
    rig.restart().await;
    rig.library.asked();
    tokio::time::sleep(hours(50)).await;
    rig.sync_well().await;
    assert!(!rig.library.asked().iter().any(|(_, query)| is_late(query)));
}
