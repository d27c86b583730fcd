//! Loading a sink: it ends with everything, nobody else hears of it, and what changes meanwhile is not lost.

use std::time::Duration;

use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::store::Step;
use sierra_sync::sync::Op;
use sierra_sync::sync::backfill::{BackfillOrder, Numbers, Selection};
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{CallClass, PageFilter, PageQuery, SourceErrorKind};
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{OverallState, SinkState};

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

/// Two streams, two sinks; `second` has lost its place, and the library has moved on since.
async fn detached() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 300);
        shelf.stock(ITEMS, 200);
    });
    rig.settings(BIBS).page_size = 20;
    rig.settings(ITEMS).page_size = 20;
    rig.add_sink("second");
    rig.sync_well().await;
    rig.engine().await.expect("up").pause_sink("second").expect("it exists");
    rig.limits.outbox_max_bytes = 40_000;
    rig.forget_engine();
    rig.sinks.get_mut("second").expect("it exists").0.paused = true;
    rig.library.with(|shelf| shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id)));
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync().await;
    assert_eq!(summary.sinks["second"].state, SinkState::NeedsReload);
    rig.limits.outbox_max_bytes = 2 << 30;
    rig.sinks.get_mut("second").expect("it exists").0.paused = false;
    rig.restart().await;
    // It still holds what is gone by now, and lacks what is new.
    rig.library.with(|shelf| {
        shelf.delete(BIBS, 1004);
        shelf.delete(ITEMS, 1004);
        shelf.add(BIBS);
    });
    tokio::time::sleep(minutes(2)).await;
    assert_eq!(rig.sync().await.exit, 3, "it misses what is captured");
    assert!(rig.sink("second").holds(BIBS).contains_key("1004"));
    rig.sink("archive").delivered();
    rig.sink("second").delivered();
    rig
}

async fn status(rig: &mut Rig<ShelfSource>) -> StatusReport {
    rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up")
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_lost_its_place_is_loaded_by_the_command_that_status_names() {
    let mut rig = detached().await;
    let told = status(&mut rig).await;
    assert_eq!(told.state, OverallState::Degraded);
    for command in
        ["`sierra-sync backfill bibs --sink second --force`", "`sierra-sync backfill items --sink second --force`"]
    {
        assert!(told.message.contains(command), "{}", told.message);
    }
    let bibs = rig.backfill(&BackfillOrder::reload(BIBS, "second", false)).await;
    assert_eq!((bibs.exit, bibs.sinks["second"].state), (0, SinkState::NeedsReload), "items are still to come");
    assert_eq!(bibs.sinks["second"].published["bibs"], bibs.streams["bibs"].watermark);
    assert_eq!(bibs.sinks["second"].published["items"], None);
    assert!(status(&mut rig).await.message.contains("still to be loaded with items"));
    let items = rig.backfill(&BackfillOrder::reload(ITEMS, "second", false)).await;
    assert_eq!((items.exit, items.sinks["second"].state), (0, SinkState::Ok));
    assert_eq!(items.sinks["second"].published["items"], items.streams["items"].watermark);
    let told = status(&mut rig).await;
    assert_eq!((told.state, told.sinks["second"].gaps.len()), (OverallState::Ok, 0));
    assert_eq!(rig.sink("archive").delivered(), [], "nobody else hears of it");
    let (deletes, upserts): (Vec<_>, Vec<_>) =
        rig.sink("second").delivered().into_iter().partition(|(_, op)| matches!(op, Op::Delete { .. }));
    assert_eq!((deletes.len(), upserts.len()), (2, 300 + 199));
    rig.assert_converged();
    let loaded = |stream| Event::SinkLoaded { sink: "second".into(), stream };
    let events = rig.watch.events();
    assert!(events.contains(&loaded(BIBS)) && events.contains(&loaded(ITEMS)));
}

/// What a load finds that nobody knew of is no matter of that sink alone.
#[tokio::test(start_paused = true)]
async fn what_is_new_reaches_every_sink() {
    let mut rig = detached().await;
    rig.library.with(|shelf| {
        shelf.change_silently(BIBS, 1010, |version| version.title = "silent".into());
        shelf.delete(BIBS, 1013);
    });
    for stream in [BIBS, ITEMS] {
        assert_eq!(rig.backfill(&BackfillOrder::reload(stream, "second", false)).await.exit, 0);
    }
    let told: Vec<String> = rig.sink("archive").delivered().into_iter().map(|(key, _)| key).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("bibs/1010/upsert/") && told[1].starts_with("bibs/1013/delete/"), "{told:?}");
    rig.assert_converged();
    rig.sync_well().await;
    rig.assert_converged();
}

