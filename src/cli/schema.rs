//! `schema`: the JSON Schemas of what goes in and comes out.

use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::terminal;
use crate::config;
use crate::ops::alert::Notice;
use crate::sink::event;
use crate::sync::report::{PassSummary, StatusReport};

/// What `schema` takes.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which one
    #[arg(value_enum)]
    pub name: SchemaName,
}

/// The schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// The configuration file
    Config,
    /// One event, as sinks write it
    Change,
    /// What `status --json` prints
    Status,
    /// The last line of `sync --json`
    Summary,
    /// What `alerts.webhook` is sent
    Alert,
}

impl SchemaName {
    /// Every schema.
    pub const ALL: [Self; 5] = [Self::Config, Self::Change, Self::Status, Self::Summary, Self::Alert];

    /// The name of its file in `schemas/`.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Config => "config.json",
            Self::Change => "change.json",
            Self::Status => "status.json",
            Self::Summary => "summary.json",
            Self::Alert => "alert.json",
        }
    }

    /// The schema as the code has it, as it stands in its file.
    ///
    /// # Errors
    /// Never in practice: a schema is plain JSON.
    pub fn text(self) -> serde_json::Result<String> {
        let schema = match self {
            Self::Config => config::schema(),
            Self::Change => event::schema(),
            Self::Status => schemars::schema_for!(StatusReport),
            Self::Summary => schemars::schema_for!(PassSummary),
            Self::Alert => schemars::schema_for!(Notice),
        };
        serde_json::to_string_pretty(&schema).map(|text| text + "\n")
    }
}

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    terminal::data(args.name.text()?.trim_end())?;
    Ok(Exit::Ok)
}
