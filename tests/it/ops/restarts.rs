//! An endpoint that meets a defect is served again, at the same address.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusBuilder;
use sierra_sync::clock::SystemClock;
use sierra_sync::ops::{OpsServer, OpsSettings, Past, StatusSource};
use sierra_sync::sync::engine::Supervisor;
use sierra_sync::sync::observer::Unobserved;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::StoreState;
use tokio_util::sync::CancellationToken;

use super::{Endpoint, Fixed, report};

/// The first look meets a defect.
struct Defective(AtomicUsize);

impl StatusSource for Defective {
    fn status(&self) -> BoxFuture<'_, StatusReport> {
        assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "a defect");
        Box::pin(async { report(StoreState::Ok) })
    }

    fn past(&self) -> BoxFuture<'_, Past> {
        Box::pin(async { Past::default() })
    }
}

/// Whoever asks meanwhile waits for the next start: the address stays bound.
#[tokio::test]
async fn an_endpoint_that_panics_is_served_again() {
    let settings = OpsSettings { listen: "127.0.0.1:0".parse().expect("an address"), token: None };
    let server = OpsServer::bind(&settings, false).await.expect("binds");
    let (address, shutdown) = (server.address(), CancellationToken::new());
    let supervisor = Arc::new(Supervisor::new(Arc::new(Unobserved), Arc::new(SystemClock)));
    let (keeper, over, status) = (supervisor.clone(), shutdown.clone(), Arc::new(Defective(AtomicUsize::new(0))));
    let metrics = PrometheusBuilder::new().build_recorder().handle();
    let actor = Arc::new(Fixed { store: StoreState::Ok, looks: Arc::default(), calls: Arc::default() });
    let served = tokio::spawn(async move {
        let serving = || server.serve(status.clone(), actor.clone(), metrics.clone(), over.clone());
        keeper.run("ops endpoint", &over, serving).await
    });
    while supervisor.restarts().is_empty() {
        tokio::task::yield_now().await;
    }
    let endpoint = Endpoint { address, shutdown, looks: Arc::default(), calls: Arc::default() };
    assert_eq!(endpoint.get("/status", "Host: localhost").await.status, 200);
    assert_eq!(supervisor.restarts()["ops endpoint"].times, 1);
    endpoint.shutdown.cancel();
    served.await.expect("no second defect").expect("it ends well");
}
