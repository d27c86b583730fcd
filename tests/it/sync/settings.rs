//! Settings that change what events mean: the stream is loaded again beside the live one, and nothing old is delivered.

use sierra_sync::record::Stream;
use sierra_sync::store::Step;
use sierra_sync::sync::meaning::kept;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{CallClass, SourceErrorKind};
use sierra_sync::sync::{Op, Store};

use crate::support::{Act, Rig, ShelfSource, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

async fn loaded() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 60);
        shelf.stock(ITEMS, 30);
    });
    rig.settings(BIBS).page_size = 7;
    rig.meanings = [(BIBS, "one".to_owned()), (ITEMS, "one".to_owned())].into();
    rig.sync_well().await;
    rig.sink("archive").delivered();
    rig
}

async fn change(rig: &mut Rig<ShelfSource>, meaning: &str) {
    rig.meanings.insert(BIBS, meaning.to_owned());
    rig.restart().await;
}

fn meaning(rig: &Rig<ShelfSource>) -> String {
    kept(rig.store.as_ref()).expect("up")[&BIBS].clone()
}

/// BR-058: what is asked for has its own place in the order, so that a new filter begins its own load.
#[tokio::test(start_paused = true)]
async fn a_changed_setting_loads_that_stream_again() {
    let mut rig = loaded().await;
    let again = rig.sync_well().await;
    assert_eq!(again.sinks["archive"].delivered, 0);
    change(&mut rig, "two").await;
    let summary = rig.sync_well().await;
    assert_eq!((summary.sinks["archive"].delivered, summary.streams["bibs"].changed), (60, 60));
    assert!(rig.watch.events().contains(&Event::MeaningChanged { stream: BIBS }));
    assert_eq!(meaning(&rig), "two");
    assert_eq!(rig.sync_well().await.sinks["archive"].delivered, 0);
    rig.assert_converged();
}

/// Locations that are taken out of the set: what left it is deleted, what stays is emitted again.
#[tokio::test(start_paused = true)]
async fn what_the_new_settings_leave_out_is_deleted() {
    let mut rig = loaded().await;
    rig.library.with(|shelf| shelf.change(BIBS, 1010, |version| version.location = "annex".into()));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.sink("archive").delivered();
    rig.settings(BIBS).locations = vec!["main".into()];
    change(&mut rig, "two").await;
    rig.sync_well().await;
    let told = rig.sink("archive").delivered();
    let deleted: Vec<_> = told.iter().filter(|(_, op)| *op != Op::Upsert).map(|(key, _)| key.clone()).collect();
    assert_eq!((told.len(), deleted.len()), (60, 1));
    assert!(deleted[0].starts_with("bibs/1010/delete/"), "{deleted:?}");
}

/// What was captured under other settings and waits is not delivered any more; deletions are.
#[tokio::test(start_paused = true)]
async fn what_waits_from_before_is_taken_back() {
    let mut rig = loaded().await;
    rig.sinks.get_mut("archive").expect("it exists").0.paused = true;
    rig.restart().await;
    rig.library.with(|shelf| {
        shelf.edit(BIBS, 1010);
        shelf.edit(ITEMS, 1010);
        shelf.delete(BIBS, 1013);
    });
    tokio::time::sleep(minutes(2)).await;
    assert_eq!(rig.sync_well().await.sinks["archive"].pending, 3);
    change(&mut rig, "two").await;
    rig.engine().await.expect("up");
    let waiting = rig.store.outbox_entries_after(sierra_sync::sync::Seq::ZERO, 10).expect("up");
    let mut waiting: Vec<_> = waiting.iter().map(|entry| (entry.stream, entry.op)).collect();
    waiting.sort_unstable();
    assert_eq!(waiting, [(BIBS, "delete"), (ITEMS, "upsert")]);
    rig.engine().await.expect("up").resume_sink("archive").expect("it exists");
    rig.sync_well().await;
    rig.assert_converged();
}

