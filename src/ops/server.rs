//! The routes, and the task that serves them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::secret::Secret;
use crate::sync::report::StatusReport;

use super::{History, OpsSettings, dashboard, guard, health};

/// How often the dashboard's history takes a sample.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// How many samples the page is given at most.
const SAMPLES_SERVED: usize = 720;

/// Where the status comes from. Cheap enough to ask once a second; never touches Sierra and never moves a position.
pub trait StatusSource: Send + Sync {
    /// The state of everything, now.
    fn status(&self) -> BoxFuture<'_, StatusReport>;
}

/// What the handlers share.
#[derive(Clone)]
pub struct OpsState {
    pub(super) status: Arc<dyn StatusSource>,
    pub(super) history: History,
    pub(super) metrics: PrometheusHandle,
    pub(super) token: Option<Secret>,
}

/// Why the ops endpoint could not start.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// The address cannot be bound.
    #[error("listen on {address}; choose another ops.listen or stop what holds it")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error beneath.
        #[source]
        source: io::Error,
    },
    /// Open to the network without a token.
    #[error("listen on {address}: anything but loopback needs ops.token_file")]
    TokenNeeded {
        /// The address.
        address: SocketAddr,
    },
}

/// A bound endpoint that is not serving yet.
#[derive(Debug)]
pub struct OpsServer {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Secret>,
    history: History,
}

impl OpsServer {
    /// Binds `settings.listen`. With `any_port_if_taken` a free port of the same host is used when it is taken: for
    /// the demo, never for the service.
    ///
    /// # Errors
    /// When the address cannot be bound, or is open to the network without a token.
    pub async fn bind(settings: &OpsSettings, any_port_if_taken: bool) -> Result<Self, OpsError> {
        let address = settings.listen;
        if !address.ip().is_loopback() && settings.token.is_none() {
            return Err(OpsError::TokenNeeded { address });
        }
        let bound = match TcpListener::bind(address).await {
            Err(error) if any_port_if_taken && error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind(SocketAddr::new(address.ip(), 0)).await
            }
            bound => bound,
        };
        let listener = bound.map_err(|source| OpsError::Bind { address, source })?;
        let address = listener.local_addr().map_err(|source| OpsError::Bind { address, source })?;
        Ok(Self { listener, address, token: settings.token.clone(), history: History::default() })
    }

    /// Goes on with the samples of an earlier server.
    #[must_use]
    pub fn with_history(self, history: History) -> Self {
        Self { history, ..self }
    }

    /// The address that was bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, taking a history sample every ten seconds.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        status: Arc<dyn StatusSource>,
        metrics: PrometheusHandle,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let history = self.history;
        let state = OpsState { status, history: history.clone(), metrics, token: self.token };
        let sampled = state.status.clone();
        let stop_sampling = shutdown.clone();
        let sampler = async move {
            let mut ticks = tokio::time::interval(SAMPLE_EVERY);
            while stop_sampling.run_until_cancelled(ticks.tick()).await.is_some() {
                history.record(&sampled.status().await);
            }
        };
        let server = axum::serve(self.listener, router(state)).with_graceful_shutdown(shutdown.cancelled_owned());
        let (served, ()) = tokio::join!(server.into_future(), sampler);
        served
    }
}

fn router(state: OpsState) -> Router {
    Router::new()
        .route("/", get(dashboard::page))
        .route("/dashboard.css", get(dashboard::style))
        .route("/dashboard.js", get(dashboard::script))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/status", get(status))
        .route("/history", get(history))
        .route("/metrics", get(metrics))
        .layer(axum::middleware::from_fn_with_state(state.clone(), guard::admit))
        .layer(axum::middleware::from_fn(guard::protect))
        .with_state(state)
}

/// `GET /status`: the document of `schemas/status.json`.
async fn status(State(state): State<OpsState>) -> Json<StatusReport> {
    Json(state.status.status().await)
}

/// `GET /history`: samples of the last day for the dashboard.
async fn history(State(state): State<OpsState>) -> Response {
    Json(state.history.samples(SAMPLES_SERVED)).into_response()
}

/// `GET /metrics`: the Prometheus text format. Asking for the status brings the gauges up to date.
async fn metrics(State(state): State<OpsState>) -> Response {
    state.status.status().await;
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], state.metrics.render()).into_response()
}
