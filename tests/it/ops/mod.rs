//! The ops endpoint over real loopback sockets.

mod actions;
mod alerts;
mod control;
mod crowds;
mod history;
mod papers;
mod restarts;
mod series;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusBuilder;
use sierra_sync::ops::{Acted, Action, Actor, OpsError, OpsServer, OpsSettings, Past, StatusSource};
use sierra_sync::secret::Secret;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{
    BreakerState, BreakerStatus, OutboxStatus, OverallState, QuotaState, QuotaStatus, StoreState, StoreStatus,
    TokenState, TokenStatus,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

struct Fixed {
    store: StoreState,
    looks: Arc<AtomicUsize>,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// An action that was asked for, by whom, and why.
#[derive(Debug, Clone, PartialEq)]
struct Call(Action, Option<String>, Option<String>);

impl StatusSource for Fixed {
    fn status(&self) -> BoxFuture<'_, StatusReport> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { report(self.store) })
    }

    fn past(&self) -> BoxFuture<'_, Past> {
        Box::pin(async { Past::default() })
    }
}

impl Actor for Fixed {
    fn act(&self, action: Action, by: Option<String>, reason: Option<String>) -> BoxFuture<'_, Acted> {
        self.calls.lock().expect("unpoisoned").push(Call(action, by, reason));
        Box::pin(async { Acted::Done("done".to_owned()) })
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

/// RFC 9110 §11.1: the scheme's name has no case.
#[tokio::test]
async fn the_scheme_of_the_token_may_be_written_in_any_case() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    for (credentials, status) in [
        ("bearer correct-horse", 200),
        ("BEARER correct-horse", 200),
        ("Bearer  correct-horse", 200),
        ("Basic correct-horse", 401),
        ("correct-horse", 401),
        ("Bearercorrect-horse", 401),
        ("Bearer Correct-Horse", 401),
    ] {
        let headers = format!("Host: localhost\r\nAuthorization: {credentials}");
        assert_eq!(endpoint.get("/status", &headers).await.status, status, "{credentials}");
    }
}

/// Programs read every refusal as they read every answer.
#[tokio::test]
async fn refusals_are_json_with_a_sentence() {
    let (open, locked) = (serve(None, StoreState::Ok).await, serve(Some("correct-horse"), StoreState::Ok).await);
    let local = "Host: localhost";
    for (answer, status, sentence) in [
        (open.get("/nothing-here", local).await, 404, "the dashboard is at /"),
        (open.call("PUT", "/status", local, "").await, 405, "everything else by GET"),
        (open.get("/status", "Host: rebound.example").await, 421, "loopback names only"),
        (open.get("/history?after=abc", local).await, 400, "whole unix seconds"),
        (open.get("/history?after=", local).await, 400, "whole unix seconds"),
        (locked.get("/status", local).await, 401, "as a bearer token"),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
        let body: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!((&body["schema"], &body["ok"]), (&1.into(), &false.into()), "{body}");
        assert!(body["message"].as_str().is_some_and(|told| told.contains(sentence)), "{body}");
    }
    assert_eq!(open.get("/history?after=1767607200", local).await.status, 200);
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
    looks: Arc<AtomicUsize>,
    calls: Arc<Mutex<Vec<Call>>>,
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
    let (looks, calls) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<Call>>>::default());
    let fixed = Arc::new(Fixed { store, looks: looks.clone(), calls: calls.clone() });
    let over = shutdown.clone();
    tokio::spawn(async move { server.serve(fixed.clone(), fixed, metrics, over).await });
    Endpoint { address, shutdown, looks, calls }
}

impl Endpoint {
    async fn get(&self, path: &str, headers: &str) -> Answer {
        self.call("GET", path, headers, "").await
    }

    async fn post(&self, path: &str, headers: &str, body: &str) -> Answer {
        self.call("POST", path, headers, body).await
    }

    async fn call(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("connects");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        // One who is refused early may be hung up on while still sending.
        stream.write_all(request.as_bytes()).await.ok();
        read_answer(&mut stream).await.expect("an answer")
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("unpoisoned").clone()
    }
}

async fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut answer = Vec::new();
    // What came before a reset counts.
    stream.read_to_end(&mut answer).await.ok();
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_owned(), body: body.to_owned() })
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
            held: false,
            suspended_endpoints: Vec::new(),
        },
        token: TokenStatus { state: TokenState::None, expires_at: None },
        sinks: BTreeMap::new(),
        quarantine: BTreeMap::new(),
        outbox: OutboxStatus { entries: 0, bytes: 0, max_bytes: 2 << 30 },
        store: StoreStatus { state: store, held: None },
        restarted: BTreeMap::new(),
    }
}
