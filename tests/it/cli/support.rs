//! Runs the real binary in a directory of its own, with an environment of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A directory to run the binary in.
pub(super) struct Bench {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

/// What a run said.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), variables: Vec::new() }
    }

    /// With a `sierra-sync.toml` that is valid, its secret given by the environment.
    pub(super) fn configured() -> Self {
        let text = include_str!("../../../fixtures/config/minimal.toml");
        Self::with_config(text).variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret")
    }

    pub(super) fn with_config(text: &str) -> Self {
        let bench = Self::new();
        bench.write("sierra-sync.toml", text);
        bench
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&self.command(arguments).output().expect("the binary runs"))
    }

    /// The command, not yet run.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sierra-sync"));
        command.args(arguments).current_dir(self.path()).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Run {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it says UTF-8");
        let code = output.status.code().expect("it was not killed");
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The lines of stdout as JSON.
    pub(super) fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}"))).collect()
    }
}
