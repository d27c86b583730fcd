//! Reconciliation: what no window shows is found and exactly that is put right; and it deletes nothing that it may not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sync::engine::ReconcileOutcome;
use sierra_sync::sync::ports::{CallClass, FieldSet, PageFilter, PageQuery, SourceErrorKind};
use sierra_sync::sync::report::status::ReconcileStatus;
use sierra_sync::sync::settings::Repeat;
use sierra_sync::sync::sweep::{ReconcileOrder, ReconcileReport};
use sierra_sync::sync::{DeleteReason, EngineError, Op, Origin, Pass, RowState, Store};
use tokio_util::sync::CancellationToken;

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

async fn loaded(streams: &[Stream], count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, streams);
    for stream in streams {
        rig.library.with(|shelf| shelf.stock(*stream, count));
    }
    rig.sync_well().await;
    tokio::time::sleep(minutes(20)).await;
    rig.sync_well().await;
    forget(&rig);
    rig
}

fn forget(rig: &Rig<ShelfSource>) {
    rig.library.asked();
    rig.sink("archive").delivered();
    rig.sink("archive").sources();
}

fn look(stream: Stream) -> ReconcileOrder {
    ReconcileOrder { repair: false, ..ReconcileOrder::scheduled(stream, false) }
}

fn repair(stream: Stream) -> ReconcileOrder {
    ReconcileOrder::scheduled(stream, false)
}

fn deep(order: ReconcileOrder) -> ReconcileOrder {
    ReconcileOrder { deep: true, ..order }
}

fn counts(found: &ReconcileReport) -> (u64, u64, u64, u64) {
    (found.checked, found.drift, found.missing, found.repaired)
}

/// The `n`-th record of a shelf.
fn nth(n: u64) -> u64 {
    1001 + n * 3
}

/// The numbers told to the sink since it was last asked, and those among them as deleted because they vanished.
fn told(rig: &Rig<ShelfSource>) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let delivered = rig.sink("archive").delivered();
    let id = |key: &str| key.split('/').nth(1).and_then(|id| id.parse().ok()).expect("a number");
    let vanished = |op: &Op| matches!(op, Op::Delete { reason: DeleteReason::Vanished, .. });
    let gone = delivered.iter().filter(|(_, op)| vanished(op)).map(|(key, _)| id(key)).collect();
    (delivered.iter().map(|(key, _)| id(key)).collect(), gone)
}

fn no_delete_was_told(rig: &Rig<ShelfSource>) {
    let delivered = rig.sink("archive").delivered();
    assert!(delivered.iter().all(|(_, op)| *op == Op::Upsert), "{delivered:?}");
}

fn is_sweep(query: &PageQuery) -> bool {
    query.filter == PageFilter::Live && query.class == CallClass::Paced
}

