//! Cursors put by people: whatever they say, nothing is lost, and the ledger never goes back.

use jiff::{SignedDuration, Timestamp};
use sierra_sync::record::Stream;
use sierra_sync::sync::cursor;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::PageFilter;
use sierra_sync::sync::window::whole_second;
use sierra_sync::sync::{Origin, Store};

use crate::support::{Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;

/// A loaded stream that was followed for `time` hours.
async fn followed(time: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 60));
    rig.settings(BIBS).page_size = 20;
    rig.sync_well().await;
    for _ in 0..time {
        tokio::time::sleep(hours(1)).await;
        rig.sync_well().await;
    }
    rig.library.asked();
    rig.sink("archive").sources();
    rig.sink("archive").delivered();
    rig
}

fn put(rig: &mut Rig<ShelfSource>, to: Timestamp) -> Result<Timestamp, cursor::CursorError> {
    let (settings, zone, now) = (rig.settings(BIBS).clone(), rig.zone.clone(), rig.now());
    cursor::put(rig.store.as_ref(), &settings, &zone, to, false, now)
}

/// CUR-1, WIN-1: put back, the span is read again, changes and deletions; what differs is emitted, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_cursor_put_back_reads_everything_since_once_more() {
    let mut rig = followed(72).await;
    let back = whole_second(rig.now()) - SignedDuration::from_hours(40);
    rig.library.with(|shelf| {
        // Stamped inside the span, and seen by no window when it was open.
        let stamp = back + SignedDuration::from_mins(5);
        shelf.change(BIBS, 1010, |version| (version.updated, version.title) = (stamp, "back-dated".into()));
        let day = shelf.zone.to_datetime(back - SignedDuration::from_hours(24)).date();
        shelf.delete(BIBS, 1013);
        shelf.change_silently(BIBS, 1013, |version| version.deleted_on = Some(day));
    });
    put(&mut rig, back).expect("put");
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["bibs"].changed, summary.streams["bibs"].deleted), (1, 1), "{summary:?}");
    let asked = rig.library.asked();
    let starts = |wanted: &dyn Fn(&PageFilter) -> bool| asked.iter().any(|(_, query)| wanted(&query.filter));
    assert!(starts(&|filter| matches!(filter, PageFilter::Updated(window) if window.start() == back)), "{asked:?}");
    rig.assert_converged();
    // Done once, it is not done again, but for what brought nothing in all these hours: that is read once more.
    tokio::time::sleep(minutes(10)).await;
    let once_more = rig.sync_well().await;
    assert_eq!((once_more.streams["bibs"].changed, once_more.streams["bibs"].deleted), (0, 0));
    tokio::time::sleep(minutes(10)).await;
    assert_eq!(rig.sync_well().await.streams["bibs"].fetched, 0);
}

/// WIN-1: put ahead, the span between is owed and read: an edit in it arrives.
#[tokio::test(start_paused = true)]
async fn a_cursor_put_ahead_skips_nothing() {
    let mut rig = followed(1).await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1010));
    tokio::time::sleep(hours(6)).await;
    let ahead = whole_second(rig.now()) - SignedDuration::from_hours(1);
    put(&mut rig, ahead).expect("put");
    let shown = cursor::show(rig.store.as_ref(), &[BIBS]).expect("up");
    assert!(shown.iter().any(|line| line.window.ends_with(&format!("{ahead})"))), "{shown:?}");
    rig.sync_well().await;
    rig.assert_converged();
}

/// §9: a backup was restored, and the sinks cannot tell that they hold more: a person says so.
#[tokio::test(start_paused = true)]
async fn a_rebuild_can_be_ordered_for_a_restored_backup() {
    let mut rig = followed(1).await;
    let backup = rig.store.backup();
    let new = rig.library.with(|shelf| shelf.add(BIBS));
    tokio::time::sleep(minutes(10)).await;
    rig.sync_well().await;
    rig.library.with(|shelf| shelf.delete(BIBS, new));
    tokio::time::sleep(hours(24 * 9)).await;
    rig.restore(backup);
    // The destination cannot be asked.
    rig.sink("archive").mute(u32::MAX);
    rig.sync().await;
    assert!(rig.sink("archive").holds(BIBS).contains_key(&new.to_string()), "nothing tells that it is gone");
    assert!(cursor::rebuild(rig.store.as_ref(), &[BIBS], rig.now()).expect("up"));
    assert!(!cursor::rebuild(rig.store.as_ref(), &[BIBS], rig.now()).expect("up"), "it is under way");
    rig.sync().await;
    rig.sink("archive").mute(0);
    rig.sync_well().await;
    assert!(rig.sink("archive").sources().contains(&Origin::Rebuild));
    assert!(rig.watch.events().iter().any(|event| matches!(event, Event::RebuildDone { stream: BIBS })));
    rig.assert_converged();
    let rows = rig.store.ledger(BIBS).expect("up");
    assert!(rows.iter().all(|row| !row.is_owed()), "{rows:?}");
}
