//! Connections: so many at once, each with a moment for its request. Whoever dawdles makes room for whoever asks, so
//! that neither a slow client nor a thousand of them keep others out, or take the files that the sync needs.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Connections at once.
const MOST: usize = 96;
/// The head of a request arrives within this time, the next one of the same connection too.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// What a connection buffers of a head, in bytes. A longer one, or one of over a hundred headers, is refused by hyper with
/// a bare 431: it never becomes a request, so no handler or layer of ours is asked, and hyper takes no body for it.
const LONGEST_HEAD: usize = 16 * 1024;
/// Answers under way have so long at the end.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Whoever has just come is given this long before others may take the place.
const GRACE: Duration = Duration::from_millis(250);
/// After a connection could not be taken: out of descriptors, most likely. And before it is looked for room again.
const REST: Duration = Duration::from_millis(50);

/// Serves `router` on `listener` until `shutdown`.
pub(super) async fn serve(listener: &TcpListener, router: Router, shutdown: CancellationToken) -> io::Result<()> {
    let mut callers = Callers::default();
    let mut connections = JoinSet::new();
    loop {
        let has_room = callers.make_room(Instant::now());
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if has_room => accepted,
            () = tokio::time::sleep(REST), if !has_room => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let under_way = Arc::new(AtomicUsize::new(0));
        let connection = converse(stream, router.clone(), Arc::clone(&under_way), shutdown.clone());
        let came = Instant::now();
        callers.0.push_back(Caller { came, under_way, connection: connections.spawn(connection) });
    }
    let ending = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(ENDS_WITHIN, ending).await);
    connections.shutdown().await;
    Ok(())
}

/// Who is connected, the longest first.
#[derive(Default)]
struct Callers(VecDeque<Caller>);

struct Caller {
    came: Instant,
    /// Requests that are being answered.
    under_way: Arc<AtomicUsize>,
    connection: AbortHandle,
}

impl Callers {
    /// Whether one more may come: if need be, the oldest that asks for nothing goes.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.0.len() < MOST {
            return true;
        }
        self.0.retain(|caller| !caller.connection.is_finished());
        if self.0.len() < MOST {
            return true;
        }
        let is_idle = |caller: &Caller| {
            caller.under_way.load(Ordering::Relaxed) == 0 && now.saturating_duration_since(caller.came) >= GRACE
        };
        let idle = self.0.iter().position(is_idle);
        let gone = idle.and_then(|idle| self.0.remove(idle));
        gone.inspect(|caller| caller.connection.abort()).is_some()
    }
}

/// Answers one connection's requests. A client that breaks off has nobody else to tell.
async fn converse(stream: TcpStream, router: Router, under_way: Arc<AtomicUsize>, shutdown: CancellationToken) {
    let router = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let busy = Busy::enter(&under_way);
        let answer = router.call(request);
        async move {
            let answer: Result<_, Infallible> = answer.await;
            drop(busy);
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

/// A request that is being answered.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn enter(under_way: &Arc<AtomicUsize>) -> Self {
        under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(under_way))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
