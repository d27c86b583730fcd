//! A configuration text under test.

use std::fs;
use std::path::PathBuf;

use sierra_sync::config::{self, Config, Environment, Problems, Warning};

/// A file of the project.
pub(super) fn fixture(name: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/config")).join(name);
    fs::read_to_string(path).expect("the fixture is there")
}

/// The minimal configuration with `more` behind it.
pub(super) fn minimal_with(more: &str) -> String {
    fixture("minimal.toml") + more
}

/// Loads `text` with the given variables and flags.
pub(super) struct Load<'t> {
    text: &'t str,
    variables: Vec<(String, String)>,
    flags: Vec<(String, String)>,
}

impl<'t> Load<'t> {
    /// With the client secret in the environment, and nothing else.
    pub(super) fn text(text: &'t str) -> Self {
        Self::without_secret(text).variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret")
    }

    pub(super) fn without_secret(text: &'t str) -> Self {
        Self { text, variables: Vec::new(), flags: Vec::new() }
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn flag(mut self, key: &str, value: &str) -> Self {
        self.flags.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn result(self) -> Result<(Config, Vec<Warning>), Problems> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sierra-sync.toml");
        fs::write(&path, self.text).expect("it can be written");
        let environment: Environment = self.variables.into_iter().collect();
        config::load(Some(&path), &environment, &self.flags)
    }

    pub(super) fn config(self) -> Config {
        self.result().unwrap_or_else(|problems| panic!("{problems}")).0
    }

    pub(super) fn warnings(self) -> Vec<String> {
        let (_, warnings) = self.result().unwrap_or_else(|problems| panic!("{problems}"));
        warnings.iter().map(ToString::to_string).collect()
    }

    /// Each problem on its own line, without the directory of the file.
    pub(super) fn problems(self) -> Vec<String> {
        let problems = self.result().expect_err("it is wrong");
        let line = |problem: String| match problem.find("sierra-sync.toml") {
            Some(start) if problem.starts_with('/') => problem.split_at(start).1.to_owned(),
            _ => problem,
        };
        problems.iter().map(|problem| line(problem.to_string())).collect()
    }

    /// The only problem.
    pub(super) fn problem(self) -> String {
        let mut problems = self.problems();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        problems.remove(0)
    }
}
