//! What is wrong with a configuration: every problem, each with its place, its key and what would be right.

use std::fmt;
use std::path::PathBuf;

use crate::config::path::KeyPath;

/// Everything that is wrong with a configuration; at least one problem, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// `None` when there is nothing wrong. Sorts by place: the file first, then the environment, then flags.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|left, right| (&left.place, &left.key).cmp(&(&right.place, &right.key)));
        problems.dedup();
        if problems.is_empty() { None } else { Some(Self(problems)) }
    }

    /// A single problem.
    #[must_use]
    pub fn one(problem: Problem) -> Self {
        Self(vec![problem])
    }

    /// The problems, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, noun) = (self.0.len(), if self.0.len() == 1 { "problem" } else { "problems" });
        write!(formatter, "{count} {noun} in the configuration")?;
        for problem in &self.0 {
            write!(formatter, "\n  {problem}")?;
        }
        Ok(())
    }
}

/// One thing that is wrong. Never holds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands.
    pub place: Place,
    /// The key; `None` when the text could not be read as TOML at all.
    pub key: Option<KeyPath>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.place)?;
        if let Some(key) = &self.key {
            write!(formatter, "{key}: ")?;
        }
        formatter.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Something that works but is hardly meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about.
    pub key: KeyPath,
    /// What will happen.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.key, self.message, self.hint)
    }
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the file; line and column count from 1, the column in characters.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// Nowhere in the file: something is missing.
    Missing {
        /// The file where it is missing; `None` when there is no file.
        path: Option<PathBuf>,
    },
    /// In an environment variable.
    Environment(String),
    /// In a `--set` flag.
    Flag,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(formatter, "{}:{line}:{column}", path.display()),
            Self::Missing { path: Some(path) } => write!(formatter, "{}", path.display()),
            Self::Missing { path: None } => formatter.write_str("environment"),
            Self::Environment(variable) => formatter.write_str(variable),
            Self::Flag => formatter.write_str("--set"),
        }
    }
}