/// The service loads what is owed beside the live streams, while the library lives and the process dies.
#[tokio::test(start_paused = true)]
async fn a_new_sink_is_loaded_beside_the_live_streams() {
    for seed in crate::support::seeds(4) {
        let mut rig = Rig::on_shelf(seed, &[BIBS, ITEMS]);
        rig.library.with(|shelf| {
            shelf.stock(BIBS, 400);
            shelf.stock(ITEMS, 300);
        });
        rig.settings(BIBS).page_size = 15;
        rig.settings(ITEMS).page_size = 15;
        rig.sync_well().await;
        rig.add_sink("late");
        rig.restart().await;
        let mut calls = 0;
        rig.library.script(move |_, query, _| {
            calls += 1;
            if query.class == CallClass::Paced && calls % 2 == 0 { Act::Slowly(minutes(1)) } else { Act::Serve }
        });
        for spared in [40, 60] {
            rig.store.fail_at(Step::OF_A_WRITE[usize::try_from(seed).expect("small") % 3], spared);
            let _ended = rig.run_for(minutes(20), Some(Duration::from_secs(15))).await;
            rig.crash();
        }
        rig.run_for(hours(3), Some(Duration::from_secs(30))).await.expect("a sound store");
        rig.library.behave();
        tokio::time::sleep(minutes(5)).await;
        let summary = rig.sync_well().await;
        assert_eq!(summary.sinks["late"].state, SinkState::Ok, "seed {seed}");
        rig.assert_converged();
    }
}

/// A stream that is added to a sink: that stream alone is loaded, and the other goes on.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_added_to_a_sink_is_loaded() {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 50);
        shelf.stock(ITEMS, 60);
    });
    rig.add_sink("second").streams = vec![BIBS];
    rig.sync_well().await;
    rig.sinks.get_mut("second").expect("it exists").0.streams = vec![BIBS, ITEMS];
    rig.restart().await;
    rig.sink("second").delivered();
    let summary = rig.sync_well().await;
    assert_eq!((summary.sinks["second"].delivered, summary.sinks["second"].state), (60, SinkState::Ok));
    assert!(rig.sink("second").delivered().iter().all(|(key, _)| key.starts_with("items/")));
    rig.assert_converged();
}

