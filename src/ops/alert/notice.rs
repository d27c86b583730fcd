//! One message to people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::{Cause, Severity};
use super::finding::Finding;

/// What a webhook is sent (schema `schemas/alert.json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Names this message: sent again, it has the same. Equal to the header `webhook-id`.
    pub id: String,
    /// Names the alert: its reminders and its recovery have the same.
    pub alert: String,
    /// Whether it begins, goes on or is over.
    pub kind: NoticeKind,
    /// What is wrong.
    pub cause: Cause,
    /// The stream, sink or endpoint; empty where it concerns everything.
    pub subject: String,
    /// How grave it is.
    pub severity: Severity,
    /// One or two sentences.
    pub message: String,
    /// The command that repairs it, or shows more.
    pub command: String,
    /// Since when it is wrong.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
    /// When this was said.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// Everything in one line, where chat services look for it.
    pub text: String,
}

/// Kinds of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Something is wrong.
    Raised,
    /// It still is, a day later.
    Reminder,
    /// It is over.
    Recovered,
}

impl Notice {
    /// A message of `kind` about `finding`, which is so `since`. `number` counts the messages of this state.
    pub(super) fn new(kind: NoticeKind, finding: &Finding, since: Timestamp, at: Timestamp, number: u64) -> Self {
        let Finding { cause, subject, message, command, .. } = finding.clone();
        let stamp = since.as_second();
        let alert = if subject.is_empty() {
            format!("{}-{stamp}", cause.name())
        } else {
            format!("{}-{subject}-{stamp}", cause.name())
        };
        let text = match kind {
            NoticeKind::Raised => format!("sierra-sync: {message} Run `{command}`."),
            NoticeKind::Reminder => format!("sierra-sync, still: {message} Run `{command}`."),
            NoticeKind::Recovered => format!("sierra-sync, over: {message}"),
        };
        let id = format!("{alert}-{number}");
        let severity = cause.severity();
        Self { schema: 1, id, alert, kind, cause, subject, severity, message, command, since, at, text }
    }
}
