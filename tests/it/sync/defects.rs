//! A defect in one task: it is started again, counted and seen, and nobody else notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use sierra_sync::record::Stream;
use sierra_sync::sync::Source;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{Answer, PageQuery, Pulse, SourceError};

use crate::support::{Bends, NoVitals, Sim, hours, minutes};

/// A source with a defect: pages of bibs make it panic, so many times.
struct Defective {
    beneath: Arc<dyn Source>,
    left: AtomicU32,
}

impl Source for Defective {
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
        self.beneath.pulse()
    }

    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
        let take = |left: u32| left.checked_sub(1);
        let is_hit = query.stream == Stream::Bibs
            && query.after.is_some()
            && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
        assert!(!is_hit, "a defect");
        self.beneath.page(query)
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_a_defect_is_started_again_and_the_other_does_not_notice() {
    let defective = |beneath| -> Arc<dyn Source> { Arc::new(Defective { beneath, left: AtomicU32::new(5) }) };
    let plan = Sim::seeded(11).library(200).page_size(20).streams(&[Stream::Bibs, Stream::Items]);
    let mut sim = plan.bent(Bends::of_source(defective)).start().await;
    sim.run_for(minutes(30)).await;
    let engine = sim.engine().await.expect("a sound store");
    let report = engine.status(&NoVitals.inputs()).await.expect("a sound store");
    let restarted: Vec<_> = report.restarted.iter().map(|(task, restarts)| (task.as_str(), restarts.times)).collect();
    assert_eq!(restarted, [("stream bibs", 5)]);
    let panics = |event: &Event| matches!(event, Event::TaskPanicked { task, .. } if task == "stream bibs");
    assert_eq!(sim.watch.events().iter().filter(|event| panics(event)).count(), 5, "each is told of");
    let lags: Vec<Option<u64>> = report.streams.values().map(|stream| stream.lag_seconds).collect();
    assert!(lags.iter().all(|lag| lag.is_some_and(|lag| lag < hours(1).as_secs())), "both are loaded: {lags:?}");
    sim.assert_converged().await;
}
