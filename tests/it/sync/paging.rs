//! Pages: nothing skipped, nothing asked for ever, nothing believed too early.

use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sync::Store;
use sierra_sync::sync::ports::{FieldSet, PageFilter, PageQuery, SourceErrorKind};
use sierra_sync::sync::report::summary::StreamOutcome;

use crate::support::{Act, Rig, ShelfSource, minutes, would_list};

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

/// BR-031, BR-095: `limit` is always sent and pages go on from the last id until nothing comes, whatever a short page
/// suggests and however little is given at once.
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

/// A page that times out is asked for in smaller ones, and not taken apart.
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
    assert!(rig.library.asked().iter().all(|(_, query)| query.fields != FieldSet::IdOnly));
    rig.assert_converged();
}

/// Sierra answers 500 with code 135 whenever one of `poison` is asked for whole.
fn poison(rig: &Rig<ShelfSource>, poison: &'static [u64]) {
    rig.library.script(move |_, query, shelf| {
        let is_whole = query.fields == FieldSet::Configured;
        let is_hit = is_whole && would_list(shelf, query).iter().any(|id| poison.contains(id));
        if is_hit { Act::FailWith(500, 135) } else { Act::Serve }
    });
}

/// BR-045, B10: records that spoil every page they stand on end alone in the quarantine; all others are delivered.
#[tokio::test(start_paused = true)]
async fn a_poison_record_ends_alone_in_the_quarantine() {
    for records in [&[1031][..], &[1001], &[1298], &[1031, 1034], &[1100, 1601]] {
        let mut rig = Rig::on_shelf(1, &[BIBS]);
        rig.library.with(|shelf| shelf.stock(BIBS, 300));
        poison(&rig, records);
        let summary = rig.sync().await;
        let bibs = &summary.streams["bibs"];
        let bad = u64::try_from(records.len()).unwrap();
        assert_eq!((summary.exit, bibs.changed, bibs.quarantined), (3, 300 - bad, bad), "{records:?}");
        assert!(bibs.calls < 50, "{records:?} took {} calls", bibs.calls);
        let entries = rig.store.quarantine(BIBS, 10).expect("up");
        assert_eq!(entries.iter().map(|entry| entry.record.parse().unwrap()).collect::<Vec<u64>>(), records);
        assert!(entries[0].reason.contains("500 with code 135"));
        // The vendor repairs it: the records come with their next edit, and their entries close.
        rig.library.behave();
        rig.library.with(|shelf| records.iter().for_each(|id| shelf.edit(BIBS, *id)));
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
        assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
        rig.assert_converged();
    }
}

/// BR-045: when not even the numbers can be had, ranges are searched from the position on.
#[tokio::test(start_paused = true)]
async fn a_poison_record_is_found_without_the_numbers_too() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 300));
    rig.library.script(
        |_, query, shelf| {
            if would_list(shelf, query).contains(&1301) { Act::FailWith(500, 135) } else { Act::Serve }
        },
    );
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((bibs.changed, bibs.quarantined, bibs.gaps.len()), (299, 1, 0), "{bibs:#?}");
    assert!(bibs.calls < 40, "{} calls", bibs.calls);
    assert_eq!(rig.store.quarantine(BIBS, 10).expect("up")[0].record, "1301");
}

/// The same among numbers of seven digits, of which the first million belong to nobody: ranges grow until one fails.
#[tokio::test(start_paused = true)]
async fn a_poison_record_is_found_far_from_the_position() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock_from(BIBS, 4_000_001, 30));
    rig.library.script(|_, query, shelf| {
        if would_list(shelf, query).contains(&4_000_031) { Act::FailWith(500, 135) } else { Act::Serve }
    });
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((bibs.changed, bibs.quarantined, bibs.gaps.len()), (29, 1, 0), "{bibs:#?}");
    assert!(bibs.calls < 45, "{} calls", bibs.calls);
}

