//! What systemd is told by the real service, and what lets it know that the loops go on.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::support::{Running, Site};

/// So many messages come before the one that is waited for, two a second: more only when it never comes.
const MESSAGES: usize = 200;

/// Stands for systemd: everything that it was told, in order.
struct Listener {
    socket: UnixDatagram,
    told: Vec<String>,
}

impl Listener {
    /// Waits until a message with this line came after the ones that were waited for before.
    #[track_caller]
    fn hears(&mut self, line: &str, service: &Running) -> String {
        for _ in 0..MESSAGES {
            let mut message = [0; 4096];
            let Ok(length) = self.socket.recv(&mut message) else { break };
            let message = String::from_utf8_lossy(&message[..length]).into_owned();
            self.told.push(message.clone());
            if message.lines().any(|told| told == line) {
                return message;
            }
        }
        panic!("no {line} after {:?}: {}", self.told, service.stderr())
    }
}

#[test]
fn systemd_hears_that_it_is_ready_how_it_goes_on_and_that_it_stops() {
    let mut site = Site::loaded();
    site.configure(|text| format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n"));
    let path = site.bench.path("notify");
    let socket = UnixDatagram::bind(&path).expect("binds");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let mut systemd = Listener { socket, told: Vec::new() };
    site.bench.set("NOTIFY_SOCKET", path.to_str().expect("UTF-8")).set("WATCHDOG_USEC", "1500000");
    let service = site.bench.start(&["run", "--log-format", "json"]);
    systemd.hears("READY=1", &service);
    // A sentence with each sign of life, and so it is the loops that it speaks for.
    let alive = systemd.hears("WATCHDOG=1", &service);
    assert!(alive.lines().any(|line| line.starts_with("STATUS=") && line.len() > "STATUS=".len()), "{alive}");
    systemd.hears("STATUS=All streams are fresh.", &service);
    service.signal("HUP");
    let reloading = systemd.hears("RELOADING=1", &service);
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    systemd.hears("READY=1", &service);
    service.signal("TERM");
    systemd.hears("STOPPING=1", &service);
    service.ended().ends(0);
}
