//! Failures of Sierra: owed and shown until they are made up for, and never in the way of what works.

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{PageFilter, Slice, SourceErrorKind};
use sierra_sync::sync::report::summary::StreamOutcome;
use sierra_sync::sync::{LedgerRow, Pass, RowState, Span, Store, SyncOptions, Window};
use tokio_util::sync::CancellationToken;

use crate::support::{Act, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

async fn loaded(streams: &[Stream], count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, streams);
    rig.library.with(|shelf| streams.iter().for_each(|stream| shelf.stock(*stream, count)));
    rig.sync_well().await;
    tokio::time::sleep(minutes(20)).await;
    rig
}

fn is_update(filter: &PageFilter) -> bool {
    matches!(filter, PageFilter::Updated(_))
}

/// BR-070: one window fails, later ones succeed; the watermark waits for it, the failed one is retried by itself.
#[tokio::test(start_paused = true)]
async fn a_failed_window_is_retried_while_later_ones_go_on() {
    let mut rig = loaded(&[BIBS], 20).await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(2)).await;
    let mut doomed = None;
    rig.library.script(move |_, query, _| match &query.filter {
        PageFilter::Updated(window) if *doomed.get_or_insert(*window) == *window => {
            Act::Fail(SourceErrorKind::Exhausted)
        }
        _ => Act::Serve,
    });
    let failed = rig.sync().await;
    let bibs = &failed.streams["bibs"];
    assert_eq!((failed.exit, bibs.state, bibs.gaps.len(), bibs.gaps[0].attempts), (3, StreamOutcome::Partial, 1, 1));
    let stuck = bibs.watermark;
    for attempts in 2..5 {
        rig.library.with(|shelf| shelf.edit(BIBS, 1004));
        tokio::time::sleep(minutes(12)).await;
        let summary = rig.sync().await;
        let bibs = &summary.streams["bibs"];
        assert!(bibs.changed > 0, "later windows go on");
        assert_eq!((bibs.watermark, bibs.gaps.len(), bibs.gaps[0].attempts), (stuck, 1, attempts));
    }
    rig.library.behave();
    let healed = rig.sync_well().await;
    assert!(healed.streams["bibs"].watermark > stuck);
    rig.assert_converged();
}

/// BR-001: an endpoint fails for two hours every night; its windows are owed, merge into one, and are made up for with
/// no human action, while the other stream does not notice.
#[tokio::test(start_paused = true)]
async fn a_nightly_outage_of_one_endpoint_is_made_up_for() {
    let mut rig = loaded(&[BIBS, ITEMS], 40).await;
    rig.library.script(|_, query, _| match query.stream {
        Stream::Bibs => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    rig.run_for(hours(2), Some(minutes(3))).await.expect("a sound store");
    let owed: Vec<_> = rig
        .store
        .ledger(BIBS)
        .expect("up")
        .into_iter()
        .filter(|row| row.pass == Pass::Update && row.is_owed())
        .collect();
    assert_eq!(owed.len(), 1, "{owed:#?}");
    let window = owed[0].window().expect("a window");
    assert!(window.length() >= SignedDuration::from_mins(110), "{window}");
    assert!(rig.store.ledger(ITEMS).expect("up").iter().all(|row| row.state == RowState::Done));
    rig.library.behave();
    rig.run_for(hours(1), Some(minutes(3))).await.expect("a sound store");
    assert!(rig.store.ledger(BIBS).expect("up").iter().all(|row| row.state == RowState::Done));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-005: rows of the ledger are lost; the hole is one gap, and is filled without being asked.
#[tokio::test(start_paused = true)]
async fn lost_rows_of_the_ledger_are_read_again() {
    let mut rig = loaded(&[BIBS], 40).await;
    rig.sync_well().await;
    // Three days in which the service ran, and of which the ledger forgot everything but the last window.
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    rig.watch.tolerate_holes();
    let last = rig.store.ledger(BIBS).expect("up").into_iter().rfind(|row| row.window().is_some()).expect("a window");
    let end = rig.now() + SignedDuration::from_hours(72);
    tokio::time::sleep(hours(72)).await;
    let span = Span::Time(Window::new(end - SignedDuration::from_mins(15), end).expect("a window"));
    let row = LedgerRow { id: last.id + 1000, span, ..last };
    rig.store.commit(Slice { rows: vec![row], ..Slice::default() }).expect("up");
    let engine = rig.engine().await.expect("up");
    let vitals = crate::support::NoVitals;
    let status = engine.status(&vitals.inputs()).await.expect("up");
    assert_eq!(status.streams["bibs"].gaps.len(), 1);
    assert_eq!(status.state, sierra_sync::sync::report::status::OverallState::Degraded);
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].changed, 1);
    rig.assert_converged();
}

/// A quota wait parks the window: not a gap, resumed where it was, exit 75.
#[tokio::test(start_paused = true)]
async fn a_long_quota_wait_parks_the_window() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 500));
    let resume_at = rig.now() + SignedDuration::from_mins(16);
    rig.library.script(move |call, _, shelf| {
        if call >= 3 && shelf.now() < resume_at {
            Act::Fail(SourceErrorKind::WaitingQuota { resume_at })
        } else {
            Act::Serve
        }
    });
    let parked = rig.sync().await;
    let bibs = &parked.streams["bibs"];
    assert_eq!((parked.exit, bibs.state, bibs.changed, bibs.gaps.len()), (75, StreamOutcome::WaitingQuota, 200, 0));
    assert_eq!(parked.sinks["archive"].delivered, 200, "what was captured is delivered meanwhile");
    // Durably: a process that starts anew knows.
    rig.crash();
    let row = rig.store.ledger(BIBS).expect("up").remove(0);
    assert_eq!((row.state, row.resume_at, row.attempts), (RowState::Partial, Some(resume_at), 0));
    tokio::time::sleep(minutes(17)).await;
    let rest = rig.sync_well().await;
    assert_eq!(rest.streams["bibs"].changed, 300);
    rig.assert_converged();
}