/// The same in a window, where few records stand between the position and the one that spoils the page: each window
/// that meets it costs little.
#[tokio::test(start_paused = true)]
async fn a_poison_record_costs_a_window_little() {
    for even_ids in [false, true] {
        let mut rig = Rig::on_shelf(1, &[BIBS]);
        rig.settings(BIBS).page_size = 2000;
        rig.library.with(|shelf| shelf.stock_from(BIBS, 1_000_001, 6000));
        rig.sync_well().await;
        let poison = rig.library.with(|shelf| {
            let ids = shelf.alive(BIBS);
            ids.iter().step_by(4).for_each(|id| shelf.edit(BIBS, *id));
            ids[3200]
        });
        tokio::time::sleep(minutes(2)).await;
        rig.library.script(move |_, query, shelf| {
            let is_read = even_ids || query.fields == FieldSet::Configured;
            if is_read && would_list(shelf, query).contains(&poison) { Act::FailWith(500, 135) } else { Act::Serve }
        });
        let summary = rig.sync().await;
        let bibs = &summary.streams["bibs"];
        assert_eq!((bibs.changed, bibs.quarantined, bibs.gaps.len()), (1499, 1, 0), "{bibs:#?}");
        assert!(bibs.calls < if even_ids { 50 } else { 35 }, "even ids {even_ids}: {} calls", bibs.calls);
        rig.library.behave();
    }
}

/// BR-134: full pages of a server that lists by another key leave numbers out. They are not taken, and it is told.
#[tokio::test(start_paused = true)]
async fn full_pages_by_another_key_are_a_gap() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 500));
    rig.library.script(|_, _, _| Act::ByAnotherKey);
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.changed), (3, 0), "{bibs:#?}");
    assert_eq!(bibs.error.as_ref().map(|error| error.kind.as_str()), Some("out_of_order"), "{bibs:#?}");
    rig.library.behave();
    tokio::time::sleep(minutes(20)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-134: a number far beyond all others at the end of a page carries the position past nobody.
#[tokio::test(start_paused = true)]
async fn a_stray_number_at_the_end_of_a_page_carries_the_position_past_nobody() {
    const STRAY: u64 = 99_999_999_999;
    for is_load in [true, false] {
        let mut rig = if is_load { Rig::on_shelf(1, &[BIBS]) } else { loaded(500).await };
        rig.library.with(|shelf| {
            if is_load {
                shelf.stock(BIBS, 500);
            }
            shelf.stock_from(BIBS, STRAY, 1);
            shelf.alive(BIBS).iter().for_each(|id| shelf.edit(BIBS, *id));
        });
        tokio::time::sleep(minutes(2)).await;
        let is_whole = |query: &PageQuery| query.fields == FieldSet::Configured && query.until.is_none();
        rig.library.script(move |_, query, shelf| {
            let is_full = would_list(shelf, query).len() >= 100;
            if is_whole(query) && is_full { Act::EndingWith(STRAY) } else { Act::Serve }
        });
        let summary = rig.sync().await;
        let bibs = &summary.streams["bibs"];
        assert_eq!((summary.exit, bibs.changed, bibs.gaps.len()), (3, 0, 1), "{bibs:#?}");
        rig.library.behave();
        tokio::time::sleep(minutes(20)).await;
        rig.sync_well().await;
        rig.assert_converged();
        // Where it belongs it is nothing unusual.
        rig.library.with(|shelf| shelf.edit(BIBS, STRAY));
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// BR-134: pages that were chosen by number and then mixed leave nothing out, and are taken.
#[tokio::test(start_paused = true)]
async fn full_pages_that_were_only_mixed_are_taken() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 500));
    rig.library.script(|_, _, _| Act::Mixed);
    let summary = rig.sync_well().await;
    assert_eq!(summary.streams["bibs"].changed, 500);
    rig.assert_converged();
}

