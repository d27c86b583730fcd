//! The simulator as a transport: no sockets, tokio's time alone, so that a paused runtime simulates days in
//! milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::reply::{Delivery, Reply};
use super::shared::{Connection, SharedSimulator};
use crate::sierra::transport::{SendOptions, Transport, TransportError, TransportErrorKind};

/// A client's way to the simulator. It has one connection that it keeps using, like a pool of one.
#[derive(Debug)]
pub struct InProcess {
    simulator: SharedSimulator,
    /// The number of the kept connection; nought when none is open.
    kept: AtomicU64,
}

impl InProcess {
    pub(super) fn new(simulator: SharedSimulator) -> Self {
        Self { simulator, kept: AtomicU64::new(0) }
    }

    async fn exchange(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let connection = self.connect(options.fresh_connection);
        let (reply, _under_way) = self.simulator.handle(&request, connection);
        tokio::time::sleep(reply.delay).await;
        self.deliver(reply, options).await
    }

    async fn deliver(&self, reply: Reply, options: SendOptions) -> Result<http::Response<Bytes>, TransportError> {
        let body_length = reply.response.body().len();
        match reply.delivery {
            Delivery::Whole => {}
            Delivery::WholeThenClosed => self.disconnect(),
            Delivery::Never => std::future::pending().await,
            Delivery::Reset | Delivery::Cut { .. } => {
                self.disconnect();
                return Err(failed(TransportErrorKind::Closed));
            }
            Delivery::Refused => {
                self.disconnect();
                return Err(failed(TransportErrorKind::Connect));
            }
            Delivery::Slow { bytes_per_second } => {
                let milliseconds = (body_length as u64).saturating_mul(1_000) / bytes_per_second.max(1);
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            }
        }
        if body_length > options.max_body {
            return Err(failed(TransportErrorKind::TooLarge));
        }
        Ok(reply.response)
    }

    fn connect(&self, fresh: bool) -> Connection {
        let kept = self.kept.load(Ordering::Relaxed);
        if kept > 0 && !fresh {
            return Connection { number: kept, is_reused: true };
        }
        let number = self.simulator.open_connection();
        if !fresh {
            self.kept.store(number, Ordering::Relaxed);
        }
        Connection { number, is_reused: false }
    }

    fn disconnect(&self) {
        self.kept.store(0, Ordering::Relaxed);
    }
}

impl Transport for InProcess {
    fn send(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let exchange = self.exchange(request, options);
            tokio::time::timeout(options.timeout, exchange).await.unwrap_or(Err(failed(TransportErrorKind::Timeout)))
        })
    }
}

fn failed(kind: TransportErrorKind) -> TransportError {
    TransportError { kind, detail: None }
}
