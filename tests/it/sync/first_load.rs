//! What becomes of a first load, and what `status` says of it: under way, waiting, or failing.

use std::time::Duration;

use sierra_sync::record::Stream;
use sierra_sync::sync::SyncOptions;
use sierra_sync::sync::engine::StatusInputs;
use sierra_sync::sync::ports::SourceErrorKind;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{OverallState, StreamState};
use tokio_util::sync::CancellationToken;

use crate::support::{Act, NoVitals, Rig, ShelfSource, minutes};

const BIBS: Stream = Stream::Bibs;

fn unloaded() -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.settings(BIBS).page_size = 20;
    rig.library.with(|shelf| shelf.stock(BIBS, 400));
    rig
}

async fn status(rig: &mut Rig<ShelfSource>) -> StatusReport {
    rig.engine().await.expect("up").status(&NoVitals.inputs()).await.expect("up")
}

fn is_loading(status: &StatusReport) -> bool {
    (status.state, status.streams["bibs"].state) == (OverallState::Ok, StreamState::Loading)
}

fn says(status: &StatusReport, words: &str) -> bool {
    let state = status.streams["bibs"].state;
    status.state == OverallState::Degraded && state == StreamState::Behind && status.message.contains(words)
}

/// Sierra gives no sign of life, or no page: said by the same process, by the next one, and no more once a pass gets on.
#[tokio::test(start_paused = true)]
async fn a_first_load_whose_passes_fail_is_told_with_what_fails() {
    for pages_fail in [false, true] {
        let mut rig = unloaded();
        if pages_fail {
            rig.library.script(|_, _, _| Act::Fail(SourceErrorKind::Exhausted));
        } else {
            rig.library.script_pulse(|_| Some(SourceErrorKind::Exhausted));
        }
        for _ in 0..2 {
            rig.sync().await;
            let told = status(&mut rig).await;
            assert!(
                says(&told, "The first load of bibs fails: ") && told.message.contains("failed as planned"),
                "{told:?}"
            );
            rig.restart().await;
            let told = status(&mut rig).await;
            assert!(says(&told, "The first load of bibs fails: "), "{pages_fail}: {told:?}");
            tokio::time::sleep(minutes(10)).await;
        }
        rig.library.behave();
        rig.sync_well().await;
        assert_eq!(status(&mut rig).await.state, OverallState::Ok);
    }
}

/// A load of hours is no failure as long as pages come, whatever failed before; one without pages is, in the end.
#[tokio::test(start_paused = true)]
async fn a_first_load_that_gets_on_is_well_however_long_it_takes() {
    let mut rig = unloaded();
    rig.library.script_pulse(|_| Some(SourceErrorKind::Exhausted));
    rig.sync().await;
    rig.library.behave();
    rig.library.script(|_, _, _| Act::Slowly(minutes(10)));
    let engine = rig.engine().await.expect("up");
    let (options, cancel) = (SyncOptions::default(), CancellationToken::new());
    let looking = async {
        for _ in 0..5 {
            tokio::time::sleep(minutes(25)).await;
            let told = engine.status(&NoVitals.inputs()).await.expect("up");
            assert!(is_loading(&told), "{told:?}");
        }
        cancel.cancel();
    };
    let (summary, ()) = tokio::join!(engine.sync_once(&options, &cancel), looking);
    let error = summary.expect("a sound store").streams["bibs"].error.clone();
    assert_eq!(error.map(|error| error.kind).as_deref(), Some("interrupted"));
    // Whoever interrupted it knows; half an hour later nobody went on.
    assert!(is_loading(&status(&mut rig).await));
    tokio::time::sleep(minutes(31)).await;
    let told = status(&mut rig).await;
    assert!(
        says(&told, "The first load of bibs has not got on since") && told.message.contains("`sierra-sync sync`"),
        "{told:?}"
    );
}

