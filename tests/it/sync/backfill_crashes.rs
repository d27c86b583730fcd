//! A backfill whose process dies at every single step of the store.

use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::store::Step;
use sierra_sync::sync::backfill::{BackfillOrder, Numbers, Selection, Via};
use sierra_sync::sync::ports::Store;
use sierra_sync::sync::{Pass, StoreError};

use crate::support::{Rig, ShelfSource, minutes, struck_at_every_write};

const BIBS: Stream = Stream::Bibs;

fn orders() -> [BackfillOrder; 3] {
    let plain = |numbers: Numbers| BackfillOrder {
        stream: BIBS,
        selection: Selection { numbers, ..Selection::default() },
        via: Via::List,
        sink: None,
        force: true,
        wait_for_quota: false,
        meaning: None,
    };
    let list = (0..45).map(|n| RecordNumber::new(1001 + n * 3)).collect();
    [plain(Numbers::All), plain(Numbers::List(list)), BackfillOrder::reload(BIBS, "archive", false)]
}

fn stocked(count: u64, page_size: u32) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, count));
    rig.settings(BIBS).page_size = page_size;
    rig
}

async fn loaded() -> Rig<ShelfSource> {
    let mut rig = stocked(45, 4);
    rig.sync_well().await;
    rig.library.with(|shelf| {
        shelf.delete(BIBS, 1007);
        shelf.change_silently(BIBS, 1010, |version| version.title = "silent".into());
    });
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig
}

async fn struck(rig: &mut Rig<ShelfSource>, order: &BackfillOrder, step: Step, spared: u64) -> Result<(), StoreError> {
    rig.store.fail_at(step, spared);
    rig.try_backfill(order).await.map(drop)
}

/// CUR-1, CUR-2, OUT-1: struck at each write in each way, the same order completes it, and every sink has everything.
#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_killed_at_every_step() {
    for order in orders() {
        let goes_on = async |rig: &mut Rig<ShelfSource>, context: &str| {
            assert_eq!(rig.backfill(&order).await.exit, 0, "{context}");
            rig.sync_well().await;
            rig.assert_converged();
            rig.sink("archive").assert_holds_all(&rig.watch.committed("archive"), context);
        };
        let act = async |rig: &mut Rig<ShelfSource>| rig.try_backfill(&order).await.map(drop);
        struck_at_every_write(&format!("{order:?}"), 11, loaded, act, goes_on).await;
    }
}

/// However often it dies, no more than one page is fetched again for each death.
#[tokio::test(start_paused = true)]
async fn each_death_costs_at_most_one_page() {
    let [whole, _, reload] = orders();
    for order in [whole, reload] {
        let mut rig = stocked(1000, 20);
        rig.sync_well().await;
        rig.library.asked();
        let mut deaths = 0;
        while struck(&mut rig, &order, Step::OF_A_WRITE[1], 24).await.is_err() {
            deaths += 1;
            rig.crash();
            let rows = rig.store.ledger(BIBS).expect("up");
            if !rows.iter().any(|row| row.pass == Pass::Backfill && row.is_owed()) {
                // It died delivering what it had read: the order is carried out, and given again would begin anew.
                break;
            }
        }
        let pages = rig.library.asked().len();
        rig.sync_well().await;
        assert!(deaths > 3, "{deaths}");
        assert!(pages <= 50 + 2 * deaths + 8, "{pages} pages for 50 and {deaths} deaths of {order:?}");
        rig.assert_converged();
    }
}
