//! Pages: nothing skipped, nothing asked for ever, nothing believed too early.

use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sync::ports::{PageFilter, SourceErrorKind};
use sierra_sync::sync::report::summary::StreamOutcome;

use crate::support::{Act, Rig, ShelfSource, minutes};

const BIBS: Stream = Stream::Bibs;

async fn loaded(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.sync_well().await;
    tokio::time::sleep(minutes(20)).await;
    rig
}

fn is_update(filter: &PageFilter) -> bool {
    matches!(filter, PageFilter::Updated(_))
}

/// BR-003, BR-055: records of page 1 are edited between the pages and leave the window; nobody else is skipped.
#[tokio::test(start_paused = true)]
async fn records_edited_between_pages_skip_nobody() {
    let mut rig = loaded(1200).await;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    tokio::time::sleep(minutes(2)).await;
    rig.library.script(|_, query, shelf| {
        if is_update(&query.filter) && query.after == Some(RecordNumber::new(1001 + 99 * 3)) {
            for id in [1001, 1004, 1007] {
                shelf.edit(BIBS, id);
            }
        }
        Act::Serve
    });
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].changed, 1200, "the three were read before they left");
    rig.library.behave();
    tokio::time::sleep(minutes(2)).await;
    let next = rig.sync_well().await;
    assert_eq!(next.streams["bibs"].changed, 3, "and are read again in the next window");
    rig.assert_converged();
}

/// BR-055: records that are added before the position while a load is under way come with the next window.
#[tokio::test(start_paused = true)]
async fn records_that_change_behind_a_load_are_followed_from_its_pin() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 500));
    rig.library.script(|_, query, shelf| {
        if query.filter == PageFilter::Live && query.after == Some(RecordNumber::new(1001 + 299 * 3)) {
            shelf.edit(BIBS, 1001);
            shelf.delete(BIBS, 1004);
        }
        Act::Serve
    });
    rig.sync_well().await;
    rig.library.behave();
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-002, BR-092: thousands of records in one second are fetched exactly once each.
#[tokio::test(start_paused = true)]
async fn ties_in_one_second_are_fetched_once_each() {
    let mut rig = loaded(2500).await;
    rig.settings(BIBS).page_size = 250;
    rig.restart().await;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    rig.sink("archive").delivered();
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync_well().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((bibs.changed, bibs.fetched, bibs.pages), (2500, 2500, 10));
    assert_eq!(rig.sink("archive").delivered().len(), 2500);
    tokio::time::sleep(minutes(1)).await;
    let again = rig.sync_well().await;
    assert_eq!((again.streams["bibs"].unchanged, again.streams["bibs"].changed), (2500, 0), "re-read and hash-skipped");
}

/// BR-054: an empty answer in mid-run does not end a window.
#[tokio::test(start_paused = true)]
async fn an_empty_answer_after_a_full_page_is_asked_again_on_another_connection() {
    let mut rig = loaded(350).await;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    tokio::time::sleep(minutes(2)).await;
    rig.library.asked();
    rig.library.script(|call, _, _| if call == 3 { Act::Nothing } else { Act::Serve });
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].changed, 350);
    let asked = rig.library.asked();
    assert!(asked[3].1.fresh_connection && asked[3].1.after == asked[2].1.after);
    assert!(asked.iter().filter(|(_, query)| query.fresh_connection).count() == 1);
    rig.assert_converged();
}

/// BR-054: in a load even the first empty answer of two is not believed.
#[tokio::test(start_paused = true)]
async fn an_empty_answer_in_a_load_does_not_end_it() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 350));
    rig.library.script(|call, _, _| if call == 1 || call == 4 { Act::Nothing } else { Act::Serve });
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].changed, 350);
    rig.assert_converged();
}

/// A page that does not go past its position is a loop: it fails, and is tried again later.
#[tokio::test(start_paused = true)]
async fn a_page_that_repeats_itself_fails_and_does_not_spin() {
    let mut rig = loaded(350).await;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    tokio::time::sleep(minutes(2)).await;
    rig.library.script(|_, query, _| if query.after.is_some() { Act::PageAfter(0) } else { Act::Serve });
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.state, bibs.gaps.len()), (3, StreamOutcome::Partial, 1));
    assert_eq!(bibs.error.as_ref().map(|error| error.kind.as_str()), Some("loop"));
    assert!(bibs.calls < 8, "{bibs:?}");
    rig.library.behave();
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-031: `limit` is always sent and pages go on until nothing comes, whatever a short page suggests.
#[tokio::test(start_paused = true)]
async fn a_server_that_caps_pages_below_the_limit_loses_nothing() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 201));
    rig.library.script(|_, _, _| Act::AtMost(50));
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["bibs"].changed, summary.streams["bibs"].pages), (201, 5));
    rig.assert_converged();
}

/// BR-066, BR-080, BR-113: a walk that dies goes on from its last durable id; nothing but one page is fetched again.
#[tokio::test(start_paused = true)]
async fn a_failed_page_is_resumed_from_the_last_durable_id() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 1000));
    let mut failures =
        [SourceErrorKind::Exhausted, SourceErrorKind::Exhausted, SourceErrorKind::CircuitOpen].into_iter();
    rig.library.script(move |call, _, _| match call % 4 {
        0 => failures.next().map_or(Act::Serve, Act::Fail),
        _ => Act::Serve,
    });
    let mut fetched = 0;
    for expected in [StreamOutcome::Partial, StreamOutcome::Partial, StreamOutcome::Suspended] {
        let summary = rig.sync().await;
        assert_eq!(summary.streams["bibs"].state, expected);
        fetched += summary.streams["bibs"].fetched;
    }
    let last = rig.sync_well().await;
    assert_eq!(fetched + last.streams["bibs"].changed, 1000, "nothing is fetched twice");
    rig.assert_converged();
}

/// A page that cannot be served whole is asked for in smaller parts.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_much_is_asked_for_in_smaller_ones() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 300));
    rig.library.script(|_, query, _| match query.limit {
        26.. => Act::Fail(SourceErrorKind::Narrow),
        _ => Act::Serve,
    });
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].changed, 300);
    rig.assert_converged();
}
