//! Deletions: found wherever Sierra hides them, never inferred, never undone by what is older.

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{PageFilter, SourceErrorKind};
use sierra_sync::sync::report::status::OverallState;
use sierra_sync::sync::report::summary::StreamOutcome;
use sierra_sync::sync::{DeleteReason, Op, Store};

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;

async fn loaded(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.sync_well().await;
    rig.sink("archive").delivered();
    tokio::time::sleep(minutes(20)).await;
    rig
}

fn deletes(rig: &Rig<ShelfSource>) -> usize {
    rig.sink("archive").delivered().iter().filter(|(_, op)| matches!(op, Op::Delete { .. })).count()
}

/// BR-010: an edit and the deletion of the same day end deleted, whichever pass sees them first and however often.
#[tokio::test(start_paused = true)]
async fn an_edit_and_a_deletion_on_one_day_end_deleted() {
    for tombstones_in_updates in [false, true] {
        for delete_first in [false, true] {
            let mut rig = loaded(3).await;
            rig.library.with(|shelf| {
                shelf.tombstones_in_updates = tombstones_in_updates;
                if delete_first {
                    shelf.delete(BIBS, 1001);
                } else {
                    shelf.edit(BIBS, 1001);
                    shelf.delete(BIBS, 1001);
                }
            });
            tokio::time::sleep(minutes(2)).await;
            rig.sync_well().await;
            rig.sync_well().await;
            rig.assert_converged();
            assert_eq!(deletes(&rig), 1, "emitted once");
            // A later reappearance is live again.
            rig.library.with(|shelf| shelf.change(BIBS, 1001, |version| version.deleted_on = None));
            tokio::time::sleep(minutes(2)).await;
            rig.sync_well().await;
            rig.assert_converged();
            assert_eq!(rig.sink("archive").holds(BIBS).len(), 3);
        }
    }
}

/// BR-010: the record is deleted while the update pass is between its pages: the pass has read it alive, on the same
/// day, and still it ends deleted.
#[tokio::test(start_paused = true)]
async fn a_deletion_during_the_update_pass_is_not_undone_by_it() {
    let mut rig = loaded(250).await;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    tokio::time::sleep(minutes(2)).await;
    rig.library.script(|call, query, shelf| {
        if call == 2 && matches!(query.filter, PageFilter::Updated(_)) {
            shelf.delete(BIBS, 1001);
        }
        Act::Serve
    });
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].deleted, 1);
    rig.assert_converged();
}

/// BR-011: deletions never appear in update queries, and never move `updatedDate`; the delete pass finds them.
#[tokio::test(start_paused = true)]
async fn deletions_that_move_no_stamp_are_found() {
    let mut rig = loaded(300).await;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().take(120).for_each(|id| shelf.delete(BIBS, *id)));
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["bibs"].deleted, deletes(&rig)), (120, 120));
    rig.assert_converged();
}

/// BR-012: a deletion half past midnight of a local day ahead of UTC is found and dated by the library's zone.
#[tokio::test(start_paused = true)]
async fn a_deletion_after_local_midnight_is_found_and_dated_locally() {
    let zone = TimeZone::get("Pacific/Auckland").expect("in the time zone database");
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.zone = zone.clone();
    rig.library.with(|shelf| {
        shelf.zone = zone;
        shelf.stock(BIBS, 3);
    });
    rig.sync_well().await;
    rig.sink("archive").delivered();
    // 11:30Z on the 5th is 00:30 on the 6th in Auckland.
    tokio::time::sleep(minutes(90)).await;
    rig.library.with(|shelf| shelf.delete(BIBS, 1004));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    let delivered = rig.sink("archive").delivered();
    let deleted_on = Some(jiff::civil::date(2026, 1, 6));
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].1, Op::Delete { reason: DeleteReason::Deleted, deleted_on });
    rig.sync_well().await;
    assert_eq!(deletes(&rig), 0, "emitted once");
}

/// A delete pass that fails is a gap of the stream, and the next one reaches back to the last complete one.
#[tokio::test(start_paused = true)]
async fn a_failed_delete_pass_is_a_gap_and_is_made_up_for() {
    let mut rig = loaded(300).await;
    rig.library.script(|_, query, _| match query.filter {
        PageFilter::Deleted { .. } => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    rig.library.with(|shelf| shelf.delete(BIBS, 1001));
    for day in 0..3 {
        let summary = rig.sync().await;
        let bibs = &summary.streams["bibs"];
        assert_eq!((summary.exit, bibs.state, bibs.gaps.is_empty()), (69, StreamOutcome::Partial, false), "day {day}");
        tokio::time::sleep(hours(24)).await;
    }
    let owed =
        rig.store.ledger(BIBS).expect("the store is up").into_iter().filter(sierra_sync::sync::LedgerRow::is_owed);
    assert_eq!(owed.count(), 1, "one row, however long it goes on");
    rig.library.with(|shelf| shelf.delete(BIBS, 1301));
    rig.library.behave();
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].deleted, 2);
    rig.assert_converged();
}

/// BR-115, BR-043: whatever a listing says, or fails to say, nothing is deleted from absence.
#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_from_absence() {
    let mut rig = loaded(300).await;
    for act in [|| Act::Nothing, || Act::AtMost(3), || Act::Fail(SourceErrorKind::Exhausted)] {
        rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.bump(BIBS, *id)));
        tokio::time::sleep(minutes(12)).await;
        rig.library.script(move |call, _, _| if call > 1 { act() } else { Act::Serve });
        rig.sync().await;
        assert_eq!(deletes(&rig), 0);
    }
    rig.library.behave();
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-011, BR-049: a feed of deletions that is silent for a month is told, until one is listed again.
#[tokio::test(start_paused = true)]
async fn a_month_without_deletions_is_told() {
    let mut rig = loaded(10).await;
    for day in 0..=30 {
        tokio::time::sleep(hours(24)).await;
        rig.sync_well().await;
        let is_told = message(&mut rig).await.contains("no deletion of bibs since 2026-01-05");
        assert_eq!(is_told, day >= 29, "day {day}");
    }
    rig.restart().await;
    assert!(message(&mut rig).await.contains("`sierra-sync reconcile bibs --repair`"), "told by the next process too");
    rig.library.with(|shelf| shelf.delete(BIBS, 1001));
    rig.sync_well().await;
    assert_eq!(message(&mut rig).await, "All streams are fresh.");
}

async fn message(rig: &mut Rig<ShelfSource>) -> String {
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    assert_eq!(status.state, OverallState::Ok, "{}", status.message);
    status.message
}

/// A deletion that becomes visible late is found the next day too: the pass reaches back by a day.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_shows_late_is_found() {
    let mut rig = loaded(10).await;
    rig.library.with(|shelf| {
        shelf.commit_lag = SignedDuration::from_hours(13);
        shelf.delete(BIBS, 1001);
    });
    rig.sync_well().await;
    assert_eq!(deletes(&rig), 0);
    tokio::time::sleep(hours(14)).await;
    rig.sync_well().await;
    assert_eq!(deletes(&rig), 1);
    rig.assert_converged();
}
