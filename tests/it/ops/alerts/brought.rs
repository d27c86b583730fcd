//! Messages on their way: to a webhook over a real socket, and the signs of life beside them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use sierra_sync::ops::alert::{AlertBook, AlertMemory, AlertSettings, Courier, Notice, Watch, WebhookSettings, sign};
use sierra_sync::ops::{Past, StatusSource};
use sierra_sync::secret::Secret;
use sierra_sync::seed::RootSeed;
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::OverallState;
use tokio_util::sync::CancellationToken;

use super::{Desk, STALE_AFTER, open, short};

/// Somebody who listens, and takes nothing as long as `refusals` are left.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    refusals: Arc<Mutex<u32>>,
    lives: Arc<Mutex<u32>>,
}

impl Listener {
    async fn listen(self) -> SocketAddr {
        let take = async |State(listener): State<Self>, headers: HeaderMap, body: Bytes| {
            let mut refusals = listener.refusals.lock().unwrap();
            if *refusals > 0 {
                *refusals -= 1;
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            listener.heard.lock().unwrap().push((headers, body));
            StatusCode::NO_CONTENT
        };
        let live = async |State(listener): State<Self>| *listener.lives.lock().unwrap() += 1;
        let router = Router::new().route("/hook", post(take)).route("/alive", get(live)).with_state(self);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn notices(&self) -> Vec<Notice> {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|(_, body)| serde_json::from_slice(body).expect("a notice")).collect()
    }
}

/// A memory that outlives the watch.
#[derive(Default)]
struct Shelf(Mutex<AlertBook>);

impl AlertMemory for Shelf {
    fn recall(&self) -> BoxFuture<'_, AlertBook> {
        Box::pin(async { self.0.lock().unwrap().clone() })
    }

    fn keep<'a>(&'a self, book: &'a AlertBook) -> BoxFuture<'a, ()> {
        Box::pin(async { self.0.lock().unwrap().clone_from(book) })
    }
}

fn settings(address: SocketAddr) -> AlertSettings {
    AlertSettings {
        webhook: Some(WebhookSettings {
            url: Secret::new(format!("http://{address}/hook")),
            secret: Some(Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned())),
        }),
        deadman_url: Some(Secret::new(format!("http://{address}/alive"))),
        stale_after: STALE_AFTER,
    }
}

async fn watch(shelf: &Arc<Shelf>, address: SocketAddr) -> Watch {
    sierra_sync::sierra::install_crypto();
    let courier = Courier::new(&settings(address)).expect("good addresses");
    Watch::begin(shelf.clone(), courier, STALE_AFTER, RootSeed::new(7).generator("alerts")).await
}

#[tokio::test]
async fn a_message_arrives_signed_and_is_not_sent_again() {
    let (listener, shelf) = (Listener::default(), Arc::new(Shelf::default()));
    let address = listener.clone().listen().await;
    let mut desk = Desk::quiet();
    open(&mut desk);
    watch(&shelf, address).await.once(&desk.report, true).await;
    watch(&shelf, address).await.once(&desk.report, true).await;
    let heard = listener.heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 1);
    let (headers, body) = &heard[0];
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).expect("a header");
    let notice: Notice = serde_json::from_slice(body).expect("a notice");
    assert_eq!(header("webhook-id"), notice.id);
    let at = header("webhook-timestamp").parse().expect("unix seconds");
    let secret = settings(address).webhook.and_then(|webhook| webhook.secret).expect("there is one");
    assert_eq!(header("webhook-signature"), sign(&secret, &notice.id, at, body));
    assert_eq!(*listener.lives.lock().unwrap(), 2, "a sign of life after each pass");
}

