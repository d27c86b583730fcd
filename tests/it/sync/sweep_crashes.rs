//! Sweeps whose process dies at every single step of the store.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::sync::settings::Repeat;
use sierra_sync::sync::sweep::ReconcileOrder;
use sierra_sync::sync::{DeleteReason, LedgerRow, Op, Pass, Store};

use crate::support::{Rig, ShelfSource, hours, minutes, struck_at_every_write};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;
const VANISHED: [u64; 2] = [1007, 1052];

/// A loaded library in which everything has happened that no window shows.
async fn drifted() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    for stream in [BIBS, ITEMS] {
        rig.library.with(|shelf| shelf.stock(stream, 24));
        rig.settings(stream).page_size = 7;
    }
    rig.sync_well().await;
    rig.sink("archive").delivered();
    rig.library.with(|shelf| {
        let month = shelf.now() - SignedDuration::from_hours(24 * 30);
        for stream in [BIBS, ITEMS] {
            VANISHED.iter().for_each(|id| shelf.vanish(stream, *id));
            shelf.change_silently(stream, 1010, |version| version.suppressed = true);
            shelf.change(stream, 1040, |version| (version.updated, version.title) = (month, "back-dated".into()));
            shelf.add_dated(stream, month);
        }
        shelf.change_silently(ITEMS, 1013, |version| version.bib_ids = vec![1004, 2000]);
    });
    tokio::time::sleep(minutes(2)).await;
    rig
}

fn order(stream: Stream, deep: bool) -> ReconcileOrder {
    ReconcileOrder { deep, max_missing: 20, ..ReconcileOrder::scheduled(stream, false) }
}

/// The numbers told as vanished since this was last asked.
fn vanished(rig: &Rig<ShelfSource>) -> BTreeSet<u64> {
    let is_vanished = |op: &Op| matches!(op, Op::Delete { reason: DeleteReason::Vanished, .. });
    let told = rig.sink("archive").delivered().into_iter().filter(|(_, op)| is_vanished(op));
    told.map(|(key, _)| key.split('/').nth(1).and_then(|id| id.parse().ok()).expect("a number")).collect()
}

/// CUR-1, CUR-2, OUT-1, BR-115: struck at each write in each way, a reconciliation goes on where it was and then
/// concludes nothing from absence; it deletes nothing that lives, and after one more the sinks hold what the library
/// holds.
#[tokio::test(start_paused = true)]
async fn nothing_is_lost_and_nothing_wrongly_deleted_when_killed_at_every_step() {
    for (stream, deep) in [(BIBS, false), (ITEMS, false), (ITEMS, true)] {
        let order = order(stream, deep);
        let goes_on = async |rig: &mut Rig<ShelfSource>, context: &str| {
            let rows = rig.store.ledger(stream).expect("up");
            let is_under_way = |row: &LedgerRow| row.pass == Pass::Reconcile && row.is_owed() && row.position.is_some();
            let goes_on = rows.iter().any(is_under_way);
            let second = rig.reconcile(&order).await;
            let says_so = second.found.stopped.as_deref().is_some_and(|why| why.contains("interrupted and resumed"));
            assert_eq!((says_so, second.exit), (goes_on, if goes_on { 3 } else { 0 }), "{context}: {second:?}");
            let third = rig.reconcile(&order).await;
            assert_eq!((third.exit, third.found.drift), (0, 0), "{context}: {third:?}");
            let other = if stream == BIBS { ITEMS } else { BIBS };
            assert_eq!(rig.reconcile(&self::order(other, false)).await.exit, 0, "{context}");
            rig.sync_well().await;
            assert_eq!(vanished(rig), BTreeSet::from(VANISHED), "{context}");
            rig.assert_converged();
            rig.sink("archive").assert_holds_all(&rig.watch.committed("archive"), context);
        };
        let act = async |rig: &mut Rig<ShelfSource>| rig.try_reconcile(&order).await.map(drop);
        struck_at_every_write(&format!("{stream}, deep {deep}"), 11, drifted, act, goes_on).await;
    }
}

/// A loaded library in which edits of today showed forty minutes late, a day ago.
async fn late() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 24));
    rig.settings(BIBS).page_size = 3;
    rig.settings(BIBS).late_sweep = Some(Repeat::Daily);
    rig.sync_well().await;
    rig.library.with(|shelf| {
        shelf.commit_lag = SignedDuration::from_mins(40);
        (0..8).for_each(|n| shelf.edit(BIBS, 1001 + n * 6));
        shelf.commit_lag = SignedDuration::ZERO;
    });
    tokio::time::sleep(minutes(20)).await;
    rig.sync_well().await;
    // The next pass has nothing new to read, and a sweep is due.
    tokio::time::sleep(hours(24)).await;
    rig
}

/// BR-064: a late sweep is owed until it is done, however often its process dies.
#[tokio::test(start_paused = true)]
async fn a_late_sweep_killed_at_every_step_finds_what_it_is_for() {
    let goes_on = async |rig: &mut Rig<ShelfSource>, context: &str| {
        rig.sync_well().await;
        rig.assert_converged();
        rig.sink("archive").assert_holds_all(&rig.watch.committed("archive"), context);
    };
    let act = async |rig: &mut Rig<ShelfSource>| rig.try_sync().await.map(drop);
    struck_at_every_write("late", 11, late, act, goes_on).await;
}
