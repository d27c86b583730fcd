//! The real binary calls for help.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use sierra_sync::cli::schema::SchemaName;

use sierra_sync::simulator::Fault;

use super::support::{Library, Site, assert_valid};

/// Listens for calls to `path` and gives on what `read` makes of their bodies; answers each with 204.
fn listener<T: Send + 'static>(path: &str, read: fn(&[u8]) -> T) -> (String, Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = listener.local_addr().expect("an address");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.expect("a connection"));
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).expect("a head") > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            // Counted before it is answered: whoever asked has not gone on yet.
            if sender.send(read(&body)).is_err() {
                return;
            }
            reader.into_inner().write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("answers");
        }
    });
    (format!("http://{address}/{path}"), receiver)
}

#[test]
fn a_refused_credential_is_told_once_by_passes_of_a_timer() {
    let mut site = Site::new(Library::sized(5, 0, 0));
    let (url, messages) = listener::<Value>("hook", |body| serde_json::from_slice(body).expect("JSON"));
    site.configure(|text| format!("{text}\n[alerts]\nwebhook = \"{url}\"\n"));
    site.give_secret(Some("canary-wrong-secret"));
    site.sync(&[]).ends(77);
    let told = messages.recv_timeout(Duration::from_secs(20)).expect("a message");
    assert_valid(SchemaName::Alert, [&told]);
    assert_eq!(
        (told["cause"].as_str(), told["kind"].as_str(), told["command"].as_str()),
        (Some("credential_refused"), Some("raised"), Some("sierra-sync recover"))
    );
    assert!(!told.to_string().contains("canary"), "{told}");
    site.sync(&[]).ends(77);
    assert_eq!(messages.try_recv().ok(), None, "it was told already");
}

#[test]
fn the_dead_man_switch_hears_of_passes_that_did_their_work_alone() {
    let site = Site::new(Library::sized(5, 0, 0));
    let (url, lives) = listener("alive", |_| ());
    site.configure(|text| format!("{text}\n[alerts]\ndeadman_url = \"{url}\"\n"));
    site.sync(&[]).ends(0);
    assert_eq!(lives.try_iter().count(), 1);
    let outage = site.library.plan(Fault::Html { status: 503 }.always());
    site.sync(&["--set", "breaker.failure_threshold=3"]).ends(69);
    assert_eq!(lives.try_iter().count(), 0, "nothing was read");
    site.library.with(|simulator| simulator.cancel(outage));
    site.sync(&[]).ends(0);
    assert_eq!(lives.try_iter().count(), 1);
}
