//! `sync`: one pass, for cron and timers.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use tokio::time::Instant;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};
use crate::cli::{dispatch, failure, terminal};
use crate::config::Config;
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

/// Runs the command: the summary is the last thing on stdout, as text or as one line of JSON. As JSON it is there in
/// every ending; as text, with `--quiet`, only where something went wrong, and on stderr.
///
/// # Errors
/// When the configuration is wrong or nothing could be done at all.
pub async fn run(args: SyncArgs, global: &Global) -> anyhow::Result<Exit> {
    let began = Instant::now();
    let mut streams: Vec<Stream> = args.streams.iter().map(|name| (*name).into()).collect();
    let passed = pass(&args, global, &mut streams).await;
    let summary = passed.inspect_err(|error| tell_failure(error, global, began, &streams))?;
    let exit = exit_of(&summary);
    tell(&summary, exit, global, page::of)?;
    Ok(exit)
}

/// `streams` becomes those of the configuration, as soon as that is known and none was named.
async fn pass(args: &SyncArgs, global: &Global, streams: &mut Vec<Stream>) -> anyhow::Result<PassSummary> {
    let config = dispatch::load(global)?;
    if streams.is_empty() {
        streams.extend(config.streams.iter().map(|settings| settings.stream));
    }
    configured(streams, &config)?;
    app::sync(config, args).await
}

/// A stream that is named and not configured is a slip of the command line, and no stream that is up to date.
fn configured(streams: &[Stream], config: &Config) -> Result<(), Refused> {
    let Some(stranger) = streams.iter().find(|stream| config.stream(**stream).is_none()) else { return Ok(()) };
    let known: Vec<&str> = config.streams.iter().map(|settings| settings.stream.name()).collect();
    let known = known.join(", ");
    Err(Refused(format!("--stream {stranger}: [streams.{stranger}] is not configured; configured are: {known}")))
}

/// Says what came of it. Whoever asks for quiet, such as a line of cron's, which mails every word, hears of errors only.
///
/// # Errors
/// When stdout is gone.
pub(in crate::cli) fn tell(
    summary: &PassSummary,
    exit: Exit,
    global: &Global,
    page: impl FnOnce(&PassSummary) -> String,
) -> anyhow::Result<()> {
    match (global.json, global.quiet, exit) {
        (true, ..) => terminal::data(&serde_json::to_string(summary)?)?,
        (false, true, Exit::Ok) => {}
        (false, true, _) => terminal::talk(&page(summary)),
        (false, false, _) => terminal::data(&page(summary))?,
    }
    Ok(())
}

/// The summary of a pass that came to nothing, where a program reads it.
pub(in crate::cli) fn tell_failure(error: &anyhow::Error, global: &Global, began: Instant, streams: &[Stream]) {
    if global.json {
        let elapsed = began.elapsed().as_secs_f64();
        let report = failure::report(error);
        // Nothing is said of what nobody knows.
        let streams: &[Stream] = if error.is::<app::CutShort>() { &[] } else { streams };
        dispatch::tell(&PassSummary::failed(Exit::of_error(error).code(), elapsed, streams, report));
    }
}

/// The same where the command line could not be understood, but for what it asks for.
pub(in crate::cli) fn tell_misuse(arguments: &[OsString], usage: &clap::Error) {
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("--json") && (has("sync") || has("backfill")) {
        let error = failure::report(&Refused(usage.render().to_string().trim_end().to_owned()).into());
        dispatch::tell(&PassSummary::failed(Exit::Usage.code(), 0.0, &[], error));
    }
}

/// The engine decides on the code, since it alone knows what is new in this run.
fn exit_of(summary: &PassSummary) -> Exit {
    Exit::of_code(summary.exit).unwrap_or(Exit::Unavailable)
}