/// BR-069, BR-014: a thousand back-dated records, silent suppressions, moved items and vanished records.
#[tokio::test(start_paused = true)]
async fn what_no_window_shows_is_found_and_exactly_that_is_repaired() {
    let mut rig = loaded(&[BIBS, ITEMS], 3000).await;
    let mut drifted: BTreeSet<u64> = BTreeSet::new();
    rig.library.with(|shelf| {
        let ago = |days: i64| shelf.now() - SignedDuration::from_hours(24 * days);
        let (month, ages) = (ago(30), ago(500));
        drifted.extend((0..500).map(|_| shelf.add_dated(BIBS, month)));
        for n in 0..500 {
            // Half of them with stamps before those that are known.
            let stamp = if n % 2 == 0 { month } else { ages };
            let id = nth(n * 5);
            shelf.change(BIBS, id, |version| (version.updated, version.title) = (stamp, format!("back-dated {n}")));
            drifted.insert(id);
        }
        for n in 0..20 {
            let id = nth(n * 5 + 1);
            shelf.change_silently(BIBS, id, |version| version.suppressed = true);
            drifted.insert(id);
        }
    });
    let vanished: BTreeSet<u64> = (0..12).map(|n| nth(n * 40 + 2)).collect();
    let moved: BTreeSet<u64> = (0..30).map(|n| nth(n * 7)).collect();
    rig.library.with(|shelf| {
        vanished.iter().for_each(|id| shelf.vanish(BIBS, *id));
        moved.iter().for_each(|id| shelf.change_silently(ITEMS, *id, |version| version.bib_ids = vec![1004, 1007]));
    });
    tokio::time::sleep(minutes(20)).await;
    rig.sync_well().await;
    assert_eq!(told(&rig).0.len(), 0, "no window shows any of it");

    let looked = rig.reconcile(&look(BIBS)).await;
    assert_eq!(counts(&looked.found), (3488, 1020, 12, 0), "{looked:?}");
    assert_eq!((looked.exit, &looked.found.stopped), (0, &None));
    assert_eq!(told(&rig).0.len(), 0, "it only looked");
    let rows = rig.store.ledger(BIBS).expect("up");
    assert!(rows.iter().all(|row| row.pass != Pass::Reconcile), "nothing of it is left: {rows:?}");

    rig.library.asked();
    let repaired = rig.reconcile(&repair(BIBS)).await;
    assert_eq!(counts(&repaired.found), (3488, 1020, 12, 1032), "{repaired:?}");
    assert_eq!((repaired.exit, &repaired.found.stopped), (0, &None));
    let (all, gone) = told(&rig);
    assert_eq!(gone, vanished);
    assert_eq!(all, drifted.union(&vanished).copied().collect());
    // Exactly these were read whole, by number.
    let asked = rig.library.asked();
    let by_list = |query: &PageQuery| match (&query.filter, query.fields) {
        (PageFilter::Ids(ids), FieldSet::Configured) => ids.iter().map(|id| id.value()).collect(),
        _ => Vec::new(),
    };
    let read: BTreeSet<u64> = asked.iter().flat_map(|(_, query)| by_list(query)).collect();
    assert!(read.is_superset(&all) && read.len() <= all.len() + 2, "but for two witnesses: {}", read.len());
    assert!(asked.iter().all(|(_, query)| query.class == CallClass::Paced));
    assert!(asked.iter().filter(|(_, query)| is_sweep(query)).all(|(_, query)| query.fields == FieldSet::Identity));

    let items = rig.reconcile(&repair(ITEMS)).await;
    assert_eq!(counts(&items.found), (3000, 30, 0, 30), "{items:?}");
    assert_eq!(told(&rig), (moved, BTreeSet::new()));
    assert_eq!(rig.sink("archive").sources(), [Origin::Reconcile]);
    rig.assert_converged();
    for stream in [BIBS, ITEMS] {
        let again = rig.reconcile(&repair(stream)).await.found;
        assert_eq!((again.drift, again.missing, again.repaired, again.stopped), (0, 0, 0, None));
    }
}

#[tokio::test(start_paused = true)]
async fn edits_without_a_stamp_are_found_by_deep_alone() {
    let mut rig = loaded(&[BIBS], 300).await;
    rig.library.with(|shelf| {
        (0..7).for_each(|n| shelf.change_silently(BIBS, nth(n * 9), |version| version.title = format!("silent {n}")));
    });
    assert_eq!(counts(&rig.reconcile(&repair(BIBS)).await.found), (300, 0, 0, 0));
    assert_eq!(counts(&rig.reconcile(&deep(look(BIBS))).await.found), (300, 7, 0, 0));
    no_delete_was_told(&rig);
    assert_eq!(counts(&rig.reconcile(&deep(repair(BIBS))).await.found), (300, 7, 0, 7));
    assert_eq!(told(&rig).0, (0..7).map(|n| nth(n * 9)).collect());
    rig.assert_converged();
}

