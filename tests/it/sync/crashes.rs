//! A process that dies at every single step of the store: whatever was acknowledged is there, nothing else is missing.

use sierra_sync::record::Stream;
use sierra_sync::store::Step;

use crate::support::{Rig, ShelfSource, minutes};

/// BR-066, BR-071, BR-113, BR-117, BR-118, CUR-1, CUR-2, OUT-1: a load and a life, struck at each write in each way.
#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_killed_at_every_step() {
    let steps = writes_of_a_run().await;
    assert!(steps > 30, "{steps} steps are worth striking");
    for step in Step::OF_A_WRITE {
        for spared in 0..steps {
            let mut rig = stocked();
            rig.store.fail_at(step, spared);
            let struck = a_run(&mut rig).await.is_err();
            assert!(struck, "{step:?} {spared}");
            rig.assert_sound();
            rig.crash();
            rig.library.behave();
            tokio::time::sleep(minutes(2)).await;
            rig.sync_well().await;
            rig.sync_well().await;
            rig.assert_converged();
            rig.sink("archive").assert_holds_all(&rig.watch.committed("archive"), &format!("{step:?} {spared}"));
        }
    }
}

/// BR-066: however often it dies in mid-load, no more than one page is fetched again for each death.
#[tokio::test(start_paused = true)]
async fn each_death_in_a_load_costs_at_most_one_page() {
    for step in Step::OF_A_WRITE {
        let mut rig = Rig::on_shelf(1, &[Stream::Bibs]);
        rig.settings(Stream::Bibs).page_size = 20;
        rig.library.with(|shelf| shelf.stock(Stream::Bibs, 1000));
        let mut deaths = 0;
        loop {
            rig.store.fail_at(step, 9);
            if rig.try_sync().await.is_ok() {
                break;
            }
            deaths += 1;
            rig.crash();
        }
        let pages = rig.library.asked().len();
        assert!(deaths > 3, "{deaths}");
        assert!(pages <= 50 + 2 * deaths + 4, "{pages} pages for 50 and {deaths} deaths at {step:?}");
        rig.assert_converged();
    }
}

fn stocked() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[Stream::Bibs, Stream::Items]);
    rig.library.with(|shelf| {
        shelf.stock(Stream::Bibs, 45);
        shelf.stock(Stream::Items, 45);
    });
    for stream in [Stream::Bibs, Stream::Items] {
        rig.settings(stream).page_size = 20;
    }
    rig
}

/// A load, an hour of life, a pass, another.
async fn a_run(rig: &mut Rig<ShelfSource>) -> Result<(), sierra_sync::sync::StoreError> {
    rig.try_sync().await?;
    rig.idle_for(minutes(60), 30).await;
    rig.try_sync().await?;
    rig.idle_for(minutes(20), 10).await;
    rig.try_sync().await?;
    Ok(())
}

/// How many writes an undisturbed run makes.
async fn writes_of_a_run() -> u64 {
    let mut rig = stocked();
    a_run(&mut rig).await.expect("a sound store");
    rig.store.writes()
}
