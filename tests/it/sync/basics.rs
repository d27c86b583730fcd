//! Loading, following, and doing nothing when there is nothing to do.

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{CallClass, PageFilter};
use sierra_sync::sync::report::summary::StreamOutcome;
use sierra_sync::sync::{Pass, RowState, Store};

use crate::support::{Act, Rig, minutes};

const ALL: [Stream; 3] = Stream::ALL;

#[tokio::test(start_paused = true)]
async fn a_first_sync_loads_everything_and_a_second_emits_nothing() {
    let mut rig = Rig::on_shelf(1, &ALL);
    rig.library.with(|shelf| ALL.iter().for_each(|stream| shelf.stock(*stream, 350)));
    let first = rig.sync_well().await;
    rig.assert_converged();
    let bibs = &first.streams["bibs"];
    assert_eq!((bibs.state, bibs.changed, bibs.fetched, bibs.pages), (StreamOutcome::CaughtUp, 350, 350, 4));
    assert_eq!(first.sinks["archive"].delivered, 1050);
    tokio::time::sleep(minutes(5)).await;
    let second = rig.sync_well().await;
    assert_eq!((second.streams["bibs"].fetched, second.sinks["archive"].delivered), (0, 0));
}

/// BR-051, BR-052: the load leaves tombstones aside, and deletes of ids never seen are counted and not emitted.
#[tokio::test(start_paused = true)]
async fn a_load_emits_no_delete_of_what_was_never_seen() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| {
        shelf.stock(Stream::Bibs, 300);
        shelf.alive(Stream::Bibs).iter().step_by(3).for_each(|id| shelf.delete(Stream::Bibs, *id));
    });
    let summary = rig.sync_well().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((bibs.changed, bibs.deleted, bibs.deleted_unseen), (200, 0, 100));
    assert_eq!(summary.sinks["archive"].delivered, 200);
    rig.assert_converged();
    tokio::time::sleep(minutes(1)).await;
    let again = rig.sync_well().await;
    let bibs = &again.streams["bibs"];
    assert_eq!((bibs.unchanged, bibs.deleted_unseen, again.sinks["archive"].delivered), (100, 0, 0));
}

/// The load asks twice, five seconds apart and on another connection, before it believes in its end.
#[tokio::test(start_paused = true)]
async fn a_load_ends_on_two_empty_answers_on_different_connections() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| shelf.stock(Stream::Bibs, 10));
    rig.sync_well().await;
    let load: Vec<_> = rig.library.asked().into_iter().filter(|(_, query)| query.filter == PageFilter::Live).collect();
    assert_eq!(load.len(), 3);
    assert!(load.iter().all(|(_, query)| query.class == CallClass::Paced && query.limit == 100));
    assert_eq!(load.iter().map(|(_, query)| query.fresh_connection).collect::<Vec<_>>(), [false, false, true]);
    let apart = load[2].0.duration_since(load[1].0);
    assert!(apart >= SignedDuration::from_secs(5), "{apart}");
}

/// BR-059: each run asks only for what is new, with the overlap.
#[tokio::test(start_paused = true)]
async fn a_second_run_asks_for_the_new_window_alone() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| shelf.stock(Stream::Bibs, 150));
    let first = rig.sync_well().await;
    rig.library.asked();
    tokio::time::sleep(minutes(30)).await;
    let second = rig.sync_well().await;
    let asked = rig.library.asked();
    assert_eq!(asked.len(), 2, "one window and one delete pass: {asked:#?}");
    let pinned = first.streams["bibs"].watermark.expect("loaded");
    match &asked[0].1.filter {
        PageFilter::Updated(window) => {
            assert_eq!(window.start(), pinned - SignedDuration::from_mins(10));
            assert_eq!(Some(window.end()), second.streams["bibs"].watermark);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(asked[1].1.filter, PageFilter::Deleted { .. }));
    assert_eq!(second.streams["bibs"].calls, 3, "with the sign of life");
}

/// BR-073: nothing to do is a success, with no window opened.
#[tokio::test(start_paused = true)]
async fn a_run_right_after_another_opens_no_window() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| shelf.stock(Stream::Bibs, 5));
    rig.sync_well().await;
    // The load took some seconds of its own; a step back by more than those is within the tolerance.
    rig.library.with(|shelf| shelf.server_offset = SignedDuration::from_secs(-50));
    rig.library.asked();
    let again = rig.sync_well().await;
    assert_eq!(again.streams["bibs"].state, StreamOutcome::CaughtUp);
    assert!(rig.library.asked().iter().all(|(_, query)| matches!(query.filter, PageFilter::Deleted { .. })));
}