/// How far it is is shown by the number of the last record, as long as it lasts; of patrons no number is.
#[tokio::test(start_paused = true)]
async fn a_first_load_shows_how_far_it_has_read_but_not_of_patrons() {
    for stream in [BIBS, Stream::Patrons] {
        let mut rig = Rig::on_shelf(1, &[stream]);
        rig.settings(stream).page_size = 20;
        rig.library.with(|shelf| shelf.stock(stream, 400));
        rig.library.script(|_, _, _| Act::Slowly(minutes(1)));
        let engine = rig.engine().await.expect("up");
        let ask = async || engine.status(&NoVitals.inputs()).await.expect("up").streams[stream.name()].read_to.clone();
        let (options, cancel) = (SyncOptions::default(), CancellationToken::new());
        let looking = async {
            let mut seen = Vec::new();
            for _ in 0..4 {
                tokio::time::sleep(minutes(3)).await;
                seen.push(ask().await.map(|number| number.parse::<u64>().expect("a number")));
            }
            seen
        };
        let (summary, seen) = tokio::join!(engine.sync_once(&options, &cancel), looking);
        assert_eq!(summary.expect("a sound store").exit, 0);
        let is_public = stream != Stream::Patrons;
        assert!(seen.iter().all(|number| number.is_some() == is_public), "{stream}: {seen:?}");
        assert!(!is_public || seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
        assert_eq!(ask().await, None, "{stream}: nothing is under way any more");
    }
}

/// A service that has captured nothing since it started is late once everybody else would be.
#[tokio::test(start_paused = true)]
async fn a_service_that_gets_nothing_is_told_from_stale_after_on() {
    let mut rig = unloaded();
    let engine = rig.engine().await.expect("up");
    let started = Some(rig.now());
    let ask = async || engine.status(&StatusInputs { started, ..NoVitals.inputs() }).await.expect("up");
    tokio::time::sleep(minutes(29)).await;
    assert!(is_loading(&ask().await));
    tokio::time::sleep(minutes(2)).await;
    assert!(says(&ask().await, "run `sierra-sync check`"));
}

/// Waiting for quota looks healthy, also for a stream that has nothing yet.
#[tokio::test(start_paused = true)]
async fn a_first_load_that_waits_for_quota_is_well() {
    let mut rig = unloaded();
    let resume_at = rig.now() + Duration::from_secs(3 * 3600);
    rig.library.script_pulse(move |_| Some(SourceErrorKind::WaitingQuota { resume_at }));
    rig.sync().await;
    tokio::time::sleep(minutes(40)).await;
    let told = status(&mut rig).await;
    assert_eq!((told.state, told.streams["bibs"].state), (OverallState::Ok, StreamState::WaitingQuota), "{told:?}");
}

/// A18: quota that is there sooner than was said is used at once, by the service and by a run that sits the wait out;
/// what rests after a failure goes on resting.
#[tokio::test(start_paused = true)]
async fn what_waits_for_quota_goes_on_when_the_wait_is_lifted() {
    for is_service in [true, false] {
        for has_begun in [false, true] {
            let mut rig = unloaded();
            let resume_at = rig.now() + Duration::from_secs(6 * 3600);
            let waits = SourceErrorKind::WaitingQuota { resume_at };
            if has_begun {
                rig.library.script(move |number, _, _| if number < 4 { Act::Serve } else { Act::Fail(waits) });
            } else {
                rig.library.script_pulse(move |_| Some(waits));
            }
            let engine = rig.engine().await.expect("up");
            let cancel = CancellationToken::new();
            let options = SyncOptions { wait_for_quota: true, ..SyncOptions::default() };
            let running = async {
                if is_service {
                    engine.follow(&cancel).await.expect("a sound store");
                } else {
                    engine.sync_once(&options, &cancel).await.expect("a sound store");
                }
            };
            let recovering = async {
                tokio::time::sleep(Duration::from_secs(30)).await;
                let told = engine.status(&NoVitals.inputs()).await.expect("up");
                assert_eq!(told.streams["bibs"].watermark, None, "{told:?}");
                rig.library.behave();
                engine.lift_quota_waits();
                tokio::time::sleep(minutes(2)).await;
                cancel.cancel();
            };
            tokio::join!(running, recovering);
            let told = status(&mut rig).await;
            assert!(told.streams["bibs"].watermark.is_some(), "service {is_service}, begun {has_begun}: {told:?}");
        }
    }
}
