//! A command that ended without its document, as a program reads it.
//!
//! With `--json` whoever reads the last line of stdout finds one object in every ending: the document, or else this.
//! Commands that print a list print no such object: each of their lines is an entry, and the exit code tells the rest.

use serde::Serialize;

use crate::cli::args::Command;
use crate::cli::exit::{Declined, Exit, Refused};
use crate::cli::{breaker, cursor, quarantine, queue};
use crate::config::Problems;
use crate::ops::OpsError;
use crate::privacy::KeyFileError;
use crate::sync::capture::error::source_report;
use crate::sync::ports::{SinkError, SourceError, StoreError, StoreErrorKind};
use crate::sync::report::summary::ErrorReport;

/// What stands in place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Never.
    pub ok: bool,
    /// The exit code of the process.
    pub exit: u8,
    /// Why.
    pub error: ErrorReport,
}

impl Failure {
    /// The failure of a command that ended with `error`.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        Self { schema: 1, ok: false, exit: Exit::of_error(error).code(), error: report(error) }
    }
}

/// Whether `command` answers with one document, and does not say itself what failed, as `sync` and `backfill` do.
#[must_use]
pub(super) fn stands_in_for(command: &Command) -> bool {
    match command {
        Command::Status(_)
        | Command::Recover(_)
        | Command::Demo(_)
        | Command::Reconcile(_)
        | Command::Pause(_)
        | Command::Resume(_) => true,
        Command::Cursor(args) => !matches!(args.order, cursor::Order::Show { .. } | cursor::Order::History),
        Command::Breaker(args) => !matches!(args.order, breaker::Order::History),
        Command::Queue(args) => !matches!(args.order, queue::Order::List { .. } | queue::Order::Export { .. }),
        Command::Quarantine(args) => matches!(args.order, quarantine::Order::Show { .. }),
        Command::Sync(_)
        | Command::Backfill(_)
        | Command::Run(_)
        | Command::Check(_)
        | Command::Init(_)
        | Command::Convert(_)
        | Command::Simulate(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_) => false,
    }
}

/// `error` as programs read it: by the cause that knows best, in the words that people read on stderr.
#[must_use]
pub(super) fn report(error: &anyhow::Error) -> ErrorReport {
    let known = error.chain().find_map(of_cause).unwrap_or_else(|| bare("unavailable", None));
    ErrorReport { message: format!("{error:#}"), ..known }
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorReport> {
    if cause.is::<Problems>() {
        return Some(bare("config", Some("mend the configuration; `sierra-sync check --offline` tells every problem")));
    }
    if cause.is::<Refused>() || cause.is::<OpsError>() {
        return Some(bare("usage", None));
    }
    if cause.is::<Declined>() {
        return Some(bare("declined", None));
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(match error.kind {
            StoreErrorKind::Held { .. } => bare("held", Some("run it again once that process has ended, or stop it")),
            StoreErrorKind::Superseded
            | StoreErrorKind::KeyMissing
            | StoreErrorKind::NewerFormat
            | StoreErrorKind::Corrupt
            | StoreErrorKind::Io
            | StoreErrorKind::Exhausted => bare("store", None),
        });
    }
    if let Some(error) = cause.downcast_ref::<SourceError>() {
        return Some(source_report(error));
    }
    if let Some(error) = cause.downcast_ref::<SinkError>() {
        return Some(bare("sink", Some(&error.hint)));
    }
    (cause.is::<std::io::Error>() || cause.is::<KeyFileError>()).then(|| bare("io", None))
}

fn bare(kind: &str, hint: Option<&str>) -> ErrorReport {
    ErrorReport {
        kind: kind.to_owned(),
        message: String::new(),
        endpoint: None,
        status_code: None,
        code: None,
        correlation_id: None,
        hint: hint.map(str::to_owned),
    }
}
