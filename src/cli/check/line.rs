//! One line of `check`.

use serde::Serialize;

use crate::cli::exit::Exit;

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeLine {
    /// The probe: `config`, `token`, `stream bibs`, …
    pub probe: String,
    /// Whether all is well, or well enough.
    pub ok: bool,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What it means to the exit code.
    #[serde(skip)]
    pub exit: Exit,
}

impl ProbeLine {
    /// All is well.
    #[must_use]
    pub fn good(probe: &str, message: impl Into<String>) -> Self {
        Self { probe: probe.to_owned(), ok: true, message: message.into(), hint: None, exit: Exit::Ok }
    }

    /// It works, and something could be better.
    #[must_use]
    pub fn note(probe: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::good(probe, message) }
    }

    /// It does not work, which ends the command with `exit`.
    #[must_use]
    pub fn bad(probe: &str, message: impl Into<String>, hint: Option<String>, exit: Exit) -> Self {
        Self { ok: false, hint, exit, ..Self::good(probe, message) }
    }

    /// The line as it is printed.
    ///
    /// # Errors
    /// Never in practice: a line is plain JSON.
    pub fn text(&self, is_json: bool) -> serde_json::Result<String> {
        if is_json {
            return serde_json::to_string(self);
        }
        let mark = match (self.ok, &self.hint) {
            (true, None) => "ok  ",
            (true, Some(_)) => "note",
            (false, _) => "FAIL",
        };
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        Ok(format!("{mark} {}: {}{hint}", self.probe, self.message))
    }
}
