//! Clocks that lag, step and lie.

use std::time::Duration;

use jiff::SignedDuration;
use sierra_sync::record::Stream;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{PageFilter, SourceErrorKind};
use sierra_sync::sync::report::summary::StreamOutcome;

use crate::support::{NoVitals, Rig, ShelfSource, minutes};

const BIBS: Stream = Stream::Bibs;

async fn loaded() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 20));
    rig.sync_well().await;
    rig
}

fn steps(rig: &Rig<ShelfSource>) -> Vec<SignedDuration> {
    let step = |event: Event| match event {
        Event::ClockStepped { step } => Some(step),
        _ => None,
    };
    rig.watch.events().into_iter().filter_map(step).collect()
}

/// BR-072: changes that become visible within `settle` after their stamp are never missed, even without an overlap.
#[tokio::test(start_paused = true)]
async fn commits_that_show_within_settle_are_never_missed() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 60);
        shelf.commit_lag = SignedDuration::from_secs(150);
    });
    rig.settings(BIBS).settle = Duration::from_secs(300);
    rig.settings(BIBS).overlap = Duration::ZERO;
    rig.sync_well().await;
    rig.run_for(minutes(240), Some(Duration::from_secs(50))).await.expect("a sound store");
    tokio::time::sleep(minutes(10)).await;
    rig.sync_well().await;
    rig.assert_converged();
}

/// BR-072, the other way round: without settle and overlap such a change is lost to the update pass. If this ever
/// converges, the test above proves nothing.
#[tokio::test(start_paused = true)]
async fn without_settle_and_overlap_late_commits_are_lost() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 5));
    rig.settings(BIBS).settle = Duration::ZERO;
    rig.settings(BIBS).overlap = Duration::ZERO;
    rig.sync_well().await;
    tokio::time::sleep(minutes(5)).await;
    rig.library.with(|shelf| {
        shelf.commit_lag = SignedDuration::from_secs(150);
        shelf.edit(BIBS, 1001);
        // A window that brings nothing would be read once more.
        shelf.commit_lag = SignedDuration::ZERO;
        shelf.edit(BIBS, 1004);
    });
    tokio::time::sleep(Duration::from_secs(30)).await;
    rig.sync_well().await;
    tokio::time::sleep(minutes(5)).await;
    rig.sync_well().await;
    assert_ne!(
        rig.sink("archive").holds(BIBS)["1001"].title,
        rig.library.with(|shelf| shelf.visible(BIBS).next().expect("a bib").1.title.clone())
    );
}

/// BR-132, BR-050: our own clock may be hours off; windows go by Sierra's.
#[tokio::test(start_paused = true)]
async fn our_own_clock_plays_no_part() {
    for offset in [-9_000, 90, 9_000] {
        let mut rig = Rig::on_shelf(1, &[BIBS]);
        rig.library.with(|shelf| {
            shelf.server_offset = SignedDuration::from_secs(offset);
            shelf.stock(BIBS, 40);
        });
        rig.sync_well().await;
        for _ in 0..5 {
            rig.idle_for(minutes(20), 10).await;
            rig.sync_well().await;
        }
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// CUR-1: a step of Sierra's clock is told, nothing is rewound, and nothing stamped by either clock is missed.
#[tokio::test(start_paused = true)]
async fn a_step_of_sierras_clock_loses_nothing() {
    for step in [-7_200, -3_600, -90, 90, 3_600] {
        let mut rig = Rig::on_shelf(1, &[BIBS]);
        rig.settings(BIBS).overlap = Duration::ZERO;
        rig.library.with(|shelf| shelf.stock(BIBS, 40));
        rig.sync_well().await;
        rig.run_for(minutes(60), Some(minutes(2))).await.expect("a sound store");
        rig.watch.events();
        rig.library.with(|shelf| shelf.server_offset = SignedDuration::from_secs(step));
        rig.run_for(minutes(240), Some(minutes(2))).await.expect("a sound store");
        let told = steps(&rig);
        assert_eq!(told.len(), 1, "{step}: told once, and not again when the new time goes on: {told:?}");
        assert!((told[0].as_secs() - step).abs() <= 2, "{step}: {told:?}");
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
        rig.assert_converged();
    }
}

/// While Sierra's clock stands behind the newest window, what is stamped meanwhile is not left for later.
#[tokio::test(start_paused = true)]
async fn edits_after_a_step_back_arrive_without_waiting_for_the_old_time() {
    let mut rig = loaded().await;
    tokio::time::sleep(minutes(60)).await;
    rig.sync_well().await;
    rig.library.with(|shelf| shelf.server_offset = SignedDuration::from_hours(-1));
    tokio::time::sleep(minutes(5)).await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    tokio::time::sleep(minutes(2)).await;
    let first = rig.sync_well().await;
    assert_eq!(first.streams["bibs"].changed, 1);
    // The reach back outlives a restart, as long as Sierra has not caught up.
    rig.restart().await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1004));
    tokio::time::sleep(minutes(2)).await;
    let second = rig.sync_well().await;
    assert_eq!(second.streams["bibs"].changed, 1);
    rig.assert_converged();
    tokio::time::sleep(minutes(70)).await;
    rig.sync_well().await;
    rig.library.asked();
    tokio::time::sleep(minutes(5)).await;
    rig.sync_well().await;
    let longest = rig.library.asked().into_iter().filter_map(|(_, query)| match query.filter {
        PageFilter::Updated(window) => Some(window.length()),
        _ => None,
    });
    assert!(longest.max().expect("a window") <= SignedDuration::from_mins(16), "and is then forgotten");
}

