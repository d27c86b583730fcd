//! `quarantine`: what was set aside, why, and what becomes of it.

use clap::{Args, Subcommand};

use crate::app::{self, QuarantineLine, QuarantineQuestion};
use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};
use crate::cli::sync::StreamName;
use crate::cli::table::counted;
use crate::cli::{answer, dispatch, terminal};

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
    /// Forgets entries: their records stay as the sinks have them until Sierra changes them
    Drop {
        /// Their names, as the list gives them
        #[arg(required = true)]
        ids: Vec<String>,
        /// Says that this is meant
        #[arg(long)]
        yes: bool,
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
    let print = answer::printed(|text| {
        count += 1;
        if json { Ok(text.to_owned()) } else { Ok(line(&serde_json::from_str(text)?)) }
    });
    let (question, done) = match args.order {
        Order::List { stream } => (QuarantineQuestion::List { stream: stream.map(Into::into) }, "set aside"),
        Order::Show { id } => (QuarantineQuestion::Show { id }, ""),
        Order::Drop { yes: false, .. } => {
            let sentence = "`quarantine drop` forgets what was set aside, and sinks stay without it until Sierra changes \
                            the record; say it again with --yes";
            return Err(Refused(sentence.to_owned()).into());
        }
        Order::Drop { ids, yes: true } => (QuarantineQuestion::Drop { ids }, "dropped"),
    };
    let exit = app::quarantine(&config, &question, print).await?;
    if !json && !done.is_empty() {
        let count = if count == 0 { "nothing".to_owned() } else { counted(count, "entry", "entries") };
        terminal::talk(&format!("{count} {done}"));
    }
    Ok(exit)
}

fn line(entry: &QuarantineLine) -> String {
    let QuarantineLine { id, stream, record, reason, attempts, last_seen, sink, payload, .. } = entry;
    let at = last_seen.strftime("%Y-%m-%dT%H:%M:%SZ");
    let by = sink.as_ref().map_or_else(String::new, |sink| format!(", refused by sink {sink}"));
    let payload = payload.as_ref().map_or_else(String::new, |payload| format!("\n{payload}"));
    let tries = counted(u64::from(*attempts), "try", "tries");
    format!("{id}  {stream} {record}: {reason}{by} ({tries}, last {at}){payload}")
}