/// `--wait` sits the quota wait out.
#[tokio::test(start_paused = true)]
async fn waiting_for_quota_can_be_asked_for() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 500));
    let resume_at = rig.now() + SignedDuration::from_mins(16);
    rig.library.script(move |call, _, shelf| {
        if call >= 3 && shelf.now() < resume_at {
            Act::Fail(SourceErrorKind::WaitingQuota { resume_at })
        } else {
            Act::Serve
        }
    });
    let engine = rig.engine().await.expect("up");
    let options = SyncOptions { wait_for_quota: true, ..SyncOptions::default() };
    let summary = engine.sync_once(&options, &CancellationToken::new()).await.expect("up");
    assert_eq!((summary.exit, summary.streams["bibs"].changed), (0, 500));
    assert!(summary.elapsed_seconds > 900.0);
}

/// In the service a parked window goes on by itself when the wait is over.
#[tokio::test(start_paused = true)]
async fn the_service_resumes_a_parked_window_in_time() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 500));
    let resume_at = rig.now() + SignedDuration::from_mins(7);
    rig.library.script(move |call, _, shelf| {
        if call >= 3 && shelf.now() < resume_at {
            Act::Fail(SourceErrorKind::WaitingQuota { resume_at })
        } else {
            Act::Serve
        }
    });
    rig.run_for(minutes(8), None).await.expect("a sound store");
    rig.assert_converged();
}

/// B8: with the breaker open nothing more is asked for, the window is owed, and sinks go on draining.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_halts_capture_and_sinks_drain() {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 500);
        shelf.stock(ITEMS, 500);
    });
    rig.library.script(|call, _, _| if call > 4 { Act::Fail(SourceErrorKind::CircuitOpen) } else { Act::Serve });
    let summary = rig.sync().await;
    let (bibs, items) = (&summary.streams["bibs"], &summary.streams["items"]);
    assert_eq!((summary.exit, bibs.state, items.state), (69, StreamOutcome::Suspended, StreamOutcome::Suspended));
    assert_eq!(summary.sinks["archive"].delivered, bibs.changed + items.changed);
    assert_eq!((bibs.changed + items.changed, bibs.gaps[0].attempts), (400, 0), "nothing was sent, so nothing counts");
    rig.library.behave();
    rig.sync_well().await;
    rig.assert_converged();
}

/// A10: a suspended endpoint stops its own stream alone.
#[tokio::test(start_paused = true)]
async fn a_suspended_endpoint_does_not_stop_the_other_stream() {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 50);
        shelf.stock(ITEMS, 50);
    });
    rig.library.script(|_, query, _| match query.stream {
        Stream::Bibs => Act::Fail(SourceErrorKind::Suspended),
        _ => Act::Serve,
    });
    let summary = rig.sync().await;
    assert_eq!(summary.exit, 69);
    assert_eq!(summary.streams["bibs"].state, StreamOutcome::Suspended);
    assert_eq!((summary.streams["items"].state, summary.streams["items"].changed), (StreamOutcome::CaughtUp, 50));
}

