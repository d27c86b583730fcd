//! Records that were set aside and are mended; and pages that lie while a failing one is taken apart. In the end every
//! sink holds what Sierra holds, never a version before it.

use std::time::Duration;

use jiff::SignedDuration;
use rand::RngExt;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{Fault, Garble, Kind, Life};
use sierra_sync::sync::ports::{FieldSet, PageFilter, QuarantineState, SinkPosition, Slice, SourceErrorKind};
use sierra_sync::sync::{LedgerRow, Pass, Span, Store};

use crate::support::{Act, Rig, ShelfSource, Sim, hours, minutes, seeds, would_list};

const BIBS: Stream = Stream::Bibs;

async fn loaded(count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.settings(BIBS).overlap = Duration::ZERO;
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.sync_well().await;
    tokio::time::sleep(minutes(20)).await;
    rig
}

fn is_list(filter: &PageFilter) -> bool {
    matches!(filter, PageFilter::Ids(_))
}

/// The record is garbled with its edit and mended without one: no window shows it again, and no sink may keep the
/// version before the edit.
#[tokio::test(start_paused = true)]
async fn what_is_mended_without_a_new_stamp_arrives_by_a_replay() {
    let mut rig = loaded(40).await;
    rig.library.with(|shelf| {
        shelf.edit(BIBS, 1004);
        shelf.change(BIBS, 1004, |version| version.is_garbled = true);
    });
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync().await;
    assert_eq!((summary.exit, summary.streams["bibs"].quarantined), (3, 1));
    rig.library.with(|shelf| shelf.change_silently(BIBS, 1004, |version| version.is_garbled = false));
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["bibs"].changed, summary.streams["bibs"].quarantined), (1, 0));
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    rig.assert_converged();
}

/// What does not heal is asked for three times and then left alone; a newer version still closes it.
#[tokio::test(start_paused = true)]
async fn what_does_not_heal_is_replayed_three_times_and_parked() {
    let mut rig = loaded(40).await;
    rig.library.with(|shelf| shelf.change(BIBS, 1004, |version| version.is_garbled = true));
    rig.library.asked();
    rig.run_for(hours(72), None).await.expect("a sound store");
    let lists = rig.library.asked().into_iter().filter(|(_, query)| is_list(&query.filter)).count();
    let entries = rig.store.quarantine(BIBS, 10).expect("up");
    assert_eq!((lists, entries.len(), entries[0].state), (3, 1, QuarantineState::Parked), "{entries:?}");
    assert_eq!(entries[0].attempts, 4, "seen once and replayed three times");
    rig.library.with(|shelf| shelf.change(BIBS, 1004, |version| version.is_garbled = false));
    rig.run_for(minutes(10), None).await.expect("a sound store");
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    rig.assert_converged();
}

/// A record that is deleted while it stands in the quarantine leaves it, even if it is asked for no more.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_gone_leaves_the_quarantine() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 40);
        shelf.change_silently(BIBS, 1004, |version| version.is_garbled = true);
    });
    rig.run_for(hours(26), None).await.expect("a sound store");
    assert_eq!(rig.store.quarantine(BIBS, 10).expect("up")[0].state, QuarantineState::Parked);
    rig.library.with(|shelf| shelf.delete(BIBS, 1004));
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["bibs"].deleted_unseen, summary.streams["bibs"].deleted), (1, 0));
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    rig.assert_converged();
}

