//! What cannot be read is neither guessed nor forgotten: entries without a number, fields that are missing, answers that
//! ask for patience, and loads that find nothing.

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::store::Step;
use sierra_sync::sync::Store;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::SourceErrorKind;
use sierra_sync::sync::report::status::OverallState;
use sierra_sync::sync::report::summary::{StreamOutcome, StreamSummary};

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

fn stocked(stream: Stream, count: u64) -> Rig<ShelfSource> {
    let rig = Rig::on_shelf(1, &[stream]);
    rig.library.with(|shelf| shelf.stock(stream, count));
    rig
}

fn spoil(rig: &Rig<ShelfSource>, stream: Stream, ids: &[u64], is_nameless: bool) {
    rig.library.with(|shelf| {
        ids.iter().for_each(|id| shelf.change_silently(stream, *id, |version| version.is_nameless = is_nameless));
    });
}

fn hide(rig: &Rig<ShelfSource>, stream: Stream, ids: &[u64], field: &'static str) {
    rig.library
        .with(|shelf| ids.iter().for_each(|id| shelf.change(stream, *id, |version| version.hidden = vec![field])));
}

fn adds_up(counts: &StreamSummary) -> bool {
    let parts = counts.changed + counts.unchanged + counts.stale + counts.deleted + counts.deleted_unseen;
    counts.fetched == parts + counts.quarantined
}

/// Between others, in a row, and last of all: each stretch stays a gap for as long as it cannot be read, and is then
/// read without anybody's help.
#[tokio::test(start_paused = true)]
async fn records_whose_numbers_cannot_be_read_are_owed_until_they_can() {
    for stream in [BIBS, ITEMS, Stream::Patrons] {
        for page_size in [2000, 7, 5] {
            let mut rig = stocked(stream, 60);
            rig.settings(stream).page_size = page_size;
            let lost = [1007, 1010, 1022, 1034, 1055, 1178];
            spoil(&rig, stream, &lost, true);
            for _ in 0..3 {
                let summary = rig.sync().await;
                let counts = &summary.streams[stream.name()];
                assert_eq!((summary.exit, counts.state), (3, StreamOutcome::Partial), "{page_size}: {counts:#?}");
                assert_eq!((counts.gaps.len(), counts.quarantined), (5, 0), "{page_size}: {counts:#?}");
                assert!(adds_up(counts), "{counts:#?}");
                let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
                assert_eq!((status.state, status.streams[stream.name()].gaps.len()), (OverallState::Degraded, 5));
                assert!(counts.gaps[0].error.as_ref().is_some_and(|error| error.contains("cannot be read")));
                tokio::time::sleep(minutes(2)).await;
            }
            rig.assert_converged();
            spoil(&rig, stream, &lost, false);
            rig.sync_well().await;
            rig.assert_converged();
            let left = rig.store.ledger(stream).expect("up");
            assert!(left.iter().all(|row| !row.is_owed()) && left.len() <= 4, "{left:#?}");
        }
    }
}

