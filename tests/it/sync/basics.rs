//! Loading, following, and doing nothing when there is nothing to do.

use sierra_sync::record::Stream;
use sierra_sync::sync::report::summary::StreamOutcome;

use crate::support::{Rig, minutes};

const ALL: [Stream; 3] = Stream::ALL;

#[tokio::test(start_paused = true)]
async fn a_first_sync_loads_everything_and_a_second_emits_nothing() {
    let mut rig = Rig::on_shelf(1, &ALL);
    rig.library.with(|shelf| ALL.iter().for_each(|stream| shelf.stock(*stream, 350)));
    let first = rig.sync_well().await;
    rig.assert_converged();
    let bibs = &first.streams["bibs"];
    assert_eq!((bibs.state, bibs.changed, bibs.fetched, bibs.pages), (StreamOutcome::CaughtUp, 350, 350, 4));
    assert_eq!(first.sinks["archive"].delivered, 1050);
    tokio::time::sleep(minutes(5)).await;
    let second = rig.sync_well().await;
    assert_eq!((second.streams["bibs"].fetched, second.sinks["archive"].delivered), (0, 0));
}
