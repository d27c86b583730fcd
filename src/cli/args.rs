//! The command line: commands and options that all of them share.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::{
    backfill, breaker, check, completions, convert, cursor, demo, init, man, pausing, quarantine, queue, reconcile,
    recover, run, schema, simulate, status, sync,
};
use crate::telemetry::{LogFormat, LogLevel};

/// Keeps a faithful copy of a Sierra ILS flowing to files and standard output.
#[derive(Debug, Parser)]
#[command(name = "sierra-sync", version, propagate_version = true, max_term_width = 100)]
pub struct Arguments {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The configuration file [default: ./sierra-sync.toml, then /etc/sierra-sync/sierra-sync.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Overrides one key of the configuration, e.g. --set retry.cap=60s; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Prints data as JSON; for convert, whose data are records, the counts on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// How log lines on stderr are written
    #[arg(long, global = true, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub log_format: Format,
    /// The least grave lines that are logged
    #[arg(long, global = true, value_enum, default_value_t = Level::Info, value_name = "LEVEL")]
    pub log: Level,
    /// Errors only: nothing is logged or said of what went well
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands that are built. What the design names beside them is in `unbuilt`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows the main job on this machine, with nothing to set up
    Demo(demo::DemoArgs),
    /// Writes a commented configuration to begin with
    Init(init::InitArgs),
    /// Checks the configuration and, unless --offline, everything it points to
    Check(check::CheckArgs),
    /// Brings every sink up to date, once
    Sync(sync::SyncArgs),
    /// Follows Sierra and delivers as changes come, until it is stopped
    Run(run::RunArgs),
    /// Reads records once more: a range, a list, a time, a place, or a whole stream
    Backfill(backfill::BackfillArgs),
    /// Compares a whole stream with what is known of it, and puts right what no window shows
    Reconcile(reconcile::ReconcileArgs),
    /// Shows how fresh everything is, and what to do if it is not
    Status(status::StatusArgs),
    /// Shows, checks and delivers what waits in the durable queue
    Queue(queue::QueueArgs),
    /// Shows what was set aside, and why
    Quarantine(quarantine::QuarantineArgs),
    /// Shows where each stream stands, and puts it somewhere else without losing anything
    Cursor(cursor::CursorArgs),
    /// Holds a stream or a sink back, until `resume`
    Pause(pausing::PausingArgs),
    /// Lets a stream or a sink go on
    Resume(pausing::PausingArgs),
    /// Holds back all calls to Sierra, or lets them go again
    Breaker(breaker::BreakerArgs),
    /// Comes back from a stall, slowly, until the quota holds
    Recover(recover::RecoverArgs),
    /// Converts MARC records between formats
    Convert(convert::ConvertArgs),
    /// Runs a Sierra look-alike to try settings on
    Simulate(simulate::SimulateArgs),
    /// Prints a JSON Schema
    Schema(schema::SchemaArgs),
    /// Prints what a shell needs to complete this command line
    Completions(completions::CompletionsArgs),
    /// Prints a manual page, or writes all of them
    Man(man::ManArgs),
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One flat JSON object a line
    Json,
}

/// The least grave lines that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Someone must act
    Error,
    /// Something went wrong and was coped with
    Warn,
    /// Milestones
    Info,
    /// Each call
    Debug,
    /// Everything
    Trace,
}

impl From<Format> for LogFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
        }
    }
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
            Level::Trace => Self::TRACE,
        }
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, such as retry.cap=60s".to_owned()),
    }
}
