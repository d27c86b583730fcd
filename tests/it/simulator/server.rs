//! The server on loopback, in real time: the same answers, and every way of losing one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sierra_sync::clock::SystemClock;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{BASE_PATH, Fault, Kind, LibrarySettings, Server, SharedSimulator, Simulator};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::opened;

async fn served() -> (SharedSimulator, Server) {
    let settings = LibrarySettings::opened_at(opened()).sized(60, 10, 5);
    let simulator = SharedSimulator::new(Simulator::new(&settings, RootSeed::new(7)), Arc::new(SystemClock));
    let server = Server::start(simulator.clone(), SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    (simulator, server)
}

/// One connection; it reads answers by their announced length.
struct Line(TcpStream);

impl Line {
    async fn to(server: &Server) -> Self {
        Self(TcpStream::connect(server.address()).await.unwrap())
    }

    /// Sends a request and returns the head and body of the answer, or what came of them.
    async fn ask(&mut self, request: &str) -> std::io::Result<(String, Vec<u8>)> {
        self.0.write_all(request.as_bytes()).await?;
        let mut received = Vec::new();
        loop {
            if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(received[..end].to_vec()).unwrap();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.map_or(0, |length| length.parse().unwrap());
                if received.len() >= end + 4 + length {
                    return Ok((head, received.split_off(end + 4)));
                }
            }
            if self.0.read_buf(&mut received).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn token(&mut self) -> String {
        let basic = "c2ltdWxhdG9yLWtleTpzaW11bGF0b3Itc2VjcmV0";
        let form = "grant_type=client_credentials";
        let request = format!(
            "POST {BASE_PATH}/token HTTP/1.1\r\nhost: sierra.test\r\nauthorization: Basic {basic}\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        let (_, body) = self.ask(&request).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        body["access_token"].as_str().unwrap().to_owned()
    }
}

fn get(token: &str, path: &str) -> String {
    format!("GET {BASE_PATH}{path} HTTP/1.1\r\nhost: sierra.test\r\nauthorization: Bearer {token}\r\n\r\n")
}

#[tokio::test]
async fn one_connection_serves_call_after_call_with_the_recorded_headers() {
    let (simulator, server) = served().await;
    let mut line = Line::to(&server).await;
    let token = line.token().await;
    let (head, body) = line.ask(&get(&token, "/bibs?limit=2000&deleted=false")).await.unwrap();
    for header in [
        "HTTP/1.1 200 OK",
        "server: Apache",
        "content-type: application/json;charset=UTF-8",
        "date: ",
        "set-cookie: jcontainerId=.jcontainer-public",
        "connection: Keep-Alive",
    ] {
        assert!(head.contains(header), "{head}");
    }
    let page: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(page["entries"].as_array().unwrap().len(), simulator.world(|world| world.ids(Kind::Bibs).len()));
    assert!(simulator.with(|simulator| simulator.journal.calls().all(|call| call.connection == 1)));
    server.stop().await;
}

#[tokio::test]
async fn answers_are_cut_reset_and_closed_on_the_wire() {
    let (simulator, server) = served().await;
    let token = Line::to(&server).await.token().await;
    let fate = async |fault: Fault| {
        simulator.plan(fault.first(1));
        let mut line = Line::to(&server).await;
        let answer = line.ask(&get(&token, "/bibs")).await;
        (answer.map(|(head, _)| head.lines().next().unwrap().to_owned()).map_err(|error| error.kind()), line)
    };
    let (cut, _) = fate(Fault::Cut { percent: 50 }).await;
    assert_eq!(cut, Err(std::io::ErrorKind::UnexpectedEof));
    let (reset, _) = fate(Fault::Reset).await;
    assert_eq!(reset, Err(std::io::ErrorKind::ConnectionReset));
    let (whole, mut line) = fate(Fault::CloseAfter).await;
    assert_eq!(whole.unwrap(), "HTTP/1.1 200 OK");
    assert!(line.ask(&get(&token, "/bibs")).await.is_err());
    let (refused, _) = fate(Fault::Html { status: 503 }).await;
    assert_eq!(refused.unwrap(), "HTTP/1.1 503 Service Unavailable");
}

#[tokio::test]
async fn a_hanging_call_is_over_when_the_client_leaves() {
    let (simulator, server) = served().await;
    let mut line = Line::to(&server).await;
    let token = line.token().await;
    simulator.plan(Fault::Hang.first(1));
    line.0.write_all(get(&token, "/bibs").as_bytes()).await.unwrap();
    let in_flight = || simulator.with(|simulator| simulator.journal.in_flight(sierra_sync::simulator::Endpoint::Bibs));
    wait_until(|| in_flight() == 1).await;
    drop(line);
    wait_until(|| in_flight() == 0).await;
}

#[tokio::test]
async fn a_stopped_server_lets_nobody_in() {
    let (_simulator, server) = served().await;
    let address = server.address();
    let mut line = Line::to(&server).await;
    line.token().await;
    server.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
    assert_eq!(line.0.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

/// Polls what another task brings about; a test that waits in vain is stopped by the limit.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    let patience = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), patience).await.unwrap();
}