/// The last of a page, which the next one should begin with: when Sierra says "nothing" in its stead, it was there all the
/// same.
#[tokio::test(start_paused = true)]
async fn what_ends_the_last_page_and_never_comes_again_is_told() {
    let mut rig = stocked(BIBS, 5);
    spoil(&rig, BIBS, &[1013], true);
    rig.library.script(|_, query, _| if query.after.is_some() { Act::Nothing } else { Act::Serve });
    let load = rig.sync().await;
    let bibs = &load.streams["bibs"];
    assert_eq!((load.exit, bibs.gaps.len()), (3, 1), "{bibs:#?}");
    assert_eq!((bibs.gaps[0].from.as_str(), bibs.gaps[0].to.as_str()), ("1011", "end"));
    assert!(adds_up(bibs), "{bibs:#?}");
    rig.library.behave();
    spoil(&rig, BIBS, &[1013], false);
    tokio::time::sleep(minutes(5)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// A stretch is asked for between its neighbours, not from its start to the end of the catalogue.
#[tokio::test(start_paused = true)]
async fn a_gap_names_the_numbers_between_the_neighbours() {
    let mut rig = stocked(BIBS, 60);
    spoil(&rig, BIBS, &[1007, 1010, 1022], true);
    let summary = rig.sync().await;
    let gaps: Vec<_> = summary.streams["bibs"].gaps.iter().map(|gap| (gap.from.as_str(), gap.to.as_str())).collect();
    assert_eq!(gaps, [("1005", "1013"), ("1020", "1025")]);
    assert_eq!(rig.watch.events().iter().filter(|event| matches!(event, Event::RowFailed { .. })).count(), 2);
}

/// In a window by time the window itself stays owed, so that only its records are asked for again.
#[tokio::test(start_paused = true)]
async fn a_window_stays_owed_over_what_cannot_be_read() {
    for lost in [&[1007_u64][..], &[1001], &[1031], &[1001, 1007, 1031]] {
        let mut rig = stocked(BIBS, 30);
        rig.sync_well().await;
        tokio::time::sleep(hours(1)).await;
        rig.library.with(|shelf| [1001, 1007, 1022, 1031].into_iter().for_each(|id| shelf.edit(BIBS, id)));
        spoil(&rig, BIBS, lost, true);
        tokio::time::sleep(minutes(2)).await;
        for _ in 0..3 {
            let summary = rig.sync().await;
            let counts = &summary.streams["bibs"];
            assert_eq!((summary.exit, counts.quarantined), (3, 0), "{lost:?}: {counts:#?}");
            assert!(!counts.gaps.is_empty() && counts.gaps.len() <= 3 && adds_up(counts), "{lost:?}: {counts:#?}");
            tokio::time::sleep(hours(1)).await;
        }
        spoil(&rig, BIBS, lost, false);
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// The service needs nobody, however long it takes.
#[tokio::test(start_paused = true)]
async fn the_service_reads_them_when_sierra_is_mended() {
    let mut rig = stocked(BIBS, 60);
    spoil(&rig, BIBS, &[1007, 1010, 1178], true);
    rig.run_for(hours(72), None).await.expect("a sound store");
    let asked = rig.library.asked().len();
    assert!(asked < 3000, "{asked} pages in three days");
    spoil(&rig, BIBS, &[1007, 1010, 1178], false);
    rig.run_for(hours(1), None).await.expect("a sound store");
    let left: Vec<_> = rig.store.ledger(BIBS).expect("up").into_iter().filter(|row| row.is_owed()).collect();
    assert!(left.is_empty(), "{} {left:#?}", rig.now());
    rig.assert_converged();
    assert!(rig.store.ledger(BIBS).expect("up").iter().all(|row| !row.is_owed()));
}

/// CUR-2: killed at any write, nothing is passed that is not owed.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_forgets_none_of_them() {
    for step in Step::OF_A_WRITE {
        for spared in 0..14 {
            let mut rig = stocked(BIBS, 20);
            rig.settings(BIBS).page_size = 6;
            spoil(&rig, BIBS, &[1007, 1025, 1058], true);
            rig.store.fail_at(step, spared);
            let _ended = rig.try_sync().await;
            rig.crash();
            let summary = rig.sync().await;
            assert_eq!(summary.exit, 3, "{step:?} {spared}");
            spoil(&rig, BIBS, &[1007, 1025, 1058], false);
            tokio::time::sleep(minutes(2)).await;
            rig.sync_well().await;
            rig.assert_converged();
        }
    }
}

/// A tombstone may be the one that cannot be read.
#[tokio::test(start_paused = true)]
async fn a_deletion_whose_number_cannot_be_read_is_owed() {
    let mut rig = stocked(BIBS, 30);
    rig.sync_well().await;
    spoil(&rig, BIBS, &[1004], true);
    rig.library.with(|shelf| [1004, 1010].into_iter().for_each(|id| shelf.delete(BIBS, id)));
    tokio::time::sleep(minutes(2)).await;
    assert_eq!(rig.sync().await.exit, 3);
    tokio::time::sleep(hours(100)).await;
    assert_eq!(rig.sync().await.exit, 3);
    rig.library.with(|shelf| {
        let day = shelf.visible(BIBS).find(|(id, _)| *id == 1004).and_then(|(_, version)| version.deleted_on);
        shelf.change_silently(BIBS, 1004, |version| (version.is_nameless, version.deleted_on) = (false, day));
    });
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].deleted, 1, "{summary:#?}");
    rig.assert_converged();
}

/// A field that decides and is not there decides nothing: one such entry is set aside, many stop the stream.
#[tokio::test(start_paused = true)]
async fn a_field_that_is_missing_is_no_value() {
    for (stream, field) in [(BIBS, "suppressed"), (BIBS, "locations"), (ITEMS, "suppressed"), (ITEMS, "bibIds")] {
        let mut rig = stocked(stream, 300);
        rig.settings(stream).locations = vec!["*".into()];
        rig.library.with(|shelf| shelf.change(stream, 1004, |version| version.suppressed = true));
        rig.sync_well().await;
        hide(&rig, stream, &[1004], field);
        rig.library.with(|shelf| shelf.edit(stream, 1004));
        tokio::time::sleep(minutes(2)).await;
        let summary = rig.sync().await;
        let counts = &summary.streams[stream.name()];
        let told = (summary.exit, counts.quarantined, counts.changed, counts.deleted);
        assert_eq!(told, (3, 1, 0, 0), "{stream} {field}: {counts:#?}");
        let entry = rig.store.quarantine(stream, 10).expect("up").remove(0);
        assert_eq!((entry.record.as_str(), entry.reason.starts_with(field)), ("1004", true), "{}", entry.reason);
        // All of them: the schema has changed.
        let all = rig.library.with(|shelf| shelf.alive(stream));
        hide(&rig, stream, &all, field);
        rig.library.with(|shelf| all.iter().for_each(|id| shelf.edit(stream, *id)));
        tokio::time::sleep(minutes(2)).await;
        let summary = rig.sync().await;
        let counts = &summary.streams[stream.name()];
        let told = (counts.state, counts.changed, counts.deleted);
        assert_eq!(told, (StreamOutcome::Stopped, 0, 0), "{stream} {field}: {counts:#?}");
    }
}

/// What no decision needs may be missing.
#[tokio::test(start_paused = true)]
async fn locations_that_decide_nothing_may_be_missing() {
    let mut rig = stocked(BIBS, 30);
    hide(&rig, BIBS, &[1004], "locations");
    rig.sync_well().await;
    rig.assert_converged();
}

/// Not a wait for quota: Sierra is not well. It is left alone for as long as it asked, by the next process too.
#[tokio::test(start_paused = true)]
async fn sierra_that_asks_to_wait_is_out_of_order_and_left_alone() {
    let mut rig = stocked(BIBS, 30);
    rig.sync_well().await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1004));
    tokio::time::sleep(minutes(2)).await;
    let resume_at = rig.now() + SignedDuration::from_mins(40);
    rig.library.script(move |_, _, _| Act::Fail(SourceErrorKind::AskedToWait { resume_at }));
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.state, bibs.gaps.len()), (69, StreamOutcome::Suspended, 1), "{bibs:#?}");
    assert_eq!(bibs.error.as_ref().map(|error| error.kind.as_str()), Some("asked_to_wait"));
    rig.library.behave();
    rig.library.asked();
    rig.restart().await;
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    assert_eq!(status.state, OverallState::Degraded);
    assert!(status.message.starts_with("Nothing is asked for now: "), "{}", status.message);
    let summary = rig.sync().await;
    assert_eq!((summary.exit, summary.streams["bibs"].calls, rig.library.asked().len()), (69, 0, 0), "{summary:#?}");
    rig.run_for(minutes(30), None).await.expect("a sound store");
    assert_eq!(rig.library.asked().len(), 0);
    rig.run_for(minutes(15), None).await.expect("a sound store");
    rig.sync_well().await;
    rig.assert_converged();
}

#[tokio::test(start_paused = true)]
async fn a_first_load_that_finds_nothing_is_told() {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| shelf.stock(ITEMS, 5));
    rig.sync_well().await;
    let told = |events: Vec<Event>| {
        events.into_iter().filter(|event| matches!(event, Event::NothingToLoad { stream: BIBS })).count()
    };
    assert_eq!(told(rig.watch.events()), 1);
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    assert!(status.message.starts_with("The first load found no record at all: bibs;"), "{}", status.message);
    tokio::time::sleep(minutes(10)).await;
    rig.library.with(|shelf| shelf.add(BIBS));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    assert_eq!((told(rig.watch.events()), status.message.as_str()), (0, "All streams are fresh."));
}

#[tokio::test(start_paused = true)]
async fn a_missing_date_is_told_once() {
    let mut rig = stocked(BIBS, 5);
    rig.library.omit_date(true);
    for _ in 0..3 {
        rig.sync().await;
        tokio::time::sleep(minutes(10)).await;
    }
    assert_eq!(rig.watch.events().iter().filter(|event| matches!(event, Event::DateMissing)).count(), 1);
}