/// Records that enter a range while it is being taken apart are not cut off by its size.
#[tokio::test(start_paused = true)]
async fn records_that_enter_a_page_while_it_is_taken_apart_are_read() {
    let mut rig = loaded(300).await;
    rig.settings(BIBS).page_size = 10;
    rig.restart().await;
    // A window in which every third record stands.
    rig.library.with(|shelf| shelf.alive(BIBS).iter().step_by(3).for_each(|id| shelf.edit(BIBS, *id)));
    tokio::time::sleep(minutes(2)).await;
    let mut has_entered = false;
    rig.library.script(move |_, query, shelf| {
        if query.fields == FieldSet::IdOnly && !has_entered {
            has_entered = true;
            return Act::Serve;
        }
        if has_entered && query.until.is_some() && query.fields == FieldSet::Configured {
            // Within the window, though later: its stamp is set back.
            let stamp = shelf.visible(BIBS).find(|(id, _)| *id == 1001).expect("a bib").1.updated;
            for id in [1004, 1013, 1022] {
                shelf.change(BIBS, id, |version| version.updated = stamp);
            }
        }
        let is_hit = query.fields == FieldSet::Configured && would_list(shelf, query).contains(&1010);
        if is_hit { Act::FailWith(500, 135) } else { Act::Serve }
    });
    let summary = rig.sync().await;
    assert_eq!(summary.streams["bibs"].quarantined, 1);
    rig.library.behave();
    let held = rig.sink("archive").holds(BIBS);
    let truth: Vec<_> = rig.library.with(|shelf| {
        let edited = shelf.visible(BIBS).filter(|(_, version)| version.title.contains("edit"));
        edited.map(|(id, version)| (id.to_string(), version.title.clone())).collect()
    });
    assert_eq!(truth.len(), 100);
    let missing: Vec<_> = truth.iter().filter(|(id, title)| held[id].title != *title && id != "1010").collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A page all of whose records fail is no matter of records: the stream stops, and nothing is set aside.
#[tokio::test(start_paused = true)]
async fn a_page_of_nothing_but_poison_stops_the_stream() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 300));
    rig.library.script(|_, query, _| match query.fields {
        FieldSet::Configured => Act::FailWith(500, 135),
        _ => Act::Serve,
    });
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((bibs.state, bibs.quarantined), (StreamOutcome::Stopped, 0));
    assert!(bibs.calls < 80, "{} calls", bibs.calls);
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
}

/// An outage that begins while a page is taken apart is an outage: the row fails, and nothing is set aside.
#[tokio::test(start_paused = true)]
async fn an_outage_in_mid_search_is_not_taken_for_poison() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 300));
    rig.library.script(|call, query, shelf| {
        if call > 6 {
            return Act::Fail(SourceErrorKind::Exhausted);
        }
        let is_hit = query.fields == FieldSet::Configured && would_list(shelf, query).contains(&1031);
        if is_hit { Act::FailWith(500, 135) } else { Act::Serve }
    });
    let summary = rig.sync().await;
    assert_eq!((summary.streams["bibs"].quarantined, summary.streams["bibs"].gaps.len()), (0, 1));
    poison(&rig, &[1031]);
    let again = rig.sync().await;
    assert_eq!((again.streams["bibs"].changed, again.streams["bibs"].quarantined), (299, 1));
}

/// A page of large records is committed in slices of about 2 MiB, however many records that are.
#[tokio::test(start_paused = true)]
async fn a_page_of_large_records_is_committed_in_small_slices() {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
    rig.library.with(|shelf| {
        shelf.stock(Stream::Bibs, 1_000);
        (0..1_000).for_each(|index| {
            shelf.change(Stream::Bibs, 1_001 + 3 * index, |version| version.title = "long ".repeat(12_000));
        });
    });
    rig.settings(Stream::Bibs).page_size = 2_000;
    // Nothing but capture writes.
    rig.sinks.get_mut("archive").expect("it is there").0.paused = true;
    let before = rig.store.writes();
    rig.sync_well().await;
    let bytes = rig.store.outbox_usage().expect("up").bytes;
    assert!(bytes >= 60_000_000, "{bytes}");
    let commits = rig.store.writes() - before;
    assert!(commits >= 60_000_000 >> 21, "{commits} commits for {bytes} bytes");
}
