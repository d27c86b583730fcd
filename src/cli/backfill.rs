//! `backfill`: records read once more.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tokio::time::Instant;

use crate::app::{self, Backfilled, Shown};
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::sync::{StreamName, page, tell, tell_failure};
use crate::cli::{dispatch, terminal};
use crate::sync::backfill::Via;

mod bar;
mod plan;
pub(in crate::cli) mod request;

/// What `backfill` takes.
#[derive(Debug, Clone, Args)]
pub struct BackfillArgs {
    /// The stream
    #[arg(value_enum, value_name = "STREAM")]
    pub stream: StreamName,
    /// Only these record numbers, both ends included: A..B, A.., ..B or A
    #[arg(long, value_name = "A..B", conflicts_with = "ids_file")]
    pub ids: Option<String>,
    /// Only the record numbers in this file, one a line in any spelling; lines that begin with # are passed over
    #[arg(long, value_name = "FILE")]
    pub ids_file: Option<PathBuf>,
    /// Only what was updated at this time or later: 2024-03-09T02:14:07Z, or a day in sierra.local_zone
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only what was updated before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only what is at this location, such as main*; may be repeated
    #[arg(long = "location", value_name = "CODE")]
    pub locations: Vec<String>,
    /// Emits to this sink alone what did not change; what is new goes to every sink. Needs --force
    #[arg(long, value_name = "NAME", requires = "force")]
    pub sink: Option<String>,
    /// Emits records that did not change, too
    #[arg(long)]
    pub force: bool,
    /// How records are read; what is emitted is the same either way. marc-export is for bibs and ranges
    #[arg(long, value_enum, default_value_t = ViaName::List, value_name = "WAY")]
    pub via: ViaName,
    /// Says what it would take, and asks Sierra nothing
    #[arg(long)]
    pub plan: bool,
    /// Sits out long quota waits instead of ending with exit code 75
    #[arg(long)]
    pub wait: bool,
}

/// How records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViaName {
    /// By lists of whole records
    List,
    /// By lists without varFields and Sierra's export of MARC
    MarcExport,
}

impl From<ViaName> for Via {
    fn from(name: ViaName) -> Self {
        match name {
            ViaName::List => Self::List,
            ViaName::MarcExport => Self::MarcExport,
        }
    }
}

/// Runs the command: the summary is the last thing on stdout, as text or as one line of JSON.
///
/// # Errors
/// When the command line or the configuration is wrong, or nothing could be done at all.
pub async fn run(args: BackfillArgs, global: &Global) -> anyhow::Result<Exit> {
    let (began, stream) = (Instant::now(), args.stream.into());
    let ended = carry_out(args, global).await;
    ended.inspect_err(|error| tell_failure(error, global, began, &[stream]))
}

async fn carry_out(args: BackfillArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let order = request::order(&args, &config)?;
    if args.plan {
        let planned: Backfilled = app::plan_backfill(&config, &order).await?;
        terminal::data(&if global.json { plan::json(&planned) } else { plan::page(&planned, order.stream) })?;
        return Ok(Exit::Ok);
    }
    let bar = bar::bar(global.quiet);
    let shown: Option<Shown> = bar.clone().map(|bar| -> Shown { Arc::new(move |view| bar::show(&bar, view)) });
    let summary = app::backfill(config, &order, shown).await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let summary = summary?;
    let exit = Exit::of_code(summary.exit).unwrap_or(Exit::Unavailable);
    tell(&summary, exit, global, |summary| page::of_backfill(summary, order.stream))?;
    Ok(exit)
}
