//! `demo`: the main job with nothing to set up, as somebody sees it who runs it for the first time.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use super::support::{Bench, patiently};

/// The head of the answer to a GET.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_demo_shows_the_job_and_ends_with_its_verdict() {
    let bench = Bench::new();
    let demo = bench.start(&["demo", "--for", "25s", "--bibs", "60"]);
    let address = patiently("the dashboard", || {
        let said = demo.stderr();
        let (_, rest) = said.split_once("Dashboard: http://")?;
        rest.split_once("/\n").map(|(address, _)| address.to_owned())
    });
    for (path, content) in [("/livez", ""), ("/", "<html"), ("/metrics", "sierra_sync_"), ("/status", "\"streams\"")] {
        let answer = get(&address, path);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(content), "{path}: {answer}");
    }
    let second = bench.run(&["demo", "--for", "20s"]).ends(2).complains("another demo runs in");
    assert_eq!(second.stdout, "");

    let run = demo.ended().ends(0);
    assert!(run.stdout.starts_with("The outputs agree with the library.\n"), "{}", run.stdout);
    for said in ["First full load:", "  load: 60 bibs", "The library stands still."] {
        assert!(run.stderr.contains(said), "no {said:?} in {}", run.stderr);
    }
    for name in ["ndjson/manifest.json", "marcxml/manifest.json", "sierra-sync.toml"] {
        assert!(bench.path("sierra-sync-demo").join(name).is_file(), "{name}");
    }
}

#[test]
fn a_directory_that_no_demo_made_is_left_alone() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("sierra-sync-demo/state")).unwrap();
    bench.write("sierra-sync-demo/state/mine", "mine");
    let before = bench.files("");
    let run = bench.run(&["demo", "--for", "20s"]).ends(2).complains("sierra-sync-demo exists and no demo made it");
    assert_eq!(run.stdout, "");
    assert!(bench.files("") == before, "something changed");
}