/// A load that cannot be completed: the sink still needs it, exit 3, and the next pass goes on with what is left.
#[tokio::test(start_paused = true)]
async fn a_load_that_was_cut_off_goes_on_with_the_next_pass() {
    let mut rig = detached().await;
    rig.library.script(|_, query, _| match query.after {
        Some(after) if after.value() > 1400 && query.class == CallClass::Paced => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    let first = rig.backfill(&BackfillOrder::reload(BIBS, "second", false)).await;
    assert_eq!((first.exit, first.sinks["second"].state), (69, SinkState::NeedsReload));
    assert_eq!(first.sinks["second"].published["bibs"], None);
    rig.library.behave();
    rig.library.asked();
    rig.restart().await;
    let rest = rig.sync_well().await;
    assert_eq!(rest.sinks["second"].state, SinkState::Ok);
    let of_bibs = |query: &PageQuery| query.stream == BIBS && query.class == CallClass::Paced;
    let pages = rig.library.asked().iter().filter(|(_, query)| of_bibs(query)).count();
    assert!((10..=14).contains(&pages), "{pages}");
    rig.assert_converged();
}

/// A sink that loses its place again in mid-load begins anew: what was emitted before is gone with its backlog.
#[tokio::test(start_paused = true)]
async fn a_sink_that_is_detached_in_mid_load_is_loaded_from_the_beginning() {
    let mut rig = detached().await;
    rig.engine().await.expect("up").pause_sink("second").expect("it exists");
    rig.sinks.get_mut("second").expect("it exists").0.paused = true;
    rig.limits.outbox_max_bytes = 20_000;
    rig.forget_engine();
    let full = rig.backfill(&BackfillOrder::reload(BIBS, "second", false)).await;
    assert_eq!(full.sinks["second"].state, SinkState::NeedsReload);
    rig.limits.outbox_max_bytes = 2 << 30;
    rig.sinks.get_mut("second").expect("it exists").0.paused = false;
    rig.restart().await;
    for stream in [BIBS, ITEMS] {
        assert_eq!(rig.backfill(&BackfillOrder::reload(stream, "second", false)).await.exit, 0);
    }
    assert_eq!(rig.sync_well().await.sinks["second"].state, SinkState::Ok);
    rig.assert_converged();
}

/// `published` waits until the sink holds the load, not only until it was read.
#[tokio::test(start_paused = true)]
async fn published_counts_again_when_the_load_is_with_the_sink() {
    let mut rig = detached().await;
    rig.sinks.get_mut("second").expect("it exists").0.paused = true;
    rig.restart().await;
    for stream in [BIBS, ITEMS] {
        rig.backfill(&BackfillOrder::reload(stream, "second", false)).await;
    }
    let held = rig.sync_well().await;
    let second = &held.sinks["second"];
    assert_eq!((second.state, second.published["bibs"]), (SinkState::Paused, None));
    assert!(second.pending >= 499, "{second:?}");
    rig.engine().await.expect("up").resume_sink("second").expect("it exists");
    let drained = rig.sync_well().await;
    assert_eq!(drained.sinks["second"].published["bibs"], drained.streams["bibs"].watermark);
    rig.assert_converged();
}

/// A part of a stream for one sink: what is unchanged is emitted to it alone, deletions of that part too.
#[tokio::test(start_paused = true)]
async fn a_part_can_be_sent_to_one_sink_again() {
    let mut rig = detached().await;
    let range = Numbers::Range { from: Some(RecordNumber::new(1001)), to: Some(RecordNumber::new(1010)) };
    let order = BackfillOrder {
        selection: Selection { numbers: range, ..Selection::default() },
        ..BackfillOrder::reload(BIBS, "archive", false)
    };
    let summary = rig.backfill(&order).await;
    assert_eq!(
        (summary.exit, summary.sinks["archive"].delivered, summary.sinks["archive"].state),
        (0, 4, SinkState::Ok)
    );
    let told: Vec<String> = rig.sink("archive").delivered().into_iter().map(|(key, _)| key).collect();
    for beginning in ["bibs/1004/delete/", "bibs/1001/upsert/", "bibs/1007/upsert/", "bibs/1010/upsert/"] {
        assert!(told.iter().any(|key| key.starts_with(beginning)), "{beginning} in {told:?}");
    }
}

/// The quiet sweep of a load may end on a lie: every record that the store knows alive is asked for all the same.
#[tokio::test(start_paused = true)]
async fn a_load_believes_no_empty_answer() {
    let mut rig = detached().await;
    rig.library.script(|_, query, _| match &query.filter {
        PageFilter::Live if query.after.is_some_and(|after| after.value() > 1200) => Act::Nothing,
        _ => Act::Serve,
    });
    for stream in [BIBS, ITEMS] {
        assert_eq!(rig.backfill(&BackfillOrder::reload(stream, "second", false)).await.exit, 0);
    }
    rig.library.behave();
    rig.sync_well().await;
    rig.assert_converged();
}
