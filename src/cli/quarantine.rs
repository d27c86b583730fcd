//! `quarantine`: what was set aside, why, and what becomes of it.

use clap::{Args, Subcommand};

use crate::app::{self, QuarantineLine, QuarantineQuestion, ReplayOutcome, Replayed};
use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};
use crate::cli::operator::{Consent, OperatorArgs};
use crate::cli::sync::StreamName;
use crate::cli::table::counted;
use crate::cli::{answer, dispatch};
use crate::sync::ports::QuarantineEntry;

/// What `quarantine` takes.
#[derive(Debug, Args)]
pub struct QuarantineArgs {
    /// What to do
    #[command(subcommand)]
    pub order: Order,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Order {
    /// Lists what was set aside, the oldest first
    List {
        /// Only this stream
        #[arg(long, value_enum, value_name = "STREAM")]
        stream: Option<StreamName>,
    },
    /// Shows one entry with what was set aside (never of patrons)
    Show {
        /// Its name, as the list gives it, or the beginning of that
        id: String,
    },
    /// Reads entries once more, and offers them once more to the sink that refused them; after three times they are parked
    Replay {
        /// Their names, as the list gives them [default: all that are not parked]
        ids: Vec<String>,
        /// Only what was set aside of this stream
        #[arg(long, value_enum, value_name = "STREAM", conflicts_with = "ids")]
        stream: Option<StreamName>,
        /// Who says so, and why
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Forgets entries: their records stay as the sinks have them until Sierra changes them
    Drop {
        /// Their names, as the list gives them
        #[arg(required = true)]
        ids: Vec<String>,
        /// Who says so, and why
        #[command(flatten)]
        consent: Consent,
    },
}

/// Runs the command.
///
/// # Errors
/// When the configuration is wrong, the state cannot be read, or nothing is set aside under a name that was given.
pub async fn run(args: QuarantineArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let json = global.json;
    let mut count = 0_u64;
    let is_replay = matches!(args.order, Order::Replay { .. });
    let print = answer::printed(|text| {
        count += 1;
        match (json, is_replay) {
            (true, _) => Ok(text.to_owned()),
            (false, true) => Ok(replayed(&serde_json::from_str(text)?)),
            (false, false) => Ok(line(&serde_json::from_str(text)?)),
        }
    });
    let (question, done) = match args.order {
        Order::List { stream } => (QuarantineQuestion::List { stream: stream.map(Into::into) }, "set aside"),
        Order::Show { id } => (QuarantineQuestion::Show { id }, ""),
        Order::Replay { ids, stream, operator } => {
            let (stream, operator) = (stream.map(Into::into), operator.operator());
            (QuarantineQuestion::Replay { ids, stream, operator }, "replayed")
        }
        Order::Drop { consent: Consent { yes: false, .. }, .. } => {
            let sentence = "`quarantine drop` forgets what was set aside, and sinks stay without it until Sierra changes \
                            the record; say it again with --yes";
            return Err(Refused(sentence.to_owned()).into());
        }
        Order::Drop { ids, consent } => {
            (QuarantineQuestion::Drop { ids, operator: consent.operator.operator() }, "dropped")
        }
    };
    let exit = app::quarantine(&config, &question, print).await?;
    if !done.is_empty() {
        let count = if count == 0 { "nothing".to_owned() } else { counted(count, "entry", "entries") };
        answer::remark(global, &format!("{count} {done}"));
    }
    Ok(exit)
}

fn replayed(replayed: &Replayed) -> String {
    let Replayed { id, stream, record, outcome, attempts, reason } = replayed;
    let outcome = match outcome {
        ReplayOutcome::Healed => "is good now; the entry is closed",
        ReplayOutcome::Refused => "is still refused",
        ReplayOutcome::Parked => "is refused and parked",
        ReplayOutcome::Waits => "was read and waits for its sink",
        ReplayOutcome::NotRead => "could not be read",
    };
    let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{id}  {stream} {record} {outcome}{reason} ({})", counted(u64::from(*attempts), "try", "tries"))
}

fn line(line: &QuarantineLine) -> String {
    let QuarantineLine { id, entry } = line;
    let QuarantineEntry { stream, record, reason, attempts, last_seen, sink, payload, .. } = entry;
    let at = last_seen.strftime("%Y-%m-%dT%H:%M:%SZ");
    let by = sink.as_ref().map_or_else(String::new, |sink| format!(", refused by sink {sink}"));
    let payload = payload.as_ref().map_or_else(String::new, |payload| format!("\n{payload}"));
    let tries = counted(u64::from(*attempts), "try", "tries");
    format!("{id}  {stream} {record}: {reason}{by} ({tries}, last {at}){payload}")
}