/// Cut off it goes on; changed once more it begins anew; and a sink that was being loaded gets everything.
#[tokio::test(start_paused = true)]
async fn a_load_under_older_settings_is_given_up() {
    let mut rig = loaded().await;
    rig.add_sink("late");
    change(&mut rig, "two").await;
    rig.library.script(|_, query, _| match query.after {
        Some(after) if after.value() > 1080 && query.class == CallClass::Paced => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    assert_eq!(rig.sync().await.exit, 69);
    assert_eq!(meaning(&rig), "on the way to two");
    rig.library.behave();
    change(&mut rig, "three").await;
    rig.sink("archive").delivered();
    rig.sync_well().await;
    assert_eq!(meaning(&rig), "three");
    assert_eq!(rig.sink("archive").delivered().len(), 60, "all of it, not only what was left");
    rig.assert_converged();
}

/// Struck at every write, the change arrives all the same.
#[tokio::test(start_paused = true)]
async fn a_process_that_dies_completes_the_change_later() {
    for step in Step::OF_A_WRITE {
        for spared in 0.. {
            let mut rig = loaded().await;
            change(&mut rig, "two").await;
            rig.store.fail_at(step, spared);
            let ended = rig.try_sync().await;
            rig.crash();
            rig.sync_well().await;
            assert_eq!(meaning(&rig), "two", "{step:?} {spared}");
            let told: std::collections::BTreeSet<String> = rig
                .sink("archive")
                .delivered()
                .into_iter()
                .filter_map(|(key, _)| key.split('/').nth(1).map(str::to_owned))
                .collect();
            assert_eq!(told.len(), 60, "{step:?} {spared}");
            rig.assert_converged();
            if ended.is_ok() {
                break;
            }
        }
    }
}

/// Some events were emitted under the settings that were given up: whoever puts the old ones back meanwhile gets all
/// of the stream as these want it, whether the load had begun or not.
#[tokio::test(start_paused = true)]
async fn settings_that_are_put_back_are_a_change_as_well() {
    for has_begun in [false, true] {
        let mut rig = loaded().await;
        change(&mut rig, "two").await;
        rig.library.script(move |_, query, _| match (query.after, query.class) {
            (after, CallClass::Paced) if !has_begun || after.is_some() => Act::Fail(SourceErrorKind::Exhausted),
            _ => Act::Serve,
        });
        rig.library.with(|shelf| shelf.edit(BIBS, 1010));
        tokio::time::sleep(minutes(2)).await;
        assert_eq!(rig.sync().await.exit, 69);
        rig.library.behave();
        change(&mut rig, "one").await;
        rig.watch.events();
        rig.sink("archive").delivered();
        rig.sync_well().await;
        assert!(rig.watch.events().contains(&Event::MeaningChanged { stream: BIBS }));
        assert_eq!((rig.sink("archive").delivered().len(), meaning(&rig).as_str()), (60, "one"), "begun: {has_begun}");
        // And a load that was begun under the others goes on from no place where it stopped.
        change(&mut rig, "two").await;
        assert_eq!(rig.sync_well().await.sinks["archive"].delivered, 60);
        rig.assert_converged();
    }
}

/// What a load had emitted and was not delivered is taken back when the settings change once more. Back at its own
/// settings that load must not go on where it stopped.
#[tokio::test(start_paused = true)]
async fn a_load_that_other_settings_came_between_begins_anew() {
    let mut rig = loaded().await;
    rig.sinks.get_mut("archive").expect("it exists").0.paused = true;
    change(&mut rig, "two").await;
    rig.library.script(|_, query, _| match query.after {
        Some(after) if after.value() > 1080 && query.class == CallClass::Paced => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    let pending = rig.sync().await.sinks["archive"].pending;
    assert!((7..60).contains(&pending), "{pending}");
    rig.library.behave();
    change(&mut rig, "three").await;
    rig.engine().await.expect("up");
    rig.sinks.get_mut("archive").expect("it exists").0.paused = false;
    change(&mut rig, "two").await;
    rig.sync_well().await;
    assert_eq!((rig.sink("archive").delivered().len(), meaning(&rig).as_str()), (60, "two"));
    rig.assert_converged();
}
