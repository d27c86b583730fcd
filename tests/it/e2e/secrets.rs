//! The client secret and session tokens are in nothing that the binary says or keeps, even at trace level.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sierra_sync::simulator::{Endpoint, Fault, Kind, Unauthorized};

use super::support::{Run, SECRET, Site};

/// What no run may say: the secret, the header that carries it, and the beginning of every token of the simulator.
fn forbidden(secret: &str) -> [String; 3] {
    [secret.to_owned(), STANDARD.encode(format!("simulator-key:{secret}")), "sim00".to_owned()]
}

#[track_caller]
fn assert_silent(secret: &str, run: &Run) {
    for text in forbidden(secret) {
        assert!(!run.stdout.contains(&text) && !run.stderr.contains(&text), "{text} in {run:?}");
    }
}

/// PRV-1, A13: in good runs and bad ones, in both forms of the log.
#[test]
fn neither_secret_nor_tokens_are_ever_told() {
    let mut site = Site::loaded();
    let ids = site.library.ids(Kind::Bibs);
    site.library.edits(|world| ids.iter().take(90).for_each(|id| world.edit_bib(*id).unwrap()));
    for fault in [Fault::RevokeTokens, Fault::Unauthorized(Unauthorized::Html), Fault::error(113)] {
        site.library.plan(fault.nth(1).at(Endpoint::Bibs));
    }
    // An answer that repeats what it was sent, as some proxies do.
    let echo = format!("Bearer sim0001-0123456789 Basic {}", STANDARD.encode(format!("simulator-key:{SECRET}")));
    let echo = Fault::Raw { status: 400, content_type: "text/plain".into(), headers: Vec::new(), body: echo };
    site.library.plan(echo.nth(5).at(Endpoint::Bibs));
    let mut runs = Vec::new();
    for format in ["json", "text"] {
        let log = ["--log", "trace", "--log-format", format];
        runs.push(site.sync(&log));
        runs.push(site.bench.run(&[&["check"], log.as_slice()].concat()));
        runs.push(site.bench.run(&[&["status"], log.as_slice()].concat()).ends(0));
    }
    assert!(runs.iter().any(|run| run.code != Some(0)) && runs.iter().any(|run| run.stderr.len() > 2000));
    runs.iter().for_each(|run| assert_silent(SECRET, run));
    for (path, content) in site.bench.files("").contents() {
        for text in forbidden(SECRET) {
            let is_held = memchr::memmem::find(content, text.as_bytes()).is_some();
            assert!(!is_held, "{text} in {}", path.display());
        }
    }

    site.give_secret(Some("canary-of-a-wrong-secret"));
    for format in ["json", "text"] {
        let run = site.sync(&["--log", "trace", "--log-format", format]).ends(77);
        assert_silent("canary-of-a-wrong-secret", &run);
    }
}
