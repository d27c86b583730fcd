//! Backfills: what is asked for is read, what is newer stays, and what cannot be had is named.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sync::backfill::{BackfillOrder, Numbers, Selection, Via};
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{CallClass, PageFilter, SourceErrorKind};
use sierra_sync::sync::report::PassSummary;
use sierra_sync::sync::report::summary::{StreamOutcome, StreamSummary};
use sierra_sync::sync::{Op, Pass, Store};
use tokio_util::sync::CancellationToken;

use crate::support::{Act, Rig, ShelfSource, minutes};

const BIBS: Stream = Stream::Bibs;

fn stocked(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.settings(BIBS).page_size = 20;
    rig
}

async fn loaded(count: u64) -> Rig<ShelfSource> {
    let mut rig = stocked(count);
    rig.sync_well().await;
    rig.library.asked();
    rig.sink("archive").delivered();
    rig
}

fn order(numbers: Numbers) -> BackfillOrder {
    let selection = Selection { numbers, ..Selection::default() };
    BackfillOrder {
        stream: BIBS,
        selection,
        via: Via::List,
        sink: None,
        force: false,
        wait_for_quota: false,
        meaning: None,
    }
}

fn range(from: u64, to: u64) -> BackfillOrder {
    order(Numbers::Range { from: Some(RecordNumber::new(from)), to: Some(RecordNumber::new(to)) })
}

fn list(numbers: &[u64]) -> BackfillOrder {
    order(Numbers::List(numbers.iter().copied().map(RecordNumber::new).collect()))
}

fn forced(order: BackfillOrder) -> BackfillOrder {
    BackfillOrder { force: true, ..order }
}

fn bibs(summary: &PassSummary) -> &StreamSummary {
    &summary.streams["bibs"]
}

/// The numbers delivered to `archive` since they were last taken.
fn told(rig: &Rig<ShelfSource>) -> Vec<u64> {
    let id = |key: String| key.split('/').nth(1).and_then(|id| id.parse().ok()).expect("a number");
    let mut told: Vec<u64> = rig.sink("archive").delivered().into_iter().map(|(key, _)| id(key)).collect();
    told.sort_unstable();
    told
}

