//! The real transport over real loopback sockets, in real time.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use sierra_sync::secret::Secret;
use sierra_sync::sierra::transport::{SendOptions, Transport, TransportError, TransportErrorKind};
use sierra_sync::sierra::{BaseUrlError, HttpTransport, HttpTransportError, SierraSettings};

use super::raw_server::{Act, RawServer, start_tls};

/// gzip of `{"entries":[]}`.
const ZIPPED_PAGE: &str = "H4sIAAAAAAACA6tWSs0rKcpMLVayio6tBQCTSynKDgAAAA==";

fn settings(base_url: &str) -> SierraSettings {
    SierraSettings {
        base_url: base_url.to_owned(),
        client_key: "key".to_owned(),
        client_secret: Secret::new("secret".to_owned()),
        request_timeout: Duration::from_secs(5),
        local_zone: jiff::tz::TimeZone::UTC,
        ca_file: None,
        proxy: None,
        user_agent: "sierra-sync/test".to_owned(),
    }
}

fn options() -> SendOptions {
    SendOptions { timeout: Duration::from_secs(5), max_body: 64 * 1024, fresh_connection: false }
}

fn get(url: &str) -> http::Request<Bytes> {
    http::Request::get(url).header("authorization", "Bearer canary-token").body(Bytes::new()).expect("a request")
}

async fn send(server: &RawServer, options: SendOptions) -> Result<http::Response<Bytes>, TransportError> {
    let transport = HttpTransport::new(&settings(&server.url("v6"))).expect("a transport");
    transport.send(get(&server.url("v6/bibs")), options).await
}

async fn failure(act: Act, options: SendOptions) -> TransportError {
    let server = RawServer::start(vec![act]).await;
    send(&server, options).await.expect_err("no complete answer")
}

