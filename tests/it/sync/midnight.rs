//! Deletions around local midnight: Sierra gives a local day and no time (sierra-api.md §7 item 8).

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sierra_sync::record::Stream;
use sierra_sync::sync::{DeleteReason, Op};

use crate::support::{Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The first moment of `day`, which is not always called midnight.
fn first_of(day: Date, zone: &TimeZone) -> Timestamp {
    // Where the clocks skip it, the moment after that.
    zone.to_timestamp(day.at(0, 0, 0, 0)).expect("a day begins")
}

/// The days worth looking at in `zone`: an ordinary one, and those on which its clocks are changed next.
fn days(zone: &TimeZone, from: Timestamp) -> BTreeSet<Date> {
    let changes = zone.following(from).take(2).map(|change| change.timestamp());
    let soon = changes.take_while(|at| at.duration_since(from) < SignedDuration::from_hours(24 * 400));
    let changed = soon.flat_map(|at| [zone.to_datetime(at - SECOND).date(), zone.to_datetime(at).date()]);
    changed.chain([zone.to_datetime(from).date().tomorrow().expect("a day")]).collect()
}

/// A loaded library in `zone`, a quarter of an hour before `moment`.
async fn loaded_before(moment: Timestamp, zone: &TimeZone) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.clock.step(moment.duration_since(rig.now()) - SignedDuration::from_mins(15));
    rig.zone = zone.clone();
    rig.library.with(|shelf| {
        shelf.zone = zone.clone();
        shelf.stock(BIBS, 5);
    });
    rig.sync_well().await;
    rig.sink("archive").delivered();
    rig
}

async fn wait_until(moment: Timestamp, rig: &Rig<ShelfSource>) {
    let left = moment.duration_since(rig.now());
    tokio::time::sleep(left.try_into().expect("it is to come")).await;
}

/// The deletions told since this was last asked, by record.
fn deletions(rig: &Rig<ShelfSource>) -> Vec<(String, Option<Date>)> {
    let told = rig.sink("archive").delivered().into_iter();
    told.map(|(key, op)| match op {
        Op::Delete { reason: DeleteReason::Deleted, deleted_on } => {
            (key.split('/').nth(1).expect("a number").to_owned(), deleted_on)
        }
        other => panic!("{key}: {other:?}"),
    })
    .collect()
}

/// BR-012: one record in the last second of a day and one in the first of the next, in every zone and on every kind of
/// day, each told once and with its own day; whether a pass and a crash come between them or not.
#[tokio::test(start_paused = true)]
async fn deletions_around_midnight_are_found_once_in_every_zone() {
    let from: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a timestamp");
    let mut looked_at = BTreeSet::new();
    for name in jiff::tz::db().available().map(|name| name.to_string()) {
        let Ok(zone) = TimeZone::get(&name) else { continue };
        for day in days(&zone, from) {
            let midnight = first_of(day, &zone);
            // Many names stand for one and the same moment and day.
            if !looked_at.insert((midnight, day)) {
                continue;
            }
            for is_cut in [false, true] {
                let context = format!("{name} {day}, cut {is_cut}");
                let mut rig = loaded_before(midnight, &zone).await;
                wait_until(midnight - SECOND, &rig).await;
                rig.library.with(|shelf| shelf.delete(BIBS, 1004));
                if is_cut {
                    rig.sync_well().await;
                    rig.crash();
                }
                wait_until(midnight.max(rig.now()), &rig).await;
                rig.library.with(|shelf| shelf.delete(BIBS, 1007));
                rig.sync_well().await;
                let eve = day.yesterday().expect("a day");
                let expected = [("1004".to_owned(), Some(eve)), ("1007".to_owned(), Some(day))];
                assert_eq!(deletions(&rig), expected, "{context}");
                for pause in [minutes(20), hours(12), hours(24)] {
                    tokio::time::sleep(pause).await;
                    rig.sync_well().await;
                }
                assert_eq!(deletions(&rig), [], "once: {context}");
                rig.assert_converged();
            }
        }
    }
    assert!(looked_at.len() > 80, "only {} midnights were looked at", looked_at.len());
}