/// A bib comes without MARC, and the list that asks for it again is answered by a back-end that lags behind: its older
/// version must not be taken for the newer one.
#[tokio::test(start_paused = true)]
async fn an_older_version_in_answer_to_a_list_does_not_hide_the_newer_one() {
    let mut rig = loaded(40).await;
    let before = rig.library.with(|shelf| shelf.visible(BIBS).find(|(id, _)| *id == 1004).unwrap().1.clone());
    rig.library.with(|shelf| {
        shelf.edit(BIBS, 1004);
        shelf.change(BIBS, 1004, |version| version.without_marc = Some(true));
    });
    let edited = rig.library.with(|shelf| shelf.visible(BIBS).find(|(id, _)| *id == 1004).unwrap().1.clone());
    tokio::time::sleep(minutes(2)).await;
    let lagging = before.clone();
    rig.library.script(move |_, query, shelf| {
        if is_list(&query.filter) {
            let (title, updated) = (lagging.title.clone(), lagging.updated);
            shelf.change(BIBS, 1004, |version| {
                (version.title, version.updated, version.without_marc) = (title, updated, None);
            });
        }
        Act::Serve
    });
    assert_eq!(rig.sync().await.streams["bibs"].quarantined, 1);
    rig.library.behave();
    // The back-ends agree again, on the version that the window has passed.
    rig.library.with(|shelf| {
        shelf.change(BIBS, 1004, |version| {
            (version.title, version.updated, version.without_marc) = (edited.title, edited.updated, None);
        });
    });
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// While a page is taken apart, an answer may be shorter than it was asked for, or lie that there is nothing. What it
/// holds back must not be passed by.
#[tokio::test(start_paused = true)]
async fn answers_that_hold_back_while_a_page_is_taken_apart_lose_nobody() {
    for even_ids in [false, true] {
        for lie in [|| Act::AtMost(1), || Act::Nothing] {
            let mut rig = Rig::on_shelf(1, &[BIBS]);
            rig.library.with(|shelf| shelf.stock(BIBS, 120));
            let mut lied = std::collections::BTreeSet::new();
            rig.library.script(move |_, query, shelf| {
                let is_whole = even_ids || query.fields == FieldSet::Configured;
                if is_whole && would_list(shelf, query).contains(&1031) {
                    return Act::FailWith(500, 135);
                }
                // Each part once.
                let is_part = query.until.is_some() && query.fields == FieldSet::Configured;
                if is_part && lied.insert((query.after, query.until)) { lie() } else { Act::Serve }
            });
            let summary = rig.sync().await;
            let bibs = &summary.streams["bibs"];
            assert_eq!((bibs.changed, bibs.quarantined), (119, 1), "even_ids {even_ids}: {bibs:#?}");
            rig.library.behave();
            tokio::time::sleep(minutes(2)).await;
            rig.sync_well().await;
            rig.assert_converged();
        }
    }
}

/// A server that fails whatever it is asked, even for numbers: no number is made up and set aside (only what Sierra
/// names, or what alone fails while others are answered).
#[tokio::test(start_paused = true)]
async fn no_number_is_set_aside_that_no_record_has() {
    for failing_calls in [7, 12, 20, 29, u64::MAX] {
        let mut rig = Rig::on_shelf(1, &[BIBS]);
        rig.library.with(|shelf| shelf.stock(BIBS, 60));
        rig.library.script(
            move |call, _, _| {
                if call <= failing_calls { Act::Fail(SourceErrorKind::Narrow) } else { Act::Serve }
            },
        );
        let summary = rig.sync().await;
        assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0, "{failing_calls}: {summary:#?}");
        assert_eq!(summary.streams["bibs"].quarantined, 0);
        rig.library.behave();
        tokio::time::sleep(minutes(40)).await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// Poison at the very end of what is asked, with nothing after it that could be answered.
#[tokio::test(start_paused = true)]
async fn poison_at_the_end_is_told_by_what_came_before() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 60));
    let last = 1001 + 59 * 3;
    let span = Span::Ids { from: RecordNumber::new(1), to: Some(RecordNumber::new(last)), pinned: rig.now() };
    // The sink is there from the start: one that came later would be loaded by itself, and everything read twice.
    let place = SinkPosition { attached: true, streams: vec![BIBS], ..SinkPosition::default() };
    rig.store.set_sink_positions(&[("archive".to_owned(), place)].into()).expect("up");
    let id = rig.store.next_row_id().expect("up");
    let row = LedgerRow::opened(id, BIBS, Pass::Load, span, rig.now());
    rig.store.commit(Slice { rows: vec![row], ..Slice::default() }).expect("up");
    rig.library.script(
        move |_, query, shelf| {
            if would_list(shelf, query).contains(&last) { Act::FailWith(500, 135) } else { Act::Serve }
        },
    );
    let summary = rig.sync().await;
    let entries = rig.store.quarantine(BIBS, 10).expect("up");
    let named: Vec<&str> = entries.iter().map(|entry| entry.record.as_str()).collect();
    assert_eq!((summary.streams["bibs"].changed, named), (59, vec![last.to_string().as_str()]), "{summary:#?}");
}

/// Sierra fails for every number above some point, whether a record has it or not: that is no matter of records.
#[tokio::test(start_paused = true)]
async fn a_server_that_fails_beyond_some_number_sets_nothing_aside() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 60));
    rig.library.script(|_, query, _| {
        if query.until.is_none_or(|until| until.value() > 1050) { Act::FailWith(500, 135) } else { Act::Serve }
    });
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((bibs.changed, bibs.quarantined, bibs.gaps.len()), (17, 0, 1), "{bibs:#?}");
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    rig.library.behave();
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// Whatever is set aside and mended in whatever order, within one second or hours apart, over the real client: in the
/// end sinks hold what the library holds.
#[tokio::test(start_paused = true)]
async fn sinks_end_with_the_newest_version_however_records_are_spoilt_and_mended() {
    for seed in seeds(6) {
        let mut sim = Sim::seeded(seed).library(60).streams(&[BIBS]).page_size(7).life(Life::default()).start().await;
        sim.settings(BIBS).settle = Duration::ZERO;
        sim.settings(BIBS).overlap = Duration::ZERO;
        sim.crash_and_restart().await;
        let mut chance = RootSeed::new(seed).generator("mends");
        let ids = sim.library.simulator.world(|world| world.ids(Kind::Bibs));
        for _ in 0..40 {
            let id = ids[chance.random_range(0..6)];
            let simulator = sim.library.simulator.clone();
            match chance.random_range(0..9_u32) {
                0..3 => simulator.world(|world| world.edit_bib(id)).expect("a bib"),
                3 => drop(simulator.plan(Fault::Garbled { kind: Kind::Bibs, id, how: Garble::WrongTypes })),
                4 => drop(simulator.plan(Fault::Garbled { kind: Kind::Bibs, id, how: Garble::OnlyId })),
                5 => drop(simulator.plan(Fault::Poison { kind: Kind::Bibs, id, code: 135, even_ids: chance.random() })),
                6 => simulator.with(|simulator| simulator.cancel_all_faults()),
                _ => drop(sim.sync().await),
            }
            if chance.random() {
                tokio::time::sleep(Duration::from_millis(chance.random_range(0..90_000))).await;
            }
        }
        sim.library.simulator.with(|simulator| simulator.cancel_all_faults());
        // Once more with the next pass, and then on their own schedule.
        for wait in [SignedDuration::ZERO, SignedDuration::from_mins(61), SignedDuration::from_hours(25)] {
            tokio::time::sleep(wait.unsigned_abs()).await;
            sim.sync().await;
        }
        sim.assert_converged().await;
    }
}
