//! Schedules in a running service: cron ticks over a change of the clocks, a suspended machine, clocks that are stepped.

use jiff::{SignedDuration, Timestamp};
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{CallClass, PageFilter};
use sierra_sync::sync::report::status::{OverallState, StreamState};
use sierra_sync::sync::settings::Cadence;

use crate::support::{Act, NoVitals, Rig, ShelfSource, hours, minutes};

const BIBS: Stream = Stream::Bibs;

/// A loaded stream that is looked at each night at half past two in New York, from so long after 5 January 2026 on.
async fn nightly(later: SignedDuration) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.clock.step(later);
    rig.library.with(|shelf| shelf.stock(BIBS, 30));
    rig.settings(BIBS).cadence = Cadence::Cron { expression: "30 2 * * *".into(), zone: "America/New_York".into() };
    rig.sync_well().await;
    rig.library.asked();
    rig
}

/// When update passes began since this was last asked.
fn passes(rig: &Rig<ShelfSource>) -> Vec<Timestamp> {
    let asked = rig.library.asked();
    let is_update = |filter: &PageFilter| matches!(filter, PageFilter::Updated(_));
    let begun = asked.iter().filter(|(_, query)| {
        is_update(&query.filter) && query.class == CallClass::Incremental && query.after.is_none()
    });
    begun.map(|(at, _)| *at).collect()
}

/// Over the night in March in which half past two does not exist: every night once, and `status` says when.
#[tokio::test(start_paused = true)]
async fn every_night_once_over_a_change_of_the_clocks() {
    let mut rig = nightly(SignedDuration::from_hours(24 * 59)).await;
    rig.settings(BIBS).deleted_interval = hours(12);
    rig.restart().await;
    rig.run_for(hours(24 * 7), None).await.expect("a sound store");
    let begun = passes(&rig);
    assert_eq!(begun.len(), 7, "{begun:?}");
    let zone = jiff::tz::TimeZone::get("America/New_York").expect("a zone");
    for at in begun {
        let local = zone.to_datetime(at);
        let is_at_the_change = (local.hour(), local.minute(), local.day(), local.month()) == (3, 0, 8, 3);
        assert!(is_at_the_change || (local.hour(), local.minute()) == (2, 30) || local.minute() == 31, "{local}");
    }
}

/// A stream that is read each night is fresh until the night that brings nothing, and stale half an hour into that one.
#[tokio::test(start_paused = true)]
async fn a_nightly_stream_is_stale_after_a_night_that_was_missed() {
    let mut rig = nightly(SignedDuration::ZERO).await;
    rig.run_for(hours(24 * 2), None).await.expect("a sound store");
    let mut seen = Vec::new();
    for _ in 0..3 * 24 {
        let told = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
        seen.push((told.streams["bibs"].state, told.state, told.streams["bibs"].lag_seconds.unwrap_or(0) / 3600));
        tokio::time::sleep(hours(1)).await;
    }
    let is_fresh = |seen: &&(StreamState, OverallState, u64)| seen.0 == StreamState::Ok && seen.1 == OverallState::Ok;
    let fresh = seen.iter().take_while(is_fresh).count();
    assert!(seen.iter().take(fresh).any(|(_, _, lag)| *lag >= 23), "a day is explained: {seen:?}");
    let late = (StreamState::Behind, OverallState::Degraded);
    assert!(seen.iter().skip(fresh).all(|(stream, all, _)| (*stream, *all) == late), "{seen:?}");
    assert_eq!(seen.get(fresh).map(|(_, _, lag)| *lag), Some(24), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_was_missed_runs_once_and_none_runs_twice() {
    let mut rig = nightly(SignedDuration::ZERO).await;
    // Nothing ran for three nights: what was missed runs once, at the start.
    tokio::time::sleep(hours(24 * 3)).await;
    rig.run_for(minutes(30), None).await.expect("a sound store");
    assert_eq!(passes(&rig).len(), 1);
    // Suspended over a night: timers stood still, the clock on the wall did not.
    let engine = rig.engine().await.expect("up");
    let cancel = tokio_util::sync::CancellationToken::new();
    let token = cancel.clone();
    let service = tokio::spawn(async move { engine.follow(&token).await });
    tokio::time::sleep(minutes(10)).await;
    let status = rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up");
    let next = status.streams["bibs"].next_run.expect("it is told");
    assert!(next > rig.now() && next < rig.now() + SignedDuration::from_mins(16), "deletions come first: {next}");
    rig.clock.step(SignedDuration::from_hours(24));
    tokio::time::sleep(minutes(2)).await;
    assert_eq!(passes(&rig).len(), 1, "as soon as it woke");
    // Set back by two hours over the tick: it does not run a second time.
    let into_the_night = |now: Timestamp| {
        let zone = jiff::tz::TimeZone::get("America/New_York").expect("a zone");
        let local = zone.to_datetime(now);
        i64::from((26 - i32::from(local.hour())) % 24) * 60 + 45 - i64::from(local.minute())
    };
    let wait = u64::try_from(into_the_night(rig.now())).expect("ahead");
    tokio::time::sleep(minutes(wait)).await;
    assert_eq!(passes(&rig).len(), 1, "the tick");
    rig.clock.step(SignedDuration::from_hours(-2));
    tokio::time::sleep(hours(4)).await;
    assert_eq!(passes(&rig), [], "not twice");
    cancel.cancel();
    service.await.expect("no panic").expect("a sound store");
    rig.assert_sound();
}

/// A pass that takes longer than its interval is not overtaken by the next, nor by the one for deletions.
#[tokio::test(start_paused = true)]
async fn a_stream_never_overlaps_with_itself() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 30));
    rig.settings(BIBS).page_size = 10;
    rig.settings(BIBS).cadence = Cadence::Every(minutes(1));
    rig.settings(BIBS).deleted_interval = minutes(2);
    rig.sync_well().await;
    rig.library.asked();
    rig.library.script(|calls, _, shelf| {
        shelf.edit(BIBS, 1001 + calls % 30 * 3);
        Act::Slowly(minutes(4))
    });
    rig.run_for(hours(6), None).await.expect("a sound store");
    let asked = rig.library.asked();
    let begun: Vec<Timestamp> = asked.iter().map(|(at, _)| *at).collect();
    let is_early = |pair: &&[Timestamp]| pair[1].duration_since(pair[0]) < SignedDuration::from_mins(4);
    assert_eq!(begun.windows(2).find(is_early), None, "a call while another was out");
    let kinds = asked.iter().filter(|(_, query)| matches!(query.filter, PageFilter::Deleted { .. })).count();
    assert!(begun.len() > 60 && kinds > 10, "{} calls, {kinds} for deletions", begun.len());
}