fn raw(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

#[tokio::test]
async fn a_whole_answer_comes_back_whatever_its_status() {
    let server = RawServer::start(vec![Act::json("404 Not Found", r#"{"code":107}"#)]).await;
    let answer = send(&server, options()).await.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (404, br#"{"code":107}"#.as_slice()));
    assert_eq!(answer.headers().get("content-type").expect("kept"), "application/json");
    let (_, head) = &server.seen()[0];
    assert!(head.starts_with("GET /v6/bibs HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("user-agent: sierra-sync/test") && head.contains("accept-encoding: gzip"), "{head}");
}

#[tokio::test]
async fn a_compressed_answer_is_unfolded() {
    let body = base64::engine::general_purpose::STANDARD.decode(ZIPPED_PAGE).expect("base64");
    let mut bytes = raw(&format!("HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: {}\n\n", body.len()));
    bytes.extend_from_slice(&body);
    let server = RawServer::start(vec![Act::Answer(bytes.clone())]).await;
    assert_eq!(send(&server, options()).await.expect("an answer").body().as_ref(), br#"{"entries":[]}"#);
    // Cut within the compressed stream: not a shorter answer.
    bytes.truncate(bytes.len() - 12);
    let mut cut = raw("HTTP/1.1 200 OK\nContent-Encoding: gzip\nConnection: close\n\n");
    cut.extend_from_slice(&body[..body.len() - 12]);
    failure(Act::AnswerAndClose(cut), options()).await;
}

#[tokio::test]
async fn a_body_cut_short_is_a_closed_connection() {
    for act in [
        Act::AnswerAndClose(raw("HTTP/1.1 200 OK\nContent-Length: 100\n\n{\"entries\":[")),
        Act::AnswerAndClose(raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\n{\"ent\n")),
        Act::AnswerAndClose(Vec::new()),
        Act::AnswerAndClose(raw("HTTP/1.1 200 OK\nContent-")),
        Act::Reset,
    ] {
        assert_eq!(failure(act.clone(), options()).await.kind, TransportErrorKind::Closed, "{act:?}");
    }
}

#[tokio::test]
async fn the_timeout_covers_head_and_body() {
    let brief = SendOptions { timeout: Duration::from_millis(100), ..options() };
    for bytes in [Vec::new(), raw("HTTP/1.1 200 OK\nContent-Length: 100\n\n{\"entries\":[")] {
        assert_eq!(failure(Act::AnswerAndHang(bytes), brief).await.kind, TransportErrorKind::Timeout);
    }
}

#[tokio::test]
async fn a_body_larger_than_allowed_is_refused_before_it_is_all_there() {
    let small = SendOptions { max_body: 1000, ..options() };
    let announced = raw(&format!("HTTP/1.1 200 OK\nContent-Length: 99999999\n\n{}", "x".repeat(2000)));
    assert_eq!(failure(Act::AnswerAndHang(announced), small).await.kind, TransportErrorKind::TooLarge);
    let zipped = base64::engine::general_purpose::STANDARD.decode(include_str!("zipped_mebibyte.txt").trim());
    let zipped = zipped.expect("base64");
    let mut bytes = raw(&format!("HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: {}\n\n", zipped.len()));
    bytes.extend_from_slice(&zipped);
    assert_eq!(failure(Act::Answer(bytes), options()).await.kind, TransportErrorKind::TooLarge);
}

#[tokio::test]
async fn what_is_not_http_is_a_malformed_exchange() {
    let error = failure(Act::AnswerAndClose(b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec()), options()).await;
    assert_eq!(error.kind, TransportErrorKind::Protocol);
}

#[tokio::test]
async fn a_refused_connection_says_so_without_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let closed = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let transport = HttpTransport::new(&settings(&closed)).expect("a transport");
    let error = transport.send(get(&format!("{closed}/canary?x=canary")), options()).await.expect_err("refused");
    assert_eq!(error.kind, TransportErrorKind::Connect);
    assert!(!error.to_string().contains("canary") && error.to_string().contains("refused"), "{error}");
}

/// A redirect would carry the token to wherever it points.
#[tokio::test]
async fn redirects_are_returned_and_never_followed() {
    let elsewhere = RawServer::start(vec![Act::json("200 OK", r#"{"entries":[]}"#)]).await;
    let location = elsewhere.url("v6/bibs");
    let redirect = raw(&format!("HTTP/1.1 302 Found\nLocation: {location}\nContent-Length: 0\n\n"));
    let server = RawServer::start(vec![Act::Answer(redirect)]).await;
    assert_eq!(send(&server, options()).await.expect("an answer").status().as_u16(), 302);
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn no_other_origin_is_ever_contacted() {
    let elsewhere = RawServer::start(vec![Act::json("200 OK", r#"{"entries":[]}"#)]).await;
    let server = RawServer::start(vec![Act::Reset]).await;
    let transport = HttpTransport::new(&settings(&server.url("v6"))).expect("a transport");
    let error = transport.send(get(&elsewhere.url("v6/bibs")), options()).await.expect_err("refused");
    assert_eq!(error.kind, TransportErrorKind::Protocol);
    assert!(elsewhere.seen().is_empty() && server.seen().is_empty());
}

/// sierra-api.md §1.1: with cookies every call would meet the same container.
#[tokio::test]
async fn connections_are_reused_unless_a_fresh_one_is_asked_for_and_cookies_are_not_kept() {
    let answer = raw("HTTP/1.1 200 OK\nSet-Cookie: jcontainerId=.jcontainer-public1; path=/\nContent-Length: 2\n\n{}");
    let server = RawServer::start(vec![Act::Answer(answer)]).await;
    let transport = HttpTransport::new(&settings(&server.url("v6"))).expect("a transport");
    for fresh_connection in [false, false, true, true, false] {
        let options = SendOptions { fresh_connection, ..options() };
        transport.send(get(&server.url("v6/bibs")), options).await.expect("an answer");
    }
    let connections: Vec<usize> = server.seen().into_iter().map(|(number, _)| number).collect();
    assert_eq!(connections, [0, 0, 1, 2, 0]);
    assert_eq!(server.connections(), 4, "the numbers above, neighbours merged");
    assert!(server.seen().iter().all(|(_, head)| !head.to_ascii_lowercase().contains("cookie:")));
}

/// A transport never retries: what was sent once reaches the server once.
#[tokio::test]
async fn a_lost_answer_is_not_asked_for_again() {
    let server = RawServer::start(vec![Act::AnswerAndClose(Vec::new())]).await;
    send(&server, options()).await.expect_err("no answer");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn certificates_are_verified_and_an_extra_root_is_believed() {
    let address = start_tls("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    let url = format!("https://localhost:{}", address.port());
    let strange = HttpTransport::new(&settings(&url)).expect("a transport");
    let error = strange.send(get(&url), options()).await.expect_err("an unknown root");
    assert_eq!(error.kind, TransportErrorKind::Untrusted);
    let ca_file = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/sierra/tls/ca.pem")));
    let trusting = HttpTransport::new(&SierraSettings { ca_file, ..settings(&url) }).expect("a transport");
    assert_eq!(trusting.send(get(&url), options()).await.expect("an answer").body().as_ref(), b"{}");
}

#[test]
fn settings_that_cannot_work_are_refused_without_showing_secrets() {
    let refused = |settings: SierraSettings| HttpTransport::new(&settings).expect_err("refused");
    let plain = refused(settings("http://catalog.example.edu/v6"));
    assert!(matches!(plain, HttpTransportError::BaseUrl(BaseUrlError::NotEncrypted)), "{plain}");
    let good = || settings("https://catalog.example.edu/v6");
    let proxy = refused(SierraSettings { proxy: Some("nonsense:canary@".to_owned()), ..good() });
    assert!(matches!(proxy, HttpTransportError::Proxy) && !proxy.to_string().contains("canary"), "{proxy}");
    let missing = refused(SierraSettings { ca_file: Some("/no/such/file".into()), ..good() });
    assert!(matches!(missing, HttpTransportError::CaFile { .. }), "{missing}");
    let empty = refused(SierraSettings { ca_file: Some("/dev/null".into()), ..good() });
    assert!(matches!(empty, HttpTransportError::NoCertificate { .. }), "{empty}");
}
