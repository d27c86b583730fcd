//! A feed that dies looks like a quiet library: `status` tells the one from the other.

use jiff::Timestamp;
use sierra_sync::record::Stream;
use sierra_sync::sync::settings::Cadence;

use crate::support::{NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;

async fn silent_since(rig: &mut Rig<ShelfSource>) -> Option<Timestamp> {
    rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up").streams["bibs"].silent_since
}

/// BR-065: after a week in which every hour brought something, two days without anything are told, also by the next
/// process, until something comes. A week without anything at all is not.
#[tokio::test(start_paused = true)]
async fn a_feed_that_dies_is_told_and_one_that_was_always_quiet_is_not() {
    for brings in [true, false] {
        let mut rig = Rig::on_shelf(1, &[BIBS]);
        rig.library.with(|shelf| shelf.stock(BIBS, 10));
        rig.settings(BIBS).cadence = Cadence::Every(minutes(30));
        rig.settings(BIBS).deleted_interval = hours(24);
        rig.sync_well().await;
        for _ in 0..8 * 24 {
            if brings {
                rig.library.with(|shelf| shelf.edit(BIBS, 1004));
            }
            tokio::time::sleep(minutes(30)).await;
            rig.sync_well().await;
            tokio::time::sleep(minutes(30)).await;
            rig.sync_well().await;
        }
        assert_eq!(silent_since(&mut rig).await, None, "brings {brings}");
        let died = rig.now();
        for _ in 0..2 * 48 {
            tokio::time::sleep(minutes(30)).await;
            rig.sync_well().await;
        }
        rig.restart().await;
        let told = silent_since(&mut rig).await;
        let is_soon = |since: &Timestamp| since.duration_since(died).as_hours() < 2;
        assert_eq!(told.as_ref().is_some_and(is_soon), brings, "{told:?}, died {died}");
        rig.library.with(|shelf| shelf.edit(BIBS, 1004));
        tokio::time::sleep(minutes(30)).await;
        rig.sync_well().await;
        assert_eq!(silent_since(&mut rig).await, None, "brings {brings}");
    }
}
