//! A process that commits slices until it is ended, so that its end can be watched from outside.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sierra_sync::clock::SystemClock;
use sierra_sync::privacy::Keyring;
use sierra_sync::record::Stream;
use sierra_sync::store::{SledStore, StoreSettings};
use sierra_sync::sync::ports::{Slice, Store, StoreError};
use sierra_sync::sync::{LedgerRow, RememberedKey, Seq};

use super::changes::{bib_holding, live, number, position, positions, row};
use super::subject::{is_ours, once_free};

/// Names the state directory of the child, and tells a test run that it is the child.
const STATE: &str = "SIERRA_SYNC_TEST_CHILD_STATE";

/// Slices that a child commits at most: far more than any test waits for.
const MOST_ROUNDS: u64 = 2_000;

/// Changes in each slice of the child.
pub(crate) const SLICE: u64 = 20;

/// The state directory, when this process is a child.
pub(crate) fn state_of_this_child() -> Option<PathBuf> {
    std::env::var_os(STATE).map(PathBuf::from)
}

/// A child and what it says. It is killed with its owner, so that a test that fails leaves nothing running.
pub(crate) struct Running {
    child: Child,
    pub lines: Receiver<String>,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the child, unless it has ended, and waits until it is gone. One that is traced would go on without its
    /// tracer: so it is killed itself, and the tracer ends with it.
    pub(crate) fn kill(&mut self) {
        let traced = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid())).unwrap_or_default();
        if traced.is_empty() {
            self.child.kill().unwrap();
        } else {
            Command::new("kill").arg("-KILL").args(traced.split_whitespace()).status().unwrap();
        }
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts this test binary again, as a child that works in `state`. `shell` is put before it, and may limit it.
pub(crate) fn start(state: &Path, shell: &str) -> Running {
    begin(state, &format!("{shell} exec"))
}

/// The same under `tracer`, which is given the command that it is to run.
pub(crate) fn start_traced(state: &Path, tracer: &str) -> Running {
    begin(state, tracer)
}

fn begin(state: &Path, shell: &str) -> Running {
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new("bash")
        .args(["-c", &format!("{shell} \"$0\" \"$@\"")])
        .arg(this)
        .args(["--exact", "store::child::works_until_it_is_ended", "--nocapture", "--test-threads=1"])
        .env(STATE, state)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Running { child, lines }
}

pub(crate) fn open(state: &Path) -> Result<SledStore, StoreError> {
    let settings = StoreSettings {
        path: state.to_owned(),
        outbox_max_size: u64::MAX,
        min_free: 0,
        retention: Duration::from_secs(1),
    };
    once_free(|| SledStore::open(&settings, Arc::new(Keyring::for_tests(1)), Arc::new(SystemClock)), is_ours)
}

/// Slice `round`: its changes, the position that passes them, and what is remembered of them.
pub(crate) fn slice_of(round: u64) -> Slice {
    let ids = || round * SLICE..(round + 1) * SLICE;
    Slice {
        changes: ids().map(|id| bib_holding(id, text_of(id))).collect(),
        remembered: ids().map(|id| (RememberedKey::Bib(number(id)), live(0))).collect(),
        rows: vec![LedgerRow { position: Some(number(ids().end - 1)), ..row(Stream::Bibs, 1) }],
        ..Slice::default()
    }
}

/// A text of its own for each id, of many lengths, that does not compress much.
pub(crate) fn text_of(id: u64) -> String {
    (0..id * 37 % 300).map(|line| format!("<{:x}>", (id + 1) * (line + 1) * 0x9e37_79b9)).collect()
}

/// Not a test of its own: what the child does. Without its variable it does nothing.
#[test]
fn works_until_it_is_ended() {
    let Some(state) = state_of_this_child() else { return };
    let mut said = std::io::stdout();
    // The harness has begun a line with the name of this test.
    writeln!(said).unwrap();
    let store = match open(&state) {
        Ok(store) => store,
        Err(error) => return writeln!(said, "failed {:?}", error.kind).unwrap(),
    };
    writeln!(said, "opened").unwrap();
    if store.sink_positions().unwrap().is_empty() {
        store.set_sink_positions(&positions(&[("archive", position(Seq::ZERO, &Stream::ALL))])).unwrap();
    }
    let done = store.ledger(Stream::Bibs).unwrap().first().and_then(|row| row.position);
    let next = done.map_or(0, |position| position.value() / SLICE + 1);
    for round in next..next + MOST_ROUNDS {
        let committed = store.commit(slice_of(round));
        let confirmed = committed.and_then(|_| {
            // Every third slice is delivered and trimmed, so that kills fall into that too.
            let Some(change) = store.outbox_after(Seq::ZERO, 1, 1)?.pop().filter(|_| round % 3 == 0) else {
                return Ok(());
            };
            store.set_sink_positions(&positions(&[("archive", position(change.seq, &Stream::ALL))]))?;
            writeln!(said, "confirmed {}", change.seq).unwrap();
            Ok(())
        });
        match confirmed {
            Ok(()) => writeln!(said, "acknowledged {round}").unwrap(),
            Err(error) => return writeln!(said, "failed {:?}", error.kind).unwrap(),
        }
    }
}
