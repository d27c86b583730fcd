//! One line of `check`.

use serde::Serialize;

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeLine {
    /// The probe: `config`, `token`, `stream bibs`, …
    pub probe: String,
    /// Whether all is well.
    pub ok: bool,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ProbeLine {
    /// All is well.
    #[must_use]
    pub fn good(probe: &str, message: &str) -> Self {
        Self { probe: probe.to_owned(), ok: true, message: message.to_owned(), hint: None }
    }

    /// Something is wrong.
    #[must_use]
    pub fn bad(probe: &str, message: &str, hint: Option<String>) -> Self {
        Self { probe: probe.to_owned(), ok: false, message: message.to_owned(), hint }
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
