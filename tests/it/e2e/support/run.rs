//! A run of the real binary, under way or ended.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use sierra_sync::cli::schema::SchemaName;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Beyond this a run or a wait has failed, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process under way. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    /// Outputs go to files, so that a talkative process never waits for its reader.
    outputs: TempDir,
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Run {
    /// `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(super) fn start<S: AsRef<OsStr>>(
        directory: &Path,
        variables: &BTreeMap<String, String>,
        arguments: &[S],
    ) -> Self {
        Self::of(Command::new(env!("CARGO_BIN_EXE_sierra-sync")).args(arguments), directory, variables)
    }

    pub(super) fn start_under<S: AsRef<OsStr>>(
        shell: &str,
        directory: &Path,
        variables: &BTreeMap<String, String>,
        arguments: &[S],
    ) -> Self {
        Self::start_by(&format!("{shell} exec"), directory, variables, arguments)
    }

    pub(super) fn start_traced<S: AsRef<OsStr>>(
        tracer: &str,
        directory: &Path,
        variables: &BTreeMap<String, String>,
        arguments: &[S],
    ) -> Self {
        Self::start_by(&format!("exec {tracer}"), directory, variables, arguments)
    }

    fn start_by<S: AsRef<OsStr>>(
        starter: &str,
        directory: &Path,
        variables: &BTreeMap<String, String>,
        arguments: &[S],
    ) -> Self {
        let script = format!("{starter} \"$0\" \"$@\"");
        let mut command = Command::new("/bin/bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_sierra-sync")]).args(arguments);
        Self::of(&mut command, directory, variables)
    }

    fn of(command: &mut Command, directory: &Path, variables: &BTreeMap<String, String>) -> Self {
        let outputs = tempfile::tempdir().expect("a directory");
        let output = |name| File::create(outputs.path().join(name)).expect("a file");
        let child = command
            .current_dir(directory)
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("the binary runs");
        Self { child, outputs }
    }

    /// What it said on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.said("stderr")
    }

    /// What it said on stdout so far.
    pub(crate) fn stdout(&self) -> String {
        self.said("stdout")
    }

    /// Sends it a signal by name: `TERM`, `HUP`, `KILL`.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("there is a kill").success(), "the process is gone: {}", self.stderr());
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> Run {
        let status = patiently("the end of the process", || self.child.try_wait().expect("it is our child"));
        self.run(status)
    }

    /// Kills it; `false` when it had ended by itself.
    pub(crate) fn killed(mut self) -> bool {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child").signal() == Some(9)
    }

    fn run(&self, status: ExitStatus) -> Run {
        let code = status.code();
        assert!(code.is_some() || status.signal() == Some(9), "{status}: {}", self.stderr());
        Run { code, stdout: self.said("stdout"), stderr: self.stderr() }
    }

    fn said(&self, name: &str) -> String {
        fs::read_to_string(self.outputs.path().join(name)).expect("it says UTF-8")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it has ended, which is as good.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Run {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that stderr holds `sentence`.
    #[track_caller]
    pub(crate) fn complains(self, sentence: &str) -> Self {
        assert!(self.stderr.contains(sentence), "no {sentence:?} in: {}", self.stderr);
        self
    }

    /// The lines of stdout as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}"))).collect()
    }

    /// The last line of stdout as a summary: it passes its schema, its exit is the process's, and its counts add up.
    #[track_caller]
    pub(crate) fn summary(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_else(|| panic!("nothing on stdout: {}", self.stderr));
        let summary: Value = serde_json::from_str(last).expect("the last line is JSON");
        assert_valid(SchemaName::Summary, [&summary]);
        assert_eq!(summary["exit"].as_i64(), self.code.map(i64::from));
        assert_eq!(summary["ok"], self.code == Some(0));
        for stream in summary["streams"].as_object().expect("an object").values() {
            let sum: u64 = ["changed", "unchanged", "stale", "deleted", "deleted_unseen", "quarantined"]
                .map(|part| stream[part].as_u64().expect("a count"))
                .into_iter()
                .sum();
            assert_eq!(stream["fetched"], sum, "{stream}");
        }
        summary
    }
}

/// Asserts that each document passes a schema, as it stands in `schemas/`.
#[track_caller]
pub(crate) fn assert_valid<'a>(schema: SchemaName, documents: impl IntoIterator<Item = &'a Value>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema.file());
    let text = fs::read_to_string(path).expect("it is there");
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a schema");
    for document in documents {
        let problems: Vec<String> = validator.iter_errors(document).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{document}\n{problems:?}");
    }
}

/// Looks again and again until there is something to see.
#[track_caller]
pub(crate) fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Not on the runtime: what is looked at may be another run of the binary.
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        runtime.block_on(async { sleep(Duration::from_millis(2)).await });
    }
}
