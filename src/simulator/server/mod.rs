//! The same API over loopback, for the demo, for `simulate` and for tests of the real binary.
//!
//! The HTTP here is written by hand, since an HTTP library does its best not to cut bodies, reset connections or fall
//! silent. It speaks HTTP/1.1 without TLS, chunks or pipelining; it is no server for anything else.

mod connection;
mod head;

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::shared::SharedSimulator;

/// A running server. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stopping: CancellationToken,
    task: JoinHandle<()>,
    simulator: SharedSimulator,
}

impl Server {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(simulator: SharedSimulator, address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stopping = CancellationToken::new();
        let task = tokio::spawn(accept(listener, simulator.clone(), stopping.clone()));
        Ok(Self { address, stopping, task, simulator })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client's configuration calls the base URL, version included.
    #[must_use]
    pub fn base_url(&self) -> String {
        let path = self.simulator.with(|simulator| simulator.base_path().to_owned());
        format!("http://{}{path}", self.address)
    }

    /// Closes the listener and every connection, and waits until they are closed.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        // A task that panicked has printed why; there is nothing left to close.
        let _ended = (&mut self.task).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

async fn accept(listener: TcpListener, simulator: SharedSimulator, stopping: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        // A connection that failed before it was accepted is the client's affair.
        let Ok((stream, _)) = accepted else { continue };
        let serving = connection::serve(stream, simulator.clone());
        let stopping = stopping.clone();
        connections.spawn(async move { stopping.run_until_cancelled(serving).await });
    }
    connections.shutdown().await;
}
