//! What is not there or not free is told in a sentence, each kind with its own exit code.

use std::net::TcpListener;
use std::process::Stdio;

use super::support::{Bench, Run};

/// Runs `sync` against a port where nobody listens, trying once.
fn sync(bench: &Bench, more: &[&str]) -> Run {
    let nobody = "sierra.base_url=http://127.0.0.1:1/iii/sierra-api/v6";
    bench.run(&[&["sync", "--set", nobody, "--set", "retry.max_attempts=1"], more].concat())
}

#[test]
fn a_host_that_does_not_answer() {
    let run = sync(&Bench::configured(), &[]);
    assert_eq!(run.code, 69, "{run:?}");
    assert!(run.stdout.contains("Not up to date") && run.stdout.contains("could not connect"), "{run:?}");
}

#[test]
fn a_host_that_does_not_answer_as_json() {
    let run = sync(&Bench::configured(), &["--json"]);
    let summary = run.json_lines().pop().expect("the last line of stdout");
    assert_eq!((run.code, &summary["exit"], &summary["ok"]), (69, &69.into(), &false.into()));
    assert!(summary["streams"]["bibs"]["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{summary}");
}

#[test]
fn a_state_that_cannot_be_written() {
    let bench = Bench::configured();
    bench.write("file", "in the way");
    let run = sync(&bench, &["--set", "state.path=./file/state"]);
    assert_eq!((run.code, run.stdout.as_str()), (74, ""), "{run:?}");
    assert!(run.stderr.starts_with("sierra-sync: failed to ") && run.stderr.contains("./file/state"), "{run:?}");
}

#[test]
fn an_output_that_cannot_be_written() {
    let bench = Bench::configured();
    bench.write("file", "in the way");
    let run = sync(&bench, &["--set", "sinks.archive.path=./file/out"]);
    assert_eq!(run.code, 69, "{run:?}");
    assert!(format!("{}{}", run.stdout, run.stderr).contains("./file/out"), "{run:?}");
}

/// The first process waits for an answer that never comes, and so holds the state; it was seen to ask.
#[test]
fn a_state_that_another_process_holds() {
    let bench = Bench::configured();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let base_url = format!("sierra.base_url=http://{address}/iii/sierra-api/v6");
    let mut command = bench.command(&["sync", "--set", &base_url]);
    let mut holder = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let asked = silent.accept();
    let run = sync(&bench, &[]);
    holder.kill().expect("it still waits");
    holder.wait().expect("it was killed");
    assert!(asked.is_ok());
    assert_eq!((run.code, run.stdout.as_str()), (75, ""), "{run:?}");
    assert!(run.stderr.contains(&holder.id().to_string()), "the holder is not named: {run:?}");
}

#[test]
fn a_port_for_the_simulator_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let run = Bench::new().run(&["simulate", "--bibs", "3", "--items", "3", "--listen", &address]);
    assert_eq!((run.code, run.stdout.as_str()), (69, ""), "{run:?}");
    let expected = format!("sierra-sync: failed to listen on {address}; choose another --listen");
    assert!(run.stderr.starts_with(&expected), "{run:?}");
}
