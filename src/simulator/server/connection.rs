//! One connection: request after request, until somebody closes it.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::reply::{Delivery, Reply};
use super::super::shared::{Connection, SharedSimulator};
use super::head::{self, Head};

/// Apache's keep-alive as recorded: idle connections live five seconds, and take a hundred requests.
const IDLE_SECONDS: u64 = 5;
const REQUESTS: u32 = 100;

/// The longest body of a request; the only one there is to read is the token's form.
const LONGEST_BODY: usize = 1024 * 1024;

/// Serves `stream` until it ends. Errors of the network end it too: there is nobody to tell.
pub(super) async fn serve(stream: TcpStream, simulator: SharedSimulator) {
    // Small answers wait for nothing; should the option be refused, they only come a little later.
    let _slower_without = stream.set_nodelay(true);
    let number = simulator.open_connection();
    let mut peer = Peer { stream, buffer: Vec::new() };
    for count in 0..REQUESTS {
        let idle = Duration::from_secs(IDLE_SECONDS);
        let Ok(Ok(Some(head))) = tokio::time::timeout(idle, peer.request()).await else { return };
        let left = if head.closes { 0 } else { REQUESTS - count - 1 };
        let connection = Connection { number, is_reused: count > 0 };
        let (reply, _under_way) = simulator.handle(&head.request, connection);
        if !matches!(peer.answer(reply, left).await, Ok(true)) {
            return;
        }
    }
}

/// The other side, and what it has sent ahead.
struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Peer {
    /// The next request with its body; nothing when the other side has closed or sends something else.
    async fn request(&mut self) -> io::Result<Option<Head>> {
        loop {
            let Ok(parsed) = head::parse(&self.buffer) else { return Ok(None) };
            if let Some(mut head) = parsed {
                if head.body > LONGEST_BODY {
                    return Ok(None);
                }
                let end = head.length + head.body;
                if let Some(body) = self.buffer.get(head.length..end) {
                    *head.request.body_mut() = Bytes::copy_from_slice(body);
                    self.buffer.drain(..end);
                    return Ok(Some(head));
                }
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Delivers a reply. Says whether the connection lives on.
    async fn answer(&mut self, reply: Reply, left: u32) -> io::Result<bool> {
        if !reply.delay.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(reply.delay) => {}
                () = Self::gone(&mut self.stream, &mut self.buffer) => return Ok(false),
            }
        }
        let head = head::write(&reply.response, left, IDLE_SECONDS);
        let body = reply.response.into_body();
        match reply.delivery {
            Delivery::Whole => {
                self.send(&head, &body).await?;
                return Ok(left > 0);
            }
            Delivery::WholeThenClosed => self.send(&head, &body).await?,
            Delivery::Cut { after_bytes } => {
                self.send(&head, body.get(..after_bytes).unwrap_or(&body)).await?;
            }
            Delivery::Never => Self::gone(&mut self.stream, &mut self.buffer).await,
            Delivery::Reset | Delivery::Refused => self.stream.set_zero_linger()?,
            Delivery::Slow { bytes_per_second } => {
                self.stream.write_all(&head).await?;
                self.trickle(&body, bytes_per_second).await?;
                return Ok(left > 0);
            }
        }
        Ok(false)
    }

    async fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.stream.write_all(head).await?;
        self.stream.write_all(body).await?;
        self.stream.flush().await
    }

    /// Sends a tenth of a second's worth ten times a second.
    async fn trickle(&mut self, body: &[u8], bytes_per_second: u64) -> io::Result<()> {
        let tenth = usize::try_from(bytes_per_second / 10).unwrap_or(usize::MAX).max(1);
        for piece in body.chunks(tenth) {
            self.stream.write_all(piece).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Returns when the other side has closed the connection.
    async fn gone(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
        while matches!(stream.read_buf(buffer).await, Ok(read) if read > 0) {}
    }
}
