//! The ops endpoint over real loopback sockets.

mod control;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusBuilder;
use sierra_sync::ops::{OpsError, OpsServer, OpsSettings, StatusSource};
use sierra_sync::secret::Secret;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{
    BreakerState, BreakerStatus, OutboxStatus, OverallState, QuotaState, QuotaStatus, StoreState, StoreStatus,
    TokenState, TokenStatus,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

struct Fixed(StoreState);

impl StatusSource for Fixed {
    fn status(&self) -> BoxFuture<'_, StatusReport> {
        Box::pin(async { report(self.0) })
    }
}

#[tokio::test]
async fn liveness_never_looks_at_the_store_and_readiness_does() {
    let endpoint = serve(None, StoreState::Failed).await;
    assert_eq!(endpoint.get("/livez", "Host: localhost").await.status, 200);
    let ready = endpoint.get("/readyz", "Host: localhost").await;
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("restart the service"), "{}", ready.body);
}

#[tokio::test]
async fn status_is_the_document_and_every_answer_carries_the_security_headers() {
    let endpoint = serve(None, StoreState::Ok).await;
    let answer = endpoint.get("/status", "Host: 127.0.0.1").await;
    let document: StatusReport = serde_json::from_str(&answer.body).expect("a status document");
    assert_eq!(document, report(StoreState::Ok));
    for path in ["/", "/dashboard.js", "/dashboard.css", "/status", "/history", "/metrics", "/nothing-here"] {
        let answer = endpoint.get(path, "Host: localhost:9470").await;
        for header in
            ["content-security-policy: default-src 'none'", "x-frame-options: DENY", "cache-control: no-store"]
        {
            assert!(answer.head.contains(header), "{path} lacks {header}: {}", answer.head);
        }
    }
}

#[tokio::test]
async fn a_foreign_host_name_is_turned_away_without_a_token() {
    let endpoint = serve(None, StoreState::Ok).await;
    assert_eq!(endpoint.get("/status", "Host: rebound.example").await.status, 421);
    assert_eq!(endpoint.get("/status", "Host: [::1]:9470").await.status, 200);
    assert_eq!(endpoint.get("/status", "X-Nothing: 1").await.status, 421, "no name is no loopback name");
}

#[tokio::test]
async fn with_a_token_only_its_bearer_sees_the_status() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    assert_eq!(endpoint.get("/status", "Host: localhost").await.status, 401);
    assert_eq!(endpoint.get("/status", "Host: localhost\r\nAuthorization: Bearer wrong").await.status, 401);
    assert_eq!(endpoint.get("/status", "Host: ops.example\r\nAuthorization: Bearer correct-horse").await.status, 200);
    assert_eq!(endpoint.get("/livez", "Host: ops.example").await.status, 200);
}

#[tokio::test]
async fn a_taken_port_is_an_error_for_the_service_and_another_port_for_the_demo() {
    let endpoint = serve(None, StoreState::Ok).await;
    let settings = OpsSettings { listen: endpoint.address, token: None };
    let refused = OpsServer::bind(&settings, false).await.expect_err("the port is taken");
    assert!(refused.to_string().contains("choose another ops.listen"), "{refused}");
    let moved = OpsServer::bind(&settings, true).await.expect("a free port");
    assert_ne!(moved.address(), endpoint.address);
}

#[tokio::test]
async fn an_open_address_without_a_token_is_refused_before_it_is_bound() {
    let settings = OpsSettings { listen: "0.0.0.0:0".parse().expect("an address"), token: None };
    assert!(matches!(OpsServer::bind(&settings, true).await, Err(OpsError::TokenNeeded { .. })));
}

struct Endpoint {
    address: SocketAddr,
    shutdown: CancellationToken,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

async fn serve(token: Option<&str>, store: StoreState) -> Endpoint {
    let settings = OpsSettings {
        listen: "127.0.0.1:0".parse().expect("an address"),
        token: token.map(|token| Secret::new(token.to_owned())),
    };
    let server = OpsServer::bind(&settings, false).await.expect("binds");
    let (address, shutdown) = (server.address(), CancellationToken::new());
    let metrics = PrometheusBuilder::new().build_recorder().handle();
    tokio::spawn(server.serve(Arc::new(Fixed(store)), metrics, shutdown.clone()));
    Endpoint { address, shutdown }
}

impl Endpoint {
    async fn get(&self, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("connects");
        let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sends");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("reads");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }
}

fn report(store: StoreState) -> StatusReport {
    StatusReport {
        schema: 1,
        version: "0.1.0".to_owned(),
        state: OverallState::Ok,
        message: "All streams are fresh.".to_owned(),
        now: "2026-01-05T10:00:00Z".parse().expect("a timestamp"),
        started: None,
        streams: BTreeMap::new(),
        quota: QuotaStatus {
            limit: Some(1000),
            remaining: Some(640),
            resets_at: None,
            state: QuotaState::Ok,
            resume_at: None,
            waited_seconds: 0.0,
            refused: 0,
        },
        breaker: BreakerStatus {
            state: BreakerState::Closed,
            reason: None,
            since: None,
            next_probe: None,
            suspended_endpoints: Vec::new(),
        },
        token: TokenStatus { state: TokenState::None, expires_at: None },
        sinks: BTreeMap::new(),
        quarantine: BTreeMap::new(),
        outbox: OutboxStatus { entries: 0, bytes: 0 },
        store: StoreStatus { state: store },
    }
}