/// BR-043: nothing is deleted from a sweep that brought nothing, that failed, that ended early or that has holes.
#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_from_a_sweep_that_is_not_whole() {
    type Script = fn(u64, &PageQuery) -> Act;
    // (what happens, what is said, how many are said to be missing)
    let table: [(&str, Script, &str, u64); 5] = [
        ("empty", |_, _| Act::Nothing, "the sweep brought no record", 300),
        (
            "failed",
            |call, _| if call < 3 { Act::Serve } else { Act::Fail(SourceErrorKind::Exhausted) },
            "did not come to its end",
            0,
        ),
        (
            "short",
            |call, _| if call < 2 { Act::Serve } else { Act::Nothing },
            "200 of 300 records did not come, more than 1 %",
            200,
        ),
        (
            "skipping",
            |call, _| if call == 2 { Act::PageAfter(1001 + 3 * 149) } else { Act::Serve },
            "50 of 300 records did not come",
            50,
        ),
        (
            "cut at its end",
            |_, query| match query.after.is_some_and(|after| after.value() >= 1001 + 3 * 297) {
                true => Act::Nothing,
                false if query.after.is_some_and(|after| after.value() >= 1001 + 3 * 199) => Act::AtMost(98),
                false => Act::Serve,
            },
            "ended before the last record that lives",
            2,
        ),
    ];
    for (what, script, sentence, missing) in table {
        let mut rig = loaded(&[BIBS], 300).await;
        let mut calls = 0;
        rig.library.script(move |_, query, _| {
            if !is_sweep(query) {
                return Act::Serve;
            }
            calls += 1;
            script(calls, query)
        });
        let outcome = rig.reconcile(&repair(BIBS)).await;
        let stopped = outcome.found.stopped.clone().unwrap_or_default();
        assert!(stopped.contains(sentence), "{what}: {outcome:?}");
        assert_eq!((outcome.found.missing, outcome.found.repaired), (missing, 0), "{what}: {outcome:?}");
        assert_eq!(outcome.exit, 3, "{what}");
        no_delete_was_told(&rig);
        rig.library.behave();
        rig.assert_converged();
    }
}

/// Sierra leaves out a live record now and then: it is asked for by number, and lives.
#[tokio::test(start_paused = true)]
async fn a_live_record_that_a_page_leaves_out_stays() {
    let mut rig = loaded(&[BIBS], 300).await;
    rig.library.script(|_, query, _| match query.after {
        Some(after) if is_sweep(query) && after.value() == nth(99) => Act::PageAfter(nth(101)),
        _ => Act::Serve,
    });
    let found = rig.reconcile(&repair(BIBS)).await.found;
    assert_eq!((counts(&found), found.stopped), ((298, 0, 0, 0), None));
    no_delete_was_told(&rig);
    rig.assert_converged();
}

/// A list that is answered with "nothing" by a server that knows better is not believed; nor is one that changes its
/// mind five seconds later.
#[tokio::test(start_paused = true)]
async fn a_ghost_answer_deletes_nothing() {
    let mut rig = loaded(&[BIBS], 300).await;
    rig.library.with(|shelf| shelf.vanish(BIBS, nth(7)));
    rig.library.script(|_, query, _| match query.filter {
        PageFilter::Ids(_) => Act::Nothing,
        _ => Act::Serve,
    });
    let outcome = rig.reconcile(&repair(BIBS)).await;
    assert!(outcome.found.stopped.as_ref().is_some_and(|why| why.contains("had just shown")), "{outcome:?}");
    assert_eq!((outcome.exit, outcome.found.repaired), (3, 0));
    no_delete_was_told(&rig);

    // Left out by the sweep and by the first list, it is there in the second.
    let mut rig = loaded(&[BIBS], 300).await;
    let mut lists = Vec::new();
    rig.library.script(move |_, query, shelf| match (&query.filter, query.after) {
        (PageFilter::Live, Some(after)) if after.value() == nth(99) => Act::PageAfter(nth(100)),
        (PageFilter::Ids(ids), _) => {
            lists.push(shelf.now());
            if lists.len() == 2 {
                let apart = lists[1].duration_since(lists[0]);
                assert!(apart >= SignedDuration::from_secs(5) && query.fresh_connection, "{apart}");
            }
            let without: Vec<RecordNumber> = ids.iter().copied().filter(|id| id.value() != nth(100)).collect();
            if lists.len() == 1 { Act::Instead(PageFilter::Ids(without)) } else { Act::Serve }
        }
        _ => Act::Serve,
    });
    let found = rig.reconcile(&repair(BIBS)).await.found;
    assert_eq!((counts(&found), found.stopped), ((299, 0, 0, 0), None));
    no_delete_was_told(&rig);
    rig.assert_converged();
}

