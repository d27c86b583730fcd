//! The number of series at `/metrics`, whatever comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusBuilder;
use sierra_sync::marc::LossKind;
use sierra_sync::ops::alert::{ActiveAlerts, Cause};
use sierra_sync::ops::{OpsServer, OpsSettings, Past, StatusSource};
use sierra_sync::record::Stream;
use sierra_sync::resilience::Endpoint as SierraEndpoint;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{BreakerState, SinkState, SinkStatus, StoreState, TaskRestarts};
use sierra_sync::telemetry::metric::{self, RecordResult, RequestOutcome, RetryClass};
use tokio_util::sync::CancellationToken;

use super::alerts::fresh;
use super::{Endpoint, Fixed, report};

/// As many as a configuration may have (tests/it/config/combinations.rs).
const SINKS: usize = 32;

/// What a service shows whose every sink, stream and endpoint is in trouble. Names of sinks are those of `generation`.
fn worst(generation: usize) -> (StatusReport, Vec<(Cause, String)>) {
    let mut report = report(StoreState::Failed);
    report.breaker.state = BreakerState::Open;
    let now = report.now;
    for stream in Stream::ALL {
        report.streams.insert(stream.name().to_owned(), fresh(now));
    }
    for number in 0..SINKS {
        // The longest name that the configuration takes; and one that is also that of the API key's breaker.
        let name = match number {
            0 => "sierra".to_owned(),
            _ => format!("{:x<64}", format!("sink-{generation}-{number}-")),
        };
        let sink = SinkStatus {
            state: SinkState::Open,
            pending: u64::MAX,
            oldest_age_seconds: Some(u64::MAX),
            since: None,
            breaker: BreakerState::HalfOpen,
            published: BTreeMap::new(),
            gaps: Vec::new(),
            paused: None,
            error: None,
        };
        report.sinks.insert(name, sink);
    }
    let streams: Vec<String> = report.streams.keys().cloned().collect();
    let sinks: Vec<String> = report.sinks.keys().cloned().collect();
    let tasks = ["stream", "load", "sweeps"].into_iter();
    let tasks = tasks.flat_map(|task| streams.iter().map(move |stream| format!("{task} {stream}")));
    let tasks = tasks.chain(sinks.iter().map(|sink| format!("sink {sink}")));
    let tasks = tasks.chain(["expiry", "ops endpoint", "alerts", "control socket"].map(str::to_owned));
    let tasks: Vec<String> = tasks.collect();
    report.restarted = tasks.iter().map(|task| (task.clone(), TaskRestarts { times: u32::MAX, last: now })).collect();
    let endpoints: Vec<String> = SierraEndpoint::ALL.iter().map(|endpoint| endpoint.name().to_owned()).collect();
    // Each cause about everything that it can be about.
    let subjects = |cause| match cause {
        Cause::StoreFailed | Cause::NoRoom | Cause::CredentialRefused | Cause::BreakerOpen | Cause::QueueFilling => {
            vec![String::new()]
        }
        Cause::EndpointSuspended => endpoints.clone(),
        Cause::StreamStopped
        | Cause::Gap
        | Cause::QuotaStarved
        | Cause::StreamStale
        | Cause::QuarantineGrowth
        | Cause::Rebuild => streams.clone(),
        Cause::SinkDetached | Cause::SinkDown => sinks.clone(),
        Cause::TaskRestarted => tasks.clone(),
    };
    let alerts = Cause::ALL.into_iter().flat_map(|cause| subjects(cause).into_iter().map(move |of| (cause, of)));
    (report, alerts.collect())
}

/// Everything that can be counted was.
fn count_everything() {
    for endpoint in SierraEndpoint::ALL {
        RequestOutcome::ALL.into_iter().for_each(|outcome| metric::request(endpoint.name(), outcome));
    }
    for class in [RetryClass::Transient, RetryClass::Throttled, RetryClass::Reauthenticated] {
        metric::retry(class);
    }
    metric::quota_waited(Duration::from_secs(1));
    for stream in Stream::ALL {
        for result in [
            RecordResult::Changed,
            RecordResult::Unchanged,
            RecordResult::Stale,
            RecordResult::Deleted,
            RecordResult::DeletedUnseen,
            RecordResult::Quarantined,
        ] {
            metric::records(stream.name(), result, 1);
        }
    }
    for kind in LossKind::ALL {
        metric::marc_losses(kind.name(), 1);
    }
}

/// Shows another generation of sinks at each look.
struct Renamed(std::sync::atomic::AtomicUsize);

impl StatusSource for Renamed {
    fn status(&self) -> BoxFuture<'_, StatusReport> {
        let generation = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Box::pin(async move { worst(generation).0 })
    }

    fn past(&self) -> BoxFuture<'_, Past> {
        Box::pin(async { Past::default() })
    }
}

/// The most that can be: every label with every value that it can have, after the sinks were renamed again and again.
#[tokio::test]
async fn there_are_never_more_than_five_hundred_series() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        metric::describe();
        count_everything();
    });
    let settings = OpsSettings { listen: "127.0.0.1:0".parse().expect("an address"), token: None };
    let alerts = ActiveAlerts::default();
    let server = OpsServer::bind(&settings, false).await.expect("binds").with_alerts(alerts.clone());
    let (address, shutdown) = (server.address(), CancellationToken::new());
    let endpoint = Endpoint { address, shutdown: shutdown.clone(), looks: Arc::default(), calls: Arc::default() };
    let actor = Arc::new(Fixed { store: StoreState::Ok, looks: Arc::default(), calls: Arc::default() });
    let (handle, status) = (recorder.handle(), Arc::new(Renamed(0.into())));
    tokio::spawn(async move { server.serve(status, actor, handle, shutdown).await });
    let mut generations = BTreeSet::new();
    while generations.len() < 3 {
        alerts.set(worst(generations.len()).1);
        let text = endpoint.get("/metrics", "Host: localhost").await.body;
        let series: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert!(series.len() > 400, "the attack reaches everything: {}", series.len());
        assert!(series.len() <= 500, "{} series", series.len());
        let distinct: BTreeSet<&str> = series.iter().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        assert_eq!(distinct.len(), series.len(), "no series twice");
        let breakers = series.iter().filter(|line| line.starts_with("sierra_sync_breaker_state")).count();
        assert_eq!(breakers, 3 * (SINKS + 1), "none hides another: {text}");
        let is_of_key = |line: &&&str| line.contains("breaker=\"sierra\",state=\"open\"");
        assert!(series.iter().find(is_of_key).is_some_and(|line| line.ends_with(" 1")), "{text}");
        let is_renamed = |line: &&&str| line.starts_with("sierra_sync_outbox_entries{sink=\"sink-");
        let waiting = series.iter().find(is_renamed).expect("there are sinks");
        generations.insert((*waiting).to_owned());
        // A status is as good as new for a quarter of a second.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