/// BR-063: a pass that failed is none that the dead-man switch should hear of, though what is wrong is told.
#[tokio::test]
async fn a_pass_that_failed_gives_no_sign_of_life() {
    let (listener, shelf) = (Listener::default(), Arc::new(Shelf::default()));
    let address = listener.clone().listen().await;
    let mut desk = Desk::quiet();
    desk.owe("bibs", 1);
    watch(&shelf, address).await.once(&desk.report, false).await;
    assert_eq!(listener.notices().iter().map(short).collect::<Vec<_>>(), ["raised gap/bibs"]);
    assert_eq!(*listener.lives.lock().unwrap(), 0);
}

/// Nobody listens for a while: everything is brought later, in order, also by the next process.
#[tokio::test]
async fn messages_wait_in_order_for_a_webhook_that_takes_none() {
    let (listener, shelf) = (Listener::default(), Arc::new(Shelf::default()));
    *listener.refusals.lock().unwrap() = 2;
    let address = listener.clone().listen().await;
    let mut desk = Desk::quiet();
    open(&mut desk);
    watch(&shelf, address).await.once(&desk.report, true).await;
    desk = Desk { book: AlertBook::default(), ..Desk::quiet() };
    for minutes in [1, 10] {
        desk.report.now += jiff::SignedDuration::from_mins(minutes);
        watch(&shelf, address).await.once(&desk.report, true).await;
    }
    let told: Vec<String> = listener.notices().iter().map(short).collect();
    assert_eq!(told, ["raised breaker_open/", "recovered breaker_open/"]);
}

/// Shows one status for ever.
struct Fixed(StatusReport);

impl StatusSource for Fixed {
    fn status(&self) -> BoxFuture<'_, StatusReport> {
        Box::pin(async { self.0.clone() })
    }

    fn past(&self) -> BoxFuture<'_, Past> {
        Box::pin(async { Past::default() })
    }
}

/// BR-063: the dead-man switch hears nothing from a process that makes no progress, or that is failing.
#[tokio::test]
async fn only_a_service_that_goes_on_gives_signs_of_life() {
    let (listener, shelf) = (Listener::default(), Arc::new(Shelf::default()));
    let address = listener.clone().listen().await;
    for (state, goes_on, lives) in
        [(OverallState::Ok, false, 0), (OverallState::Failing, true, 0), (OverallState::Degraded, true, 1)]
    {
        let mut desk = Desk::quiet();
        desk.report.state = state;
        open(&mut desk);
        *shelf.0.lock().unwrap() = AlertBook::default();
        let heard_before = listener.notices().len();
        let (shutdown, status) = (CancellationToken::new(), Arc::new(Fixed(desk.report)));
        let watching = watch(&shelf, address).await.run(status, move |_| goes_on, shutdown.clone());
        let watching = tokio::spawn(watching);
        // The message goes before the sign of life, which goes before the next look at the shutdown.
        while listener.notices().len() == heard_before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if lives > 0 {
            while *listener.lives.lock().unwrap() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        shutdown.cancel();
        watching.await.expect("it ends");
        assert_eq!(*listener.lives.lock().unwrap(), lives, "{state:?}, goes on: {goes_on}");
    }
}

#[test]
fn no_error_shows_an_address() {
    sierra_sync::sierra::install_crypto();
    let mut settings = settings("127.0.0.1:9".parse().expect("an address"));
    settings.deadman_url = Some(Secret::new("ftp://canary-secret".to_owned()));
    let error = Courier::new(&settings).expect_err("no such scheme").to_string();
    assert!(error.contains("alerts.deadman_url") && !error.contains("canary"), "{error}");
    settings.deadman_url = None;
    settings.webhook =
        Some(WebhookSettings { url: Secret::new("http://127.0.0.1:9/canary-secret".to_owned()), secret: None });
    let courier = Courier::new(&settings).expect("good addresses");
    let mut desk = Desk::quiet();
    open(&mut desk);
    let notice = desk.watch(jiff::SignedDuration::from_secs(10)).remove(0);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let error = runtime.block_on(courier.bring(&notice, 0)).expect_err("nobody listens").to_string();
    assert!(error.contains("alerts.webhook") && !error.contains("canary"), "{error}");
}
