//! A week in which nothing happens that a person must know.

use sierra_sync::ops::alert::{AlertBook, findings};
use sierra_sync::record::Stream;
use sierra_sync::sync::settings::Cadence;
use tokio_util::sync::CancellationToken;

use super::{STALE_AFTER, short};
use crate::support::{NoVitals, Sim, minutes};

/// A library that is edited by day and by night, a token that expires every hour, and a service that follows: nobody is
/// called, from the first load on.
#[tokio::test(start_paused = true)]
async fn a_quiet_week_calls_nobody() {
    let mut sim = Sim::seeded(7).library(60).streams(&[Stream::Bibs]).start().await;
    // As seldom as streams may be looked at without being stale: a week of passes then takes seconds.
    sim.forget_engine();
    let settings = sim.settings(Stream::Bibs);
    settings.cadence = Cadence::Every(minutes(25));
    settings.deleted_interval = minutes(60);
    let engine = sim.engine().await.expect("a sound store");
    let cancel = CancellationToken::new();
    let (follower, stop) = (engine.clone(), cancel.clone());
    let service = tokio::spawn(async move { follower.follow(&stop).await });
    let mut book = AlertBook::default();
    for _ in 0..7 * 24 * 4 {
        tokio::time::sleep(minutes(15)).await;
        let report = engine.status(&NoVitals.inputs()).await.expect("a sound store");
        let told = book.look(&report, findings(&report, STALE_AFTER), true);
        assert_eq!(told.iter().map(short).collect::<Vec<_>>(), Vec::<String>::new(), "{report:#?}");
    }
    cancel.cancel();
    service.await.expect("no defect").expect("a sound store");
}