#[tokio::test(start_paused = true)]
async fn a_range_is_read_and_only_what_changed_without_a_stamp_is_emitted() {
    let mut rig = loaded(100).await;
    rig.library.with(|shelf| shelf.change_silently(BIBS, 1031, |version| version.title = "silent".into()));
    let summary = rig.backfill(&range(1010, 1100)).await;
    let counts = bibs(&summary);
    assert_eq!((summary.exit, counts.state, counts.fetched), (0, StreamOutcome::CaughtUp, 31));
    assert_eq!((counts.changed, counts.unchanged, counts.gaps.len()), (1, 30, 0));
    assert_eq!(told(&rig), [1031]);
    let asked = rig.library.asked();
    assert!(asked.iter().all(|(_, query)| query.filter == PageFilter::Live && query.class == CallClass::Paced));
    assert!(asked.iter().all(|(_, query)| query.until == Some(RecordNumber::new(1100))));
    rig.assert_converged();
    // Nothing of it is left behind.
    let rows = rig.store.ledger(BIBS).expect("up");
    assert!(rows.iter().all(|row| row.pass != Pass::Backfill), "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn force_emits_what_did_not_change() {
    let mut rig = loaded(100).await;
    let summary = rig.backfill(&forced(range(1001, 1030))).await;
    assert_eq!((bibs(&summary).changed, bibs(&summary).unchanged), (10, 0));
    assert_eq!(told(&rig).len(), 10);
    let whole = rig.backfill(&forced(order(Numbers::All))).await;
    assert_eq!((bibs(&whole).fetched, bibs(&whole).changed), (100, 100));
    rig.assert_converged();
}

/// What is asked for by number is read dead or alive; what Sierra knows nothing of is counted and concluded from in
/// no way.
#[tokio::test(start_paused = true)]
async fn a_list_is_read_dead_or_alive() {
    let mut rig = loaded(50).await;
    rig.library.with(|shelf| shelf.delete(BIBS, 1004));
    let summary = rig.backfill(&list(&[1001, 1004, 1005, 1007])).await;
    let counts = bibs(&summary);
    assert_eq!((summary.exit, counts.fetched, counts.unchanged, counts.deleted), (0, 3, 2, 1));
    assert_eq!(told(&rig), [1004]);
    let events = rig.watch.events();
    assert!(events.contains(&Event::NotFound { stream: BIBS, count: 1 }), "{events:?}");
    let asked: Vec<PageFilter> = rig.library.asked().into_iter().map(|(_, query)| query.filter).collect();
    let ids = |numbers: &[u64]| PageFilter::Ids(numbers.iter().copied().map(RecordNumber::new).collect());
    assert_eq!(asked, [ids(&[1001, 1004, 1005, 1007]), ids(&[1005])]);
    rig.assert_converged();
}

#[tokio::test(start_paused = true)]
async fn times_select_by_the_stamp() {
    let mut rig = loaded(50).await;
    let before = rig.now();
    rig.library.with(|shelf| shelf.edit(BIBS, 1010));
    tokio::time::sleep(minutes(10)).await;
    let middle = rig.now();
    rig.library.with(|shelf| shelf.edit(BIBS, 1013));
    tokio::time::sleep(minutes(10)).await;
    let times = |since: Option<Timestamp>, until: Option<Timestamp>| {
        let selection = Selection { since, until, ..Selection::default() };
        BackfillOrder { selection, ..order(Numbers::All) }
    };
    assert_eq!(bibs(&rig.backfill(&times(Some(before), Some(middle))).await).changed, 1);
    assert_eq!(told(&rig), [1010]);
    assert_eq!(bibs(&rig.backfill(&times(Some(middle), None)).await).changed, 1);
    assert_eq!(told(&rig), [1013]);
    let old = rig.backfill(&times(None, Some(before))).await;
    assert_eq!((bibs(&old).fetched, bibs(&old).unchanged), (48, 48));
}

#[tokio::test(start_paused = true)]
async fn locations_select_after_decoding() {
    let mut rig = loaded(30).await;
    rig.library.with(|shelf| {
        for id in [1004, 1007, 1010] {
            shelf.change_silently(BIBS, id, |version| (version.location, version.title) = ("annex".into(), "x".into()));
        }
        shelf.change_silently(BIBS, 1013, |version| version.title = "elsewhere".into());
    });
    let selection = Selection { locations: vec!["ann*".into()], ..Selection::default() };
    let summary = rig.backfill(&BackfillOrder { selection, ..order(Numbers::All) }).await;
    assert_eq!((bibs(&summary).fetched, bibs(&summary).changed), (3, 3));
    assert_eq!(told(&rig), [1004, 1007, 1010]);
    assert!(rig.library.asked().iter().all(|(_, query)| query.filter == PageFilter::Live), "never in the query");
}

/// A range that cannot be had keeps none of the others from being read: it is named, exit 3, and the same order reads
/// it alone.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_had_is_named_and_made_up_for() {
    let mut rig = stocked(1200);
    rig.settings(BIBS).page_size = 2;
    rig.sync_well().await;
    rig.library.asked();
    // 25 pages of two make a range: the one from 1151 on fails.
    let bad = |after: Option<RecordNumber>| after.is_some_and(|after| (1160..1200).contains(&after.value()));
    rig.library.script(move |_, query, _| match query.after {
        after if bad(after) && query.class == CallClass::Paced => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    let order = forced(range(1001, 1600));
    let first = rig.backfill(&order).await;
    let counts = bibs(&first);
    assert_eq!((first.exit, counts.state, counts.gaps.len()), (3, StreamOutcome::Partial, 1), "{counts:?}");
    let gap = &counts.gaps[0];
    assert!(gap.attempts == 1 && gap.error.is_some(), "{gap:?}");
    let (from, to): (u64, u64) = (gap.from.parse().expect("a number"), gap.to.parse().expect("a number"));
    assert!((1160..1165).contains(&from) && (1200..1310).contains(&to), "{gap:?}");
    assert!(counts.fetched < 200 && counts.fetched > 150, "{counts:?}");
    // It is no gap of the stream.
    rig.library.behave();
    let status = rig.engine().await.expect("up").status(&crate::support::NoVitals.inputs()).await.expect("up");
    assert_eq!(status.streams["bibs"].gaps, []);
    rig.sync_well().await;
    rig.restart().await;
    let second = rig.backfill(&order).await;
    assert_eq!((second.exit, bibs(&second).fetched + counts.fetched), (0, 200));
    rig.assert_converged();
}

/// The same order goes on where it was cut off; another one begins anew.
#[tokio::test(start_paused = true)]
async fn the_same_order_goes_on_and_another_begins_anew() {
    let mut rig = loaded(400).await;
    let cancel = CancellationToken::new();
    let (engine, token) = (rig.engine().await.expect("up"), cancel.clone());
    let whole = forced(order(Numbers::All));
    let running = {
        let whole = whole.clone();
        tokio::spawn(async move { engine.backfill(&whole, &token).await })
    };
    tokio::time::sleep(Duration::from_millis(900)).await;
    cancel.cancel();
    let first = running.await.expect("no panic").expect("up");
    assert_eq!((first.exit, bibs(&first).state), (3, StreamOutcome::Partial));
    assert!((40..300).contains(&bibs(&first).fetched), "{first:?}");
    assert_eq!(bibs(&first).gaps[0].to, "end");
    rig.restart().await;
    let status = rig.engine().await.expect("up").status(&crate::support::NoVitals.inputs()).await.expect("up");
    let parked = status.streams["bibs"].backfill.clone().expect("one is parked");
    assert_eq!((parked.state.as_str(), parked.total), ("parked", Some(400)));
    assert!(parked.percent.is_some_and(|percent| percent > 5.0 && percent < 95.0), "{parked:?}");
    assert!(parked.calls_left.is_some_and(|calls| calls > 2), "{parked:?}");
    let other = rig.backfill(&forced(range(1001, 1030))).await;
    assert_eq!(bibs(&other).fetched, 10);
    let rest = rig.backfill(&whole).await;
    assert_eq!((rest.exit, bibs(&rest).fetched + bibs(&first).fetched), (0, 400));
    let status = rig.engine().await.expect("up").status(&crate::support::NoVitals.inputs()).await.expect("up");
    assert_eq!(status.streams["bibs"].backfill, None);
    rig.assert_converged();
}

/// A process that died over a backfill leaves it as one that is under way; nobody works on it any more.
#[tokio::test(start_paused = true)]
async fn a_backfill_whose_process_died_is_parked_and_goes_on() {
    let mut rig = loaded(400).await;
    let whole = forced(order(Numbers::All));
    let engine = rig.engine().await.expect("up");
    let running = {
        let (engine, whole) = (Arc::clone(&engine), whole.clone());
        tokio::spawn(async move { engine.backfill(&whole, &CancellationToken::new()).await })
    };
    tokio::time::sleep(Duration::from_millis(900)).await;
    let state = async |engine: &Arc<sierra_sync::sync::engine::Engine>| {
        let status = engine.status(&crate::support::NoVitals.inputs()).await.expect("up");
        status.streams["bibs"].backfill.clone().expect("it is told").state
    };
    assert_eq!(state(&engine).await, "running");
    running.abort();
    assert!(running.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(state(&engine).await, "parked");
    drop(engine);
    rig.crash();
    assert_eq!(state(&rig.engine().await.expect("up")).await, "parked");
    assert_eq!(rig.backfill(&whole).await.exit, 0);
    rig.assert_converged();
}

/// Beside the live stream: nothing newer is ever overwritten, and order holds at the sink.
#[tokio::test(start_paused = true)]
async fn nothing_newer_is_overwritten_beside_a_live_stream() {
    for seed in crate::support::seeds(4) {
        let mut rig = Rig::on_shelf(seed, &[BIBS, Stream::Items]);
        rig.library.with(|shelf| {
            shelf.stock(BIBS, 300);
            shelf.stock(Stream::Items, 100);
        });
        rig.settings(BIBS).page_size = 20;
        rig.sync_well().await;
        let mut calls = 0;
        rig.library.script(move |_, query, _| {
            calls += 1;
            let is_slow = query.class == CallClass::Paced && calls % 3 == 0;
            if is_slow { Act::Slowly(minutes(7)) } else { Act::Serve }
        });
        let engine = rig.engine().await.expect("up");
        let backfill = tokio::spawn(async move {
            engine.backfill(&forced(order(Numbers::All)), &CancellationToken::new()).await.expect("up")
        });
        rig.run_for(minutes(90), Some(Duration::from_secs(20))).await.expect("a sound store");
        let summary = backfill.await.expect("no panic");
        assert_eq!(summary.exit, 0, "{summary:?}");
        rig.library.behave();
        tokio::time::sleep(minutes(5)).await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// Sierra was restored from a backup: its stamps went back. Only `--force` believes it, and only when two answers on
/// different connections agree.
#[tokio::test(start_paused = true)]
async fn an_older_version_counts_only_when_forced_and_confirmed() {
    let set_back = |rig: &Rig<ShelfSource>| {
        rig.library.with(|shelf| {
            let past = shelf.now() - SignedDuration::from_hours(24 * 500);
            shelf.change(BIBS, 1010, |version| (version.updated, version.title) = (past, "as it was".into()));
        });
    };
    for numbers in [Numbers::All, Numbers::List(Arc::from([RecordNumber::new(1010)]))] {
        let mut rig = loaded(20).await;
        set_back(&rig);
        let plain = rig.backfill(&order(numbers.clone())).await;
        assert_eq!((bibs(&plain).stale, bibs(&plain).changed), (1, 0));
        assert_eq!(told(&rig), [] as [u64; 0]);
        rig.library.asked();
        let forced = rig.backfill(&forced(order(numbers))).await;
        assert_eq!(bibs(&forced).stale, 0);
        assert!(told(&rig).contains(&1010));
        let asked = rig.library.asked();
        let by_list: Vec<_> =
            asked.iter().filter(|(_, query)| query.filter == PageFilter::Ids(vec![RecordNumber::new(1010)])).collect();
        let (first, second) = (by_list[by_list.len() - 2], by_list[by_list.len() - 1]);
        assert!(second.0.duration_since(first.0) >= SignedDuration::from_secs(5), "{by_list:?}");
        assert!(second.1.fresh_connection && !first.1.fresh_connection, "{by_list:?}");
        rig.assert_converged();
    }
}

/// Two back-ends that disagree: the older answer is not believed.
#[tokio::test(start_paused = true)]
async fn answers_that_disagree_lower_nothing() {
    let mut rig = loaded(20).await;
    let past = rig.now() - SignedDuration::from_hours(24 * 500);
    rig.library.with(|shelf| {
        shelf.change(BIBS, 1010, |version| (version.updated, version.title) = (past, "one".into()));
    });
    rig.library.script(move |_, query, shelf| {
        if matches!(&query.filter, PageFilter::Ids(_)) && query.fresh_connection {
            shelf.change(BIBS, 1010, |version| (version.updated, version.title) = (past, "another".into()));
        }
        Act::Serve
    });
    let summary = rig.backfill(&forced(order(Numbers::All))).await;
    assert_eq!((bibs(&summary).stale, bibs(&summary).changed), (1, 19));
    assert!(!told(&rig).contains(&1010));
}

/// A page that leaves records out, and an empty answer in mid-range: what the store knows alive is asked for by list.
#[tokio::test(start_paused = true)]
async fn what_is_known_alive_and_did_not_come_is_asked_for_by_list() {
    let mut rig = loaded(60).await;
    rig.library.with(|shelf| shelf.delete(BIBS, 1040));
    rig.library.script(|call, query, _| match (call, &query.filter) {
        (1, PageFilter::Live) => Act::PageAfter(1010),
        (2 | 3, PageFilter::Live) => Act::Nothing,
        _ => Act::Serve,
    });
    let summary = rig.backfill(&forced(range(1001, 1180))).await;
    let counts = bibs(&summary);
    assert_eq!((summary.exit, counts.fetched, counts.changed, counts.deleted), (0, 60, 59, 1), "{counts:?}");
    assert_eq!(told(&rig).len(), 60);
    rig.assert_converged();
}

/// Patrons: no number of theirs is in a job, in a summary or in what is told of it.
#[tokio::test(start_paused = true)]
async fn a_backfill_of_patrons_names_none_of_them() {
    let mut rig = Rig::on_shelf(1, &[Stream::Patrons]);
    rig.library.with(|shelf| shelf.stock(Stream::Patrons, 60));
    rig.settings(Stream::Patrons).page_size = 7;
    rig.sync_well().await;
    let numbers: Arc<[RecordNumber]> = (0..40).map(|n| RecordNumber::new(1001 + n * 3)).collect();
    for numbers in [Numbers::All, Numbers::List(numbers)] {
        rig.library.script(|call, _, _| if call > 3 { Act::Fail(SourceErrorKind::Exhausted) } else { Act::Serve });
        let order = BackfillOrder { stream: Stream::Patrons, ..forced(order(numbers)) };
        let summary = rig.backfill(&order).await;
        assert_eq!(summary.exit, 69);
        let said = format!("{summary:?} {:?}", rig.watch.events());
        let job = rig.store.snapshot(sierra_sync::sync::ports::Snapshot::Backfills).expect("up").expect("a job");
        let kept = String::from_utf8(job).expect("JSON");
        for n in 0..60 {
            let number = (1001 + n * 3).to_string();
            let stands = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == number);
            assert!(!stands(&said) && !stands(&kept), "{number} in {said} {kept}");
        }
        rig.library.behave();
        assert_eq!(rig.backfill(&order).await.exit, 0);
    }
    rig.assert_converged();
}

/// A long quota wait parks the backfill, exit 75; `--wait` sits it out.
#[tokio::test(start_paused = true)]
async fn a_long_quota_wait_parks_it_or_is_sat_out() {
    for wait_for_quota in [false, true] {
        let mut rig = loaded(100).await;
        let resume_at = rig.now() + SignedDuration::from_mins(20);
        rig.library.script(move |_, query, shelf| {
            let is_refused = query.after.is_some_and(|after| after.value() > 1100) && shelf.now() < resume_at;
            if is_refused { Act::Fail(SourceErrorKind::WaitingQuota { resume_at }) } else { Act::Serve }
        });
        let order = BackfillOrder { wait_for_quota, ..forced(order(Numbers::All)) };
        let summary = rig.backfill(&order).await;
        if wait_for_quota {
            assert_eq!((summary.exit, bibs(&summary).fetched), (0, 100));
            continue;
        }
        assert_eq!((summary.exit, bibs(&summary).state), (75, StreamOutcome::WaitingQuota));
        let status = rig.engine().await.expect("up").status(&crate::support::NoVitals.inputs()).await.expect("up");
        let parked = status.streams["bibs"].backfill.clone().expect("parked");
        assert_eq!(parked.state, "waiting_quota");
        tokio::time::sleep(minutes(21)).await;
        let rest = rig.backfill(&order).await;
        assert_eq!((rest.exit, bibs(&rest).fetched + bibs(&summary).fetched), (0, 100));
    }
}

/// A stream that was never loaded: the range alone is read, and the first load is still to come.
#[tokio::test(start_paused = true)]
async fn a_range_can_be_read_before_the_first_load() {
    let mut rig = stocked(50);
    let summary = rig.backfill(&range(1001, 1030)).await;
    assert_eq!((summary.exit, bibs(&summary).changed, summary.sinks["archive"].delivered), (0, 10, 10));
    let loaded = rig.sync_well().await;
    assert_eq!((bibs(&loaded).changed, bibs(&loaded).unchanged), (40, 10));
    rig.assert_converged();
    assert!(rig.sink("archive").delivered().iter().all(|(_, op)| *op == Op::Upsert));
}

/// A poisoned record does not keep its range from being read.
#[tokio::test(start_paused = true)]
async fn a_poisoned_record_is_set_aside_and_the_range_goes_on() {
    for numbers in [Numbers::All, Numbers::List((0..60).map(|n| RecordNumber::new(1001 + n * 3)).collect())] {
        let mut rig = loaded(60).await;
        rig.library.script(|_, query, shelf| {
            let lists = crate::support::would_list(shelf, query).contains(&1061);
            let is_whole = query.fields == sierra_sync::sync::ports::FieldSet::Configured;
            if lists && is_whole { Act::FailWith(500, 135) } else { Act::Serve }
        });
        let summary = rig.backfill(&forced(order(numbers))).await;
        let counts = bibs(&summary);
        assert_eq!((summary.exit, counts.quarantined, counts.changed), (3, 1, 59), "{counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_is_not_loaded_with_what_it_does_not_take() {
    let mut rig = Rig::on_shelf(1, &[BIBS, Stream::Items]);
    rig.sinks.get_mut("archive").expect("it exists").0.streams = vec![BIBS];
    let engine = rig.engine().await.expect("up");
    let refused = engine.plan_backfill(&BackfillOrder::reload(Stream::Items, "archive", false)).await;
    assert_eq!(refused.expect_err("refused").to_string(), "sink archive does not take items");
    engine.plan_backfill(&BackfillOrder::reload(BIBS, "archive", false)).await.expect("it takes bibs");
}
