//! Clients that are slow, many, or both.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sierra_sync::sync::report::status::StoreState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{read_answer, serve};

/// Beyond this an answer does not come, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// Clients that send their request letter by letter, or not at all, keep nobody out: there are more of them than
/// connections, and whoever asks is answered at once.
#[tokio::test]
async fn slow_clients_keep_nobody_out() {
    let endpoint = serve(None, StoreState::Ok).await;
    let mut slow = Vec::new();
    for number in 0..300 {
        let mut client = TcpStream::connect(endpoint.address).await.expect("connects");
        if number % 2 == 0 {
            client.write_all(b"GET /status HTTP/1.1\r\nHost: local").await.expect("sends");
        }
        slow.push(client);
    }
    for _ in 0..20 {
        let answer = timeout(PATIENCE, endpoint.get("/status", "Host: localhost")).await;
        assert_eq!(answer.expect("at once").status, 200);
    }
    // All but the newest were sent away for others.
    let mut gone = 0;
    for mut client in slow {
        let mut rest = [0; 64];
        let ended = timeout(Duration::from_millis(5), client.read(&mut rest)).await;
        gone += u32::from(matches!(ended, Ok(Ok(0) | Err(_))));
    }
    assert!(gone >= 200, "{gone}");
}

/// A head that does not arrive is not waited for.
#[tokio::test]
async fn a_client_that_dawdles_is_sent_away() {
    let endpoint = serve(None, StoreState::Ok).await;
    let mut client = TcpStream::connect(endpoint.address).await.expect("connects");
    client.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.expect("sends");
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, client.read_to_end(&mut rest)).await.expect("within its time");
    drop(ended);
    let text = String::from_utf8_lossy(&rest);
    assert!(text.is_empty() || text.contains("408"), "{text}");
}

/// The status of the answer, unless the client was hung up on.
async fn ask_once(address: SocketAddr) -> Option<u16> {
    let mut client = TcpStream::connect(address).await.ok()?;
    client.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.ok()?;
    Some(timeout(PATIENCE, read_answer(&mut client)).await.ok()??.status)
}

/// A thousand at once are each answered, and cost no more than a few looks at the state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_are_answered_and_cost_a_few_looks() {
    let endpoint = serve(None, StoreState::Ok).await;
    let before = endpoint.looks.load(Ordering::SeqCst);
    let mut crowd = JoinSet::new();
    for _ in 0..1000 {
        let address = endpoint.address;
        crowd.spawn(async move {
            // On a busy machine a client that comes to speak too late is taken for a slow one. It asks again.
            for _ in 0..5 {
                if let Some(status) = ask_once(address).await {
                    return Some(status);
                }
            }
            None
        });
    }
    let answers = crowd.join_all().await;
    let with = |status: u16| answers.iter().filter(|answer| **answer == Some(status)).count();
    assert!(with(200) >= 300, "{} well, {} later", with(200), with(429));
    // Told to come later at most, and none has to give up.
    assert!(with(200) + with(429) >= 990, "{} well, {} later", with(200), with(429));
    let looks = endpoint.looks.load(Ordering::SeqCst) - before;
    assert!(looks <= 60, "{looks}");
    assert_eq!(endpoint.get("/livez", "Host: localhost").await.status, 200, "probes are always answered");
}
