//! The smallest possible client: it knows nothing of the product's own.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use sierra_sync::clock::SimClock;
use sierra_sync::seed::RootSeed;
use sierra_sync::sierra::transport::{SendOptions, Transport, TransportError};
use sierra_sync::simulator::{BASE_PATH, InProcess, LibrarySettings, SharedSimulator, Simulator};

/// The library's first moment in every test.
pub(super) fn opened() -> Timestamp {
    "2026-01-05T10:00:00Z".parse().unwrap()
}

/// A simulator of a small library, living on tokio's (paused) time.
pub(super) fn small_library() -> SharedSimulator {
    library(LibrarySettings::opened_at(opened()).sized(60, 80, 15))
}

/// A simulator of the library described by `settings`.
pub(super) fn library(settings: LibrarySettings) -> SharedSimulator {
    shared(Simulator::new(&settings, RootSeed::new(7)))
}

/// Shares a simulator that lives on tokio's (paused) time from its own now on.
pub(super) fn shared(simulator: Simulator) -> SharedSimulator {
    let clock = Arc::new(SimClock::starting_at(simulator.now()));
    SharedSimulator::new(simulator, clock)
}

/// A client with a token.
pub(super) struct Client {
    pub(super) transport: InProcess,
    pub(super) token: String,
}

/// How every request is sent unless a test says otherwise.
pub(super) const OPTIONS: SendOptions =
    SendOptions { timeout: Duration::from_secs(60), max_body: 64 * 1024 * 1024, fresh_connection: false };

impl Client {
    pub(super) async fn of(simulator: &SharedSimulator) -> Self {
        let transport = simulator.transport();
        let answer = transport.send(token_request("simulator-key:simulator-secret"), OPTIONS).await.unwrap();
        let body: Value = serde_json::from_slice(answer.body()).unwrap();
        Self { transport, token: body["access_token"].as_str().unwrap().to_owned() }
    }

    /// Sends `GET base/path`, where `path` begins after the version.
    pub(super) async fn try_get(&self, path: &str) -> Result<http::Response<Bytes>, TransportError> {
        let request = http::Request::get(format!("http://sierra.test{BASE_PATH}{path}"))
            .header("authorization", format!("Bearer {}", self.token))
            .header("accept", "application/json")
            .body(Bytes::new())
            .unwrap();
        self.transport.send(request, OPTIONS).await
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.try_get(path).await.unwrap();
        (answer.status().as_u16(), serde_json::from_slice(answer.body()).unwrap_or(Value::Null))
    }

    /// The entries of a page that must be one.
    pub(super) async fn entries(&self, path: &str) -> Vec<Value> {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body["entries"].as_array().unwrap().clone()
    }

    /// All entries by the keyset walk `id=[last+1,]`, until Sierra says that there is nothing.
    pub(super) async fn sweep(&self, kind: &str, query: &str) -> Vec<Value> {
        let (mut all, mut from): (Vec<Value>, u64) = (Vec::new(), 0);
        loop {
            let (status, body) = self.get(&format!("/{kind}?limit=17&id=[{from},]{query}")).await;
            if status == 404 {
                assert_eq!(body["code"], 107);
                return all;
            }
            let entries = body["entries"].as_array().unwrap();
            if entries.is_empty() {
                return all;
            }
            from = id(entries.last().unwrap()) + 1;
            all.extend_from_slice(entries);
        }
    }
}

/// The record number of an entry, in whichever form it comes.
pub(super) fn id(entry: &Value) -> u64 {
    entry["id"].as_u64().unwrap_or_else(|| entry["id"].as_str().unwrap().parse().unwrap())
}

/// A request for a token with these credentials.
pub(super) fn token_request(credentials: &str) -> http::Request<Bytes> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
    http::Request::post(format!("http://sierra.test{BASE_PATH}/token"))
        .header("authorization", format!("Basic {encoded}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::from_static(b"grant_type=client_credentials"))
        .unwrap()
}
