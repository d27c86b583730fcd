//! A TCP server that answers with bytes: it can break every rule that an HTTP library would keep.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Writes these bytes and waits for the next request on the connection.
    Answer(Vec<u8>),
    /// Writes these bytes and closes the connection.
    AnswerAndClose(Vec<u8>),
    /// Writes these bytes and then nothing more, with the connection open.
    AnswerAndHang(Vec<u8>),
    /// Ends the connection with a reset.
    Reset,
}

impl Act {
    /// A complete answer.
    pub(super) fn json(status: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        Self::Answer((head + body).into_bytes())
    }
}

/// A running server. The last act is repeated for ever.
pub(super) struct RawServer {
    pub(super) address: SocketAddr,
    /// The head of every request, with the number of the connection that brought it.
    seen: Arc<Mutex<Vec<(usize, String)>>>,
    task: JoinHandle<()>,
}

impl RawServer {
    pub(super) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, acts, Arc::clone(&seen)));
        Self { address, seen, task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<(usize, String)> {
        self.seen.lock().expect("not poisoned").clone()
    }

    /// How many connections brought a request.
    pub(super) fn connections(&self) -> usize {
        let mut numbers: Vec<usize> = self.seen().into_iter().map(|(number, _)| number).collect();
        numbers.dedup();
        numbers.len()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, acts: Vec<Act>, seen: Arc<Mutex<Vec<(usize, String)>>>) {
    let acts = Arc::new(Mutex::new(acts.into_iter().rev().collect::<Vec<_>>()));
    let mut connections = tokio::task::JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else { return };
        connections.spawn(converse(number, stream, Arc::clone(&acts), Arc::clone(&seen)));
    }
}

async fn converse(
    number: usize,
    mut stream: TcpStream,
    acts: Arc<Mutex<Vec<Act>>>,
    seen: Arc<Mutex<Vec<(usize, String)>>>,
) {
    while let Some(head) = read_head(&mut stream).await {
        seen.lock().expect("not poisoned").push((number, head));
        let act = {
            let mut acts = acts.lock().expect("not poisoned");
            if acts.len() > 1 { acts.pop() } else { acts.last().cloned() }
        };
        match act {
            Some(Act::Answer(bytes)) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Some(Act::AnswerAndClose(bytes)) => {
                // The client may have stopped listening already.
                let _written = stream.write_all(&bytes).await;
                return;
            }
            Some(Act::AnswerAndHang(bytes)) => {
                let _written = stream.write_all(&bytes).await;
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            Some(Act::Reset) | None => {
                stream.set_zero_linger().expect("a socket");
                return;
            }
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// A TLS server for one connection at a time, with the certificates of the folder `tls`.
pub(crate) fn start_tls(answer: &'static str) -> SocketAddr {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    sierra_sync::sierra::install_crypto();
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).expect("a key");
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let config = Arc::new(config.expect("a configuration"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Detached: it ends with the test process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).expect("a session");
            let mut tls = rustls::StreamOwned::new(session, stream);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && tls.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            // A client that refused the certificate has gone already.
            let _written = std::io::Write::write_all(&mut tls, answer.as_bytes());
            tls.conn.send_close_notify();
            let _flushed = std::io::Write::flush(&mut tls);
        }
    });
    address
}
