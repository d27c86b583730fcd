//! The routes, and the task that serves them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::secret::Secret;
use crate::sync::report::StatusReport;

use super::action::{self, Actor};
use super::alert::ActiveAlerts;
use super::past::{self, Past};
use super::rate::Rates;
use super::recent::Recent;
use super::{History, OpsSettings, dashboard, doors, exposition, guard, health};

/// How often the dashboard's history looks: often enough to see a short outage.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where the status comes from. Cheap enough to ask once a second; never touches Sierra and never moves a position.
pub trait StatusSource: Send + Sync {
    /// The state of everything, now.
    fn status(&self) -> BoxFuture<'_, StatusReport>;

    /// What happened lately.
    fn past(&self) -> BoxFuture<'_, Past>;
}

/// What the handlers share.
#[derive(Clone)]
pub struct OpsState {
    pub(super) recent: Arc<Recent>,
    pub(super) actor: Arc<dyn Actor>,
    pub(super) rates: Arc<Rates>,
    pub(super) history: History,
    pub(super) metrics: PrometheusHandle,
    pub(super) alerts: ActiveAlerts,
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
    alerts: ActiveAlerts,
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
        Ok(Self {
            listener,
            address,
            token: settings.token.clone(),
            history: History::default(),
            alerts: ActiveAlerts::default(),
        })
    }

    /// Goes on with the samples of an earlier server.
    #[must_use]
    pub fn with_history(self, history: History) -> Self {
        Self { history, ..self }
    }

    /// Shows `alerts` in the metrics.
    #[must_use]
    pub fn with_alerts(self, alerts: ActiveAlerts) -> Self {
        Self { alerts, ..self }
    }

    /// The address that was bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, and looks every two seconds for the history. May be called again after a panic: the
    /// address stays bound meanwhile.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        &self,
        status: Arc<dyn StatusSource>,
        actor: Arc<dyn Actor>,
        metrics: PrometheusHandle,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let history = self.history.clone();
        let state = OpsState {
            recent: Arc::new(Recent::of(status)),
            actor,
            rates: Arc::new(Rates::new(Instant::now())),
            history: history.clone(),
            metrics,
            alerts: self.alerts.clone(),
            token: self.token.clone(),
        };
        let sampling = sample(history, Arc::clone(&state.recent), shutdown.clone());
        let (served, ()) = tokio::join!(doors::serve(&self.listener, router(state), shutdown), sampling);
        served
    }
}

/// Looks again and again until `shutdown`; what was seen outlives it.
async fn sample(history: History, recent: Arc<Recent>, shutdown: CancellationToken) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.run_until_cancelled(looks.tick()).await.is_some() {
        history.record(&*recent.status().await);
        save(&history).await;
    }
    history.pause();
    save(&history).await;
}

async fn save(history: &History) {
    let history = history.clone();
    // What it cannot write it says and does without.
    drop(tokio::task::spawn_blocking(move || history.save()).await);
}

fn router(state: OpsState) -> Router {
    let files = dashboard::paths().fold(Router::new(), |router, path| router.route(path, get(dashboard::file)));
    files
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/status", get(status))
        .route("/history", get(past::history))
        .route("/actions", get(action::list))
        .route("/actions/{name}", post(action::act))
        .route("/metrics", get(metrics))
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_so)
        .layer(axum::middleware::from_fn_with_state(state.clone(), guard::admit))
        .layer(axum::middleware::from_fn(guard::protect))
        .with_state(state)
}

/// `GET /status`: the document of `schemas/status.json`.
async fn status(State(state): State<OpsState>) -> Response {
    Json(state.recent.status().await.as_ref()).into_response()
}

async fn nothing_here() -> Response {
    action::answer(StatusCode::NOT_FOUND, "there is nothing here; the dashboard is at /")
}

async fn not_so() -> Response {
    action::answer(StatusCode::METHOD_NOT_ALLOWED, "actions are asked for by POST, everything else by GET")
}

/// `GET /metrics`: the Prometheus text format.
async fn metrics(State(state): State<OpsState>) -> Response {
    let report = state.recent.status().await;
    let text = exposition::exposition(&state.metrics, &report, &state.alerts);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}
