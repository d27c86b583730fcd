//! `queue`: what waits in the durable queue, for whom, and whether it is sound.

use clap::{Args, Subcommand};

use crate::app::{self, DrainReport, QueueEntry, QueueFilter, QueueQuestion, SinkLeft, VerifiedTree, VerifyReport};
use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};
use crate::cli::sync::StreamName;
use crate::cli::table::{counted, grouped};
use crate::cli::{answer, dispatch};

/// What `queue` takes.
#[derive(Debug, Args)]
pub struct QueueArgs {
    /// What to do
    #[command(subcommand)]
    pub order: Order,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Order {
    /// Lists what waits, in the order in which it will be delivered
    List {
        /// Which entries
        #[command(flatten)]
        filter: FilterArgs,
        /// At most so many
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
    /// Shows one waiting change as its sinks will get it
    Show {
        /// Its seq, as the list gives it
        seq: u64,
    },
    /// Prints everything that waits as NDJSON, and takes nothing out
    Export {
        /// Which entries
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Delivers what waits and captures nothing
    Drain,
    /// Reads the whole state and says whether it is sound
    Verify,
    /// Writes the state anew, so that it takes no more room than it needs; changes and their order stay as they are
    Compact {
        /// Says that this is meant: nothing else can work on the state meanwhile
        #[arg(long)]
        yes: bool,
    },
}

/// Which entries.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArgs {
    /// Only what waits for this sink
    #[arg(long, value_name = "NAME")]
    pub sink: Option<String>,
    /// Only this stream
    #[arg(long, value_enum, value_name = "STREAM")]
    pub stream: Option<StreamName>,
}

impl FilterArgs {
    fn filter(self, limit: Option<u64>) -> QueueFilter {
        QueueFilter { sink: self.sink, stream: self.stream.map(Into::into), limit }
    }
}

/// Runs the command.
///
/// # Errors
/// When the configuration is wrong, the state cannot be read, or nothing waits under the seq that was given.
pub async fn run(args: QueueArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let json = global.json;
    let as_it_is = |text: &str| Ok(text.to_owned());
    match args.order {
        Order::List { filter, limit } => {
            let question = QueueQuestion::List(filter.filter(limit));
            let mut count = 0_u64;
            let exit = app::queue(&config, &question, answer::printed(|text| {
                count += 1;
                if json { Ok(text.to_owned()) } else { Ok(entry(&serde_json::from_str(text)?)) }
            }))
            .await?;
            answer::remark(global, &match count {
                0 => "Nothing waits.".to_owned(),
                count => format!("{}.", counted(count, "entry waits", "entries wait")),
            });
            Ok(exit)
        }
        Order::Show { seq } => app::queue(&config, &QueueQuestion::Show { seq }, answer::printed(as_it_is)).await,
        Order::Export { filter } => {
            app::queue(&config, &QueueQuestion::Export(filter.filter(None)), answer::printed(as_it_is)).await
        }
        Order::Verify => {
            let print = answer::printed(|text| if json { Ok(text.to_owned()) } else { Ok(verified(&serde_json::from_str(text)?)) });
            app::queue(&config, &QueueQuestion::Verify, print).await
        }
        Order::Drain => drain(&config, json).await,
        Order::Compact { yes: false } => Err(Refused(
            "`queue compact` holds the state until it is done and needs as much free room as the state has content; say \
             it again with --yes"
                .to_owned(),
        )
        .into()),
        Order::Compact { yes: true } => {
            let compacted = app::compact(&config).await?;
            let text = if json {
                serde_json::json!({ "bytes_before": compacted.before, "bytes_after": compacted.after }).to_string()
            } else {
                format!("{} bytes before, {} after.", grouped(compacted.before), grouped(compacted.after))
            };
            answer::outcome(global, Exit::Ok, &text)?;
            Ok(Exit::Ok)
        }
    }
}

async fn drain(config: &crate::config::Config, json: bool) -> anyhow::Result<Exit> {
    let print =
        answer::printed(|text| if json { Ok(text.to_owned()) } else { Ok(drained(&serde_json::from_str(text)?)) });
    app::queue(config, &QueueQuestion::Drain, print).await
}

fn entry(entry: &QueueEntry) -> String {
    let QueueEntry { seq, stream, id, op, bytes, captured, pending, .. } = entry;
    let captured = captured.strftime("%Y-%m-%dT%H:%M:%SZ");
    let (seq, bytes) = (seq.value(), grouped(*bytes));
    format!("{seq:<16}  {stream:<7}  {id:<12}  {op:<6}  {bytes:>9} bytes  {captured}  for {}", pending.join(", "))
}

fn verified(report: &VerifyReport) -> String {
    let tree = |tree: &VerifiedTree| {
        let fault = if tree.damaged > 0 { format!(", {} damaged", grouped(tree.damaged)) } else { String::new() };
        format!("  {:<12} {}{fault}", tree.tree, counted(tree.values, "value", "values"))
    };
    let mut lines: Vec<String> = report.trees.iter().map(tree).collect();
    lines.push(if report.sound {
        format!("Sound: {} in the queue.", counted(report.entries, "entry", "entries"))
    } else {
        format!(
            "Damaged: {} of the queue cannot be read; restore the state from a backup, or name a new state.path and new \
             sink paths and sync again.",
            counted(report.unreadable_changes, "entry", "entries")
        )
    });
    lines.join("\n")
}

fn drained(report: &DrainReport) -> String {
    let left = |(name, sink): (&String, &SinkLeft)| match (sink.pending, &sink.error) {
        (0, _) => format!("{name}: nothing waits"),
        (pending, None) => format!("{name}: {}", counted(pending, "entry waits", "entries wait")),
        (pending, Some(error)) => {
            format!("{name}: {}: {}", counted(pending, "entry waits", "entries wait"), error.message)
        }
    };
    report.sinks.iter().map(left).collect::<Vec<_>>().join("\n")
}