/// A deletion that the delete pass was never told of: the tombstone itself is the answer.
#[tokio::test(start_paused = true)]
async fn a_tombstone_that_answers_the_list_is_a_deletion() {
    let mut rig = loaded(&[BIBS], 300).await;
    rig.library.with(|shelf| {
        shelf.delete(BIBS, nth(7));
        shelf.change_silently(BIBS, nth(7), |version| version.deleted_on = Some(jiff::civil::date(2019, 5, 1)));
    });
    let found = rig.reconcile(&repair(BIBS)).await.found;
    assert_eq!((counts(&found), found.stopped), ((299, 0, 1, 1), None));
    let delivered = rig.sink("archive").delivered();
    let is_deleted = |op: &Op| matches!(op, Op::Delete { reason: DeleteReason::Deleted, deleted_on: Some(_) });
    assert!(delivered.len() == 1 && is_deleted(&delivered[0].1), "{delivered:?}");
    rig.assert_converged();
}

/// Somebody edits and adds while every page is read: none of that is drift.
#[tokio::test(start_paused = true)]
async fn edits_in_flight_are_no_drift() {
    for order in [repair(BIBS), deep(repair(BIBS)), repair(ITEMS)] {
        let mut rig = loaded(&[BIBS, ITEMS], 600).await;
        rig.library.with(|shelf| (0..30).for_each(|n| shelf.edit(order.stream, nth(n * 11))));
        let mut calls = 0;
        rig.library.script(move |_, query, shelf| {
            calls += 1;
            if is_sweep(query) {
                (0..20).for_each(|n| shelf.edit(query.stream, nth((calls * 37 + n * 13) % 600)));
                shelf.change(query.stream, nth(calls % 600), |version| version.suppressed = true);
                shelf.add(query.stream);
            }
            Act::Slowly(Duration::from_secs(3))
        });
        let outcome = rig.reconcile(&order).await;
        let found = &outcome.found;
        assert_eq!((found.drift, found.missing, &found.stopped, outcome.exit), (0, 0, &None, 0), "{outcome:?}");
        rig.library.behave();
        tokio::time::sleep(minutes(20)).await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// CUR-1: killed in the middle it goes on where it was, finds the rest of the drift, and concludes nothing from absence.
/// The next one does.
#[tokio::test(start_paused = true)]
async fn a_resumed_sweep_goes_on_and_deletes_nothing() {
    let mut rig = loaded(&[BIBS], 600).await;
    rig.library.with(|shelf| {
        [nth(5), nth(595)].iter().for_each(|id| shelf.vanish(BIBS, *id));
        [nth(7), nth(590)].iter().for_each(|id| shelf.change_silently(BIBS, *id, |version| version.suppressed = true));
    });
    let (engine, cancel) = (rig.engine().await.expect("up"), CancellationToken::new());
    let token = cancel.clone();
    let running = tokio::spawn(async move { engine.reconcile(&repair(BIBS), &token).await });
    tokio::time::sleep(Duration::from_millis(400)).await;
    cancel.cancel();
    let first = running.await.expect("no panic").expect("up");
    assert!(first.found.checked > 0 && first.found.checked < 500, "{first:?}");
    assert!(first.found.stopped.as_ref().is_some_and(|why| why.contains("goes on where it was")), "{first:?}");
    rig.crash();
    // What is under way is no gap of the stream.
    assert_eq!(rig.sync_well().await.streams["bibs"].gaps, []);
    let before = rig.library.asked().iter().filter(|(_, query)| is_sweep(query)).count();
    let second = rig.reconcile(&repair(BIBS)).await;
    assert!(second.found.stopped.as_ref().is_some_and(|why| why.contains("resumed")), "{second:?}");
    assert_eq!((second.found.drift, second.found.repaired, second.exit), (2, 2, 3), "{second:?}");
    let pages = rig.library.asked().iter().filter(|(_, query)| is_sweep(query)).count();
    assert!(before + pages <= 6 + 2 + 1, "at most one page is read again: {before} and {pages}");
    no_delete_was_told(&rig);
    let third = rig.reconcile(&repair(BIBS)).await;
    assert_eq!(counts(&third.found), (598, 0, 2, 2), "{third:?}");
    rig.assert_converged();
}

/// `status` tells how far one is, while it runs, while it waits to be gone on with, and no more when it is done.
#[tokio::test(start_paused = true)]
async fn how_far_a_reconciliation_is_stands_in_the_status() {
    let mut rig = loaded(&[BIBS], 600).await;
    rig.library.with(|shelf| shelf.change_silently(BIBS, nth(7), |version| version.suppressed = true));
    assert_eq!(status_of_sweep(&mut rig).await, None);
    let (engine, cancel) = (rig.engine().await.expect("up"), CancellationToken::new());
    let token = cancel.clone();
    let running = tokio::spawn(async move { engine.reconcile(&deep(repair(BIBS)), &token).await });
    tokio::time::sleep(Duration::from_millis(600)).await;
    let under_way = status_of_sweep(&mut rig).await.expect("it is told");
    assert_eq!((under_way.state.as_str(), under_way.deep, under_way.repair), ("running", true, true));
    assert_eq!((under_way.total, under_way.drift, under_way.repaired), (Some(600), 1, 1), "{under_way:?}");
    assert!((100..600).contains(&under_way.checked), "{under_way:?}");
    assert_eq!(under_way.calls_left, Some((600 - under_way.checked) / 100 + 2));
    assert_eq!(under_way.percent.map(|percent| percent * 6.0), Some(under_way.checked as f64));
    cancel.cancel();
    running.await.expect("no panic").expect("up");
    rig.crash();
    let parked = status_of_sweep(&mut rig).await.expect("it waits");
    assert!(parked.state == "parked" && parked.checked >= under_way.checked, "{parked:?}");
    rig.reconcile(&deep(repair(BIBS))).await;
    assert_eq!(status_of_sweep(&mut rig).await, None);
}

/// Two sweeps of one stream never run beside each other: the second is refused, and the sweeps that are due wait.
#[tokio::test(start_paused = true)]
async fn a_stream_is_swept_by_one_at_a_time() {
    let mut rig = loaded(&[BIBS, ITEMS], 600).await;
    rig.settings(BIBS).reconcile = Some(Repeat::Daily);
    rig.restart().await;
    let (engine, cancel) = (rig.engine().await.expect("up"), CancellationToken::new());
    let (first, token) = (Arc::clone(&engine), cancel.clone());
    let running = tokio::spawn(async move { first.reconcile_beside(&repair(BIBS), &token).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let refused = engine.reconcile_beside(&look(BIBS), &cancel).await;
    assert!(matches!(refused, Err(EngineError::SweepUnderWay { stream: BIBS })), "{refused:?}");
    assert_eq!(engine.reconcile_beside(&look(ITEMS), &cancel).await.expect("another stream").exit, 0);
    assert_eq!(running.await.expect("no panic").expect("up").found.checked, 600);
    assert_eq!(engine.reconcile_beside(&look(BIBS), &cancel).await.expect("it is over").found.checked, 600);
    // A sweep that comes due while a person's is under way is not begun beside it.
    forget(&rig);
    rig.library
        .script(|_, query, _| if query.class == CallClass::Paced { Act::Slowly(minutes(3)) } else { Act::Serve });
    let (first, token) = (Arc::clone(&engine), cancel.clone());
    let running = tokio::spawn(async move { first.reconcile_beside(&repair(BIBS), &token).await });
    tokio::time::sleep(hours(25) + minutes(1)).await;
    running.await.expect("no panic").expect("up");
    let (follows, token) = (Arc::clone(&engine), cancel.clone());
    let service = tokio::spawn(async move { follows.follow(&token).await });
    let ordered = tokio::spawn(async move { engine.reconcile_beside(&repair(BIBS), &CancellationToken::new()).await });
    tokio::time::sleep(hours(2)).await;
    cancel.cancel();
    drop(ordered.await.expect("no panic"));
    service.await.expect("no panic").expect("up");
    let paced = rig.library.asked().into_iter().filter(|(_, query)| query.class == CallClass::Paced);
    let begun: Vec<jiff::Timestamp> = paced.map(|(at, _)| at).collect();
    let is_early = |pair: &&[jiff::Timestamp]| pair[1].duration_since(pair[0]) < SignedDuration::from_secs(179);
    assert_eq!(begun.windows(2).find(is_early), None, "{begun:?}");
    assert!(begun.len() > 15, "{}", begun.len());
    rig.assert_sound();
}

async fn status_of_sweep(rig: &mut Rig<ShelfSource>) -> Option<ReconcileStatus> {
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    status.streams["bibs"].reconcile.clone()
}

/// Two percent are really gone: a person says so, and it is done.
#[tokio::test(start_paused = true)]
async fn a_person_may_allow_more_to_be_missing() {
    let mut rig = loaded(&[BIBS], 300).await;
    rig.library.with(|shelf| (0..6).for_each(|n| shelf.vanish(BIBS, nth(n * 3))));
    let stopped = rig.reconcile(&repair(BIBS)).await.found;
    assert!(stopped.stopped.is_some_and(|why| why.contains("6 of 300 records did not come")));
    no_delete_was_told(&rig);
    let allowed = rig.reconcile(&ReconcileOrder { max_missing: 2, ..repair(BIBS) }).await.found;
    assert_eq!((counts(&allowed), allowed.stopped), ((294, 0, 6, 6), None));
    rig.assert_converged();
}

/// `reconcile = "weekly"`: the schedule heals, in `sync` and in the service; the load counts, and the last time is stored.
#[tokio::test(start_paused = true)]
async fn the_schedule_heals_once_a_week() {
    for serves in [false, true] {
        let mut rig = loaded(&[BIBS], 300).await;
        rig.settings(BIBS).reconcile = Some(Repeat::Weekly);
        rig.restart().await;
        rig.library.with(|shelf| {
            shelf.change_silently(BIBS, nth(9), |version| version.suppressed = true);
            shelf.vanish(BIBS, nth(11));
        });
        let mut sweeps = 0;
        for day in 1..=15 {
            if serves {
                rig.run_for(hours(24), None).await.expect("a sound store");
            } else {
                tokio::time::sleep(hours(24)).await;
                rig.sync_well().await;
            }
            let asked = rig.library.asked();
            sweeps += asked.iter().filter(|(_, query)| is_sweep(query) && query.after.is_none()).count();
            assert_eq!(sweeps, day / 7, "day {day}, serves {serves}");
        }
        rig.assert_converged();
        let rows = rig.store.ledger(BIBS).expect("up");
        let kept: Vec<_> = rows.iter().filter(|row| row.pass == Pass::Reconcile).collect();
        assert!(kept.len() == 1 && kept[0].state == RowState::Done, "{rows:?}");
    }
}

/// A service sits out what passes by itself: the sweep goes through in one piece, and may conclude.
#[tokio::test(start_paused = true)]
async fn a_service_sits_out_an_outage_in_the_middle_of_a_sweep() {
    let mut rig = loaded(&[BIBS], 600).await;
    rig.settings(BIBS).reconcile = Some(Repeat::Daily);
    rig.restart().await;
    rig.library.with(|shelf| shelf.vanish(BIBS, nth(11)));
    let mut failures = 0;
    rig.library.script(move |_, query, _| {
        let fails = is_sweep(query) && query.after.is_some_and(|after| after.value() > nth(250)) && failures < 5;
        failures += u32::from(fails);
        if fails { Act::Fail(SourceErrorKind::Exhausted) } else { Act::Serve }
    });
    rig.run_for(hours(26), None).await.expect("a sound store");
    rig.assert_converged();
}

/// Patrons are compared too, and no number of theirs is told.
#[tokio::test(start_paused = true)]
async fn patrons_are_reconciled_and_none_is_named() {
    const PATRONS: Stream = Stream::Patrons;
    let mut rig = loaded(&[PATRONS], 300).await;
    rig.library.with(|shelf| {
        shelf.vanish(PATRONS, nth(11));
        shelf.change_silently(PATRONS, nth(12), |version| version.suppressed = true);
    });
    let outcome: ReconcileOutcome = rig.reconcile(&repair(PATRONS)).await;
    assert_eq!(counts(&outcome.found), (299, 1, 1, 2), "{outcome:?}");
    rig.assert_converged();
    let said = format!("{:?} {:?}", outcome.found, rig.watch.events());
    for n in 0..300 {
        let number = nth(n).to_string();
        assert!(!said.split(|c: char| !c.is_ascii_digit()).any(|word| word == number), "{number} in {said}");
    }
}