/// BR-028: closed neighbours merge, so that the ledger stays short however long the service runs.
#[tokio::test(start_paused = true)]
async fn the_ledger_stays_short() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| shelf.stock(Stream::Bibs, 20));
    rig.run_for(minutes(60 * 24), Some(minutes(20))).await.expect("a sound store");
    let rows = rig.store.ledger(Stream::Bibs).expect("the store is up");
    let passes: Vec<Pass> = rows.iter().map(|row| row.pass).collect();
    // What brought nothing lately stands beside what brought something.
    assert!(matches!(passes.len(), 3 | 4), "{rows:#?}");
    assert!(rows.iter().all(|row| row.state == RowState::Done));
    let newest = rows.iter().filter_map(|row| row.window()).map(|window| window.end()).max();
    let lag = rig.now().duration_since(newest.expect("a window"));
    assert!(lag < SignedDuration::from_mins(7), "{lag}");
}

/// Sierra's fields are asked for whole in a window, and nothing but the tombstone's in the delete pass.
#[tokio::test(start_paused = true)]
async fn the_delete_pass_asks_for_tombstones_alone() {
    use sierra_sync::sync::ports::FieldSet;
    let mut rig = Rig::on_shelf(1, &[Stream::Items]);
    rig.library.with(|shelf| shelf.stock(Stream::Items, 5));
    rig.sync_well().await;
    for (_, query) in rig.library.asked() {
        let is_delete_pass = matches!(query.filter, PageFilter::Deleted { .. });
        let expected = if is_delete_pass { FieldSet::Tombstones } else { FieldSet::Configured };
        assert_eq!(query.fields, expected);
    }
}

/// A10, §9: a fenced page is never asked for again after a clean stop.
#[tokio::test(start_paused = true)]
async fn a_clean_stop_in_mid_load_fetches_no_page_twice() {
    use tokio_util::sync::CancellationToken;
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| shelf.stock(Stream::Bibs, 1000));
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let engine = rig.engine().await.expect("a sound store");
    let running = tokio::spawn(async move { engine.sync_once(&Default::default(), &token).await });
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    cancel.cancel();
    let summary = running.await.expect("no panic").expect("a sound store");
    let interrupted = &summary.streams["bibs"];
    assert_eq!(interrupted.state, StreamOutcome::Partial);
    assert_eq!((summary.exit, interrupted.gaps.len()), (3, 1));
    assert!((100..=900).contains(&interrupted.fetched), "{interrupted:?}");
    rig.restart().await;
    let rest = rig.sync_well().await;
    assert_eq!(interrupted.fetched + rest.streams["bibs"].changed, 1000);
    rig.assert_converged();
}

/// A schedule that cannot be read is refused, not silently never run.
#[tokio::test(start_paused = true)]
async fn a_schedule_that_cannot_be_read_is_refused() {
    use sierra_sync::sync::settings::Cadence;
    for (expression, zone) in [("soup", "UTC"), ("0 * * * *", "Mars/Olympus"), ("0 0 30 2 *", "UTC")] {
        let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
        rig.settings(Stream::Bibs).cadence = Cadence::Cron { expression: expression.into(), zone: zone.into() };
        let refused = rig.try_open().await.err().expect("refused").to_string();
        assert!(refused.starts_with("streams.bibs.cron: "), "{refused}");
    }
}

/// BR-026: a record that stands on a page twice is one change; its second reading is no newer than the first.
#[tokio::test(start_paused = true)]
async fn a_record_that_stands_on_a_page_twice_is_emitted_once() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs, Stream::Items]);
    rig.library.with(|shelf| {
        shelf.stock(Stream::Bibs, 9);
        shelf.stock(Stream::Items, 9);
    });
    rig.library.script(|_, _, _| Act::Twice);
    let load = rig.sync_well().await;
    for stream in ["bibs", "items"] {
        let counts = &load.streams[stream];
        assert_eq!((counts.fetched, counts.changed, counts.stale), (18, 9, 9), "{stream}: {counts:?}");
    }
    tokio::time::sleep(minutes(5)).await;
    rig.library.with(|shelf| {
        shelf.edit(Stream::Bibs, 1004);
        shelf.delete(Stream::Bibs, 1007);
    });
    tokio::time::sleep(minutes(5)).await;
    let next = &rig.sync_well().await.streams["bibs"];
    assert_eq!((next.changed, next.deleted), (1, 1), "{next:?}");
    rig.assert_converged();
}
