//! `sync`: one pass, for cron and timers.

use clap::{Args, ValueEnum};

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{dispatch, terminal};
use crate::record::Stream;
use crate::sync::report::PassSummary;

pub(in crate::cli) mod page;

/// What `sync` takes.
#[derive(Debug, Clone, Default, Args)]
pub struct SyncArgs {
    /// Only this stream; may be repeated [default: every stream that is configured]
    #[arg(long = "stream", value_enum, value_name = "STREAM")]
    pub streams: Vec<StreamName>,
    /// Reads and compares, and changes neither state nor sinks
    #[arg(long)]
    pub dry_run: bool,
    /// Sits out long quota waits instead of ending with exit code 75
    #[arg(long)]
    pub wait: bool,
}

/// A stream as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StreamName {
    /// Bibliographic records
    Bibs,
    /// Item records
    Items,
    /// Patron records
    Patrons,
}

impl From<StreamName> for Stream {
    fn from(name: StreamName) -> Self {
        match name {
            StreamName::Bibs => Self::Bibs,
            StreamName::Items => Self::Items,
            StreamName::Patrons => Self::Patrons,
        }
    }
}

/// Runs the command: the summary is the last thing on stdout, as text or as one line of JSON.
///
/// # Errors
/// When the configuration is wrong or nothing could be done at all.
pub async fn run(args: SyncArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let summary = app::sync(config, &args).await?;
    let text = if global.json { serde_json::to_string(&summary)? } else { page::of(&summary) };
    terminal::data(&text)?;
    Ok(exit_of(&summary))
}

/// The engine decides on the code, since it alone knows what is new in this run.
fn exit_of(summary: &PassSummary) -> Exit {
    Exit::of_code(summary.exit).unwrap_or(Exit::Unavailable)
}