/// A refused credential stops the stream and decides the exit code, whatever else happened.
#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_exit_77() {
    let mut rig = loaded(&[BIBS], 10).await;
    rig.library.script(|_, _, _| Act::Fail(SourceErrorKind::Credentials));
    let summary = rig.sync().await;
    assert_eq!((summary.exit, summary.streams["bibs"].state), (77, StreamOutcome::Stopped));
    rig.library.script_pulse(|_| Some(SourceErrorKind::Credentials));
    assert_eq!(rig.sync().await.exit, 77);
}

/// Sierra down from the first page on: exit 69, and the attempts are counted.
#[tokio::test(start_paused = true)]
async fn a_sierra_that_serves_no_page_at_all_is_exit_69() {
    let mut rig = loaded(&[BIBS], 10).await;
    rig.library.script(|_, _, _| Act::Fail(SourceErrorKind::Exhausted));
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.state, bibs.gaps.len()), (69, StreamOutcome::Failed, 2), "{bibs:#?}");
    assert_eq!(bibs.error.as_ref().map(|error| error.kind.as_str()), Some("exhausted"));
}

/// §7.5: a schema change upstream stops the stream before anything of the page is committed.
#[tokio::test(start_paused = true)]
async fn a_schema_change_stops_the_stream_before_committing() {
    let mut rig = loaded(&[BIBS, ITEMS], 300).await;
    rig.library.with(|shelf| {
        for id in shelf.alive(BIBS) {
            shelf.change(BIBS, id, |version| version.is_garbled = id.is_multiple_of(2));
        }
        shelf.edit(ITEMS, 1001);
    });
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.state, bibs.fetched, bibs.quarantined), (3, StreamOutcome::Stopped, 0, 0));
    assert_eq!(bibs.error.as_ref().map(|error| error.kind.as_str()), Some("schema_change"));
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    assert_eq!(summary.streams["items"].changed, 1, "the other stream goes on");
    // In the service it stays stopped until somebody acts, and was said so once.
    rig.library.asked();
    rig.run_for(hours(1), None).await.expect("a sound store");
    let events = rig.watch.events();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::StreamStopped { stream: BIBS, .. })).count(), 1);
    assert_eq!(rig.library.asked().iter().filter(|(_, query)| query.stream == BIBS).count(), 0);
    // Somebody acted: the vendor repaired it.
    rig.library.with(|shelf| {
        shelf.alive(BIBS).iter().for_each(|id| shelf.change(BIBS, *id, |version| version.is_garbled = false))
    });
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-078: with the disk nearly full no quota is spent; capture goes on by itself when there is room.
#[tokio::test(start_paused = true)]
async fn a_nearly_full_disk_stops_capture_before_a_call_is_made() {
    let mut rig = loaded(&[BIBS], 30).await;
    rig.limits.min_free_bytes = 1000;
    rig.restart().await;
    rig.store.set_free_bytes(Some(999));
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(2)).await;
    rig.library.asked();
    let summary = rig.sync().await;
    assert_eq!((summary.exit, rig.library.asked().len()), (75, 0));
    let error = summary.streams["bibs"].error.clone().expect("told why");
    assert_eq!(error.kind, "disk_low");
    rig.store.set_free_bytes(Some(1000));
    rig.sync_well().await;
    rig.assert_converged();
}

/// A failing store ends everything at once (exit 74): nothing goes on that cannot be remembered.
#[tokio::test(start_paused = true)]
async fn a_failing_store_ends_the_service_at_once() {
    let mut rig = loaded(&[BIBS, ITEMS], 30).await;
    rig.store.fail_at(sierra_sync::store::Step::Unfenced, 3);
    let before = tokio::time::Instant::now();
    assert!(rig.run_for(hours(1), Some(minutes(1))).await.is_err());
    assert!(before.elapsed() < minutes(20), "{:?}", before.elapsed());
    rig.crash();
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// A page that hangs does not delay a shutdown by more than a moment.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_a_moment_for_a_page_and_no_longer() {
    let mut rig = loaded(&[BIBS], 30).await;
    rig.library.script(|_, query, _| if is_update(&query.filter) { Act::Slowly(minutes(10)) } else { Act::Serve });
    let engine = rig.engine().await.expect("up");
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let service = tokio::spawn(async move { engine.follow(&token).await });
    tokio::time::sleep(minutes(1)).await;
    let asked = tokio::time::Instant::now();
    cancel.cancel();
    service.await.expect("no panic").expect("a sound store");
    assert!(asked.elapsed() <= std::time::Duration::from_secs(5), "{:?}", asked.elapsed());
}