/// What was stamped while Sierra's clock was an hour ahead is not newer than what is stamped after it was put back, and a
/// restart does not forget that.
#[tokio::test(start_paused = true)]
async fn edits_after_a_step_back_are_newer_than_what_was_stamped_ahead() {
    for restarts in [false, true] {
        let mut rig = loaded().await;
        rig.library.with(|shelf| shelf.server_offset = SignedDuration::from_hours(1));
        tokio::time::sleep(minutes(5)).await;
        rig.sync_well().await;
        for id in [1001, 1004] {
            rig.library.with(|shelf| shelf.edit(BIBS, id));
        }
        tokio::time::sleep(minutes(2)).await;
        assert_eq!(rig.sync_well().await.streams["bibs"].changed, 2);
        rig.library.with(|shelf| shelf.server_offset = SignedDuration::ZERO);
        tokio::time::sleep(minutes(2)).await;
        rig.library.with(|shelf| shelf.edit(BIBS, 1001));
        tokio::time::sleep(minutes(2)).await;
        assert_eq!(rig.sync_well().await.streams["bibs"].changed, 1, "restarts: {restarts}");
        rig.assert_converged();
        if restarts {
            rig.restart().await;
        }
        // Read when Sierra's clock shows again what it showed then.
        tokio::time::sleep(minutes(50)).await;
        rig.library.with(|shelf| shelf.edit(BIBS, 1004));
        tokio::time::sleep(minutes(30)).await;
        assert_eq!(rig.sync_well().await.streams["bibs"].changed, 1, "restarts: {restarts}");
        rig.assert_converged();
    }
}

/// An answer without `Date`: our own clock, less five minutes.
#[tokio::test(start_paused = true)]
async fn without_a_date_the_run_ends_five_minutes_earlier() {
    let mut rig = loaded().await;
    tokio::time::sleep(minutes(30)).await;
    rig.library.omit_date(true);
    let summary = rig.sync_well().await;
    let behind = rig.now().duration_since(summary.streams["bibs"].watermark.expect("loaded"));
    assert!(behind >= SignedDuration::from_secs(330) && behind < SignedDuration::from_secs(340), "{behind}");
}

/// No answer at all: no window is opened, the stream stays behind, and what waits is still delivered.
#[tokio::test(start_paused = true)]
async fn without_a_sign_of_life_no_window_is_opened() {
    let mut rig = loaded().await;
    rig.library.script_pulse(|_| Some(SourceErrorKind::Exhausted));
    tokio::time::sleep(minutes(30)).await;
    rig.library.asked();
    let summary = rig.sync().await;
    assert_eq!((summary.exit, summary.streams["bibs"].state), (69, StreamOutcome::Failed));
    assert_eq!(rig.library.asked().len(), 0);
    rig.library.behave();
    rig.sync_well().await;
}

/// Our clock is set back, or Sierra's was ahead: a lag of 0 would say that all is fresh.
#[tokio::test(start_paused = true)]
async fn a_watermark_that_is_ahead_of_our_clock_is_told_as_such() {
    let mut rig = loaded().await;
    let status = async |rig: &mut Rig<ShelfSource>| {
        let engine = rig.engine().await.expect("up");
        engine.status(&NoVitals.inputs()).await.expect("a sound store")
    };
    assert_eq!(status(&mut rig).await.streams["bibs"].ahead_seconds, None);
    rig.clock.step(SignedDuration::from_hours(-2));
    let report = status(&mut rig).await;
    let bibs = &report.streams["bibs"];
    assert_eq!(bibs.lag_seconds, Some(0), "the contract's number is never negative");
    assert!(bibs.ahead_seconds.is_some_and(|ahead| ahead > 6_000), "{bibs:?}");
    assert!(report.message.contains("ahead of this machine's clock"), "{}", report.message);
}
