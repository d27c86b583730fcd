//! `cursor`: where each stream stands, and where a person puts it.

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};

use crate::app::{self, Action, CursorOrder, CursorQuestion, CursorReport};
use crate::cli::args::Global;
use crate::cli::backfill::request::moment;
use crate::cli::exit::{Exit, Refused};
use crate::cli::operator::Consent;
use crate::cli::sync::StreamName;
use crate::cli::table::aligned;
use crate::cli::{answer, breaker, dispatch, terminal};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::ops::control::Line;
use crate::sync::RowState;
use crate::sync::ledger::cursor::CursorLine;
use crate::sync::window::whole_second;

/// What `cursor` takes.
#[derive(Debug, Args)]
pub struct CursorArgs {
    /// What to do
    #[command(subcommand)]
    pub order: Order,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Order {
    /// Lists what is done and what is owed of each stream
    Show {
        /// Only this stream
        #[arg(long, value_enum, value_name = "STREAM")]
        stream: Option<StreamName>,
    },
    /// Lets the next window begin at a time; what lies between there and here is owed until it is read
    Set {
        /// The stream
        #[arg(value_enum, value_name = "STREAM")]
        stream: StreamName,
        /// The time: 2024-03-09T02:14:07Z, or a day in sierra.local_zone
        #[arg(value_name = "TIME")]
        to: String,
        /// Who says so, and why
        #[command(flatten)]
        consent: Consent,
    },
    /// Reads everything since a time once more, changes and deletions; emits what differs
    Rewind {
        /// The stream; with --rebuild it may be left out, which means all
        #[arg(value_enum, value_name = "STREAM", required_unless_present = "rebuild")]
        stream: Option<StreamName>,
        /// How far: a time, a day in sierra.local_zone, or a span such as 90m, 12h or 3d
        #[arg(value_name = "TIME", required_unless_present = "rebuild", conflicts_with = "rebuild")]
        to: Option<String>,
        /// For a state that was restored from an old backup: everything is read and emitted again, and every deletion
        /// that Sierra remembers
        #[arg(long)]
        rebuild: bool,
        /// Who says so, and why
        #[command(flatten)]
        consent: Consent,
    },
    /// Lists what people did to cursors, and why
    History,
}

/// Runs the command.
///
/// # Errors
/// When the configuration is wrong, `--yes` is missing, a cursor may not stand where it is put, the process that holds
/// the state does not answer, or the store fails.
pub async fn run(args: CursorArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    match args.order {
        Order::Show { stream } => show(&config, stream, global).await,
        Order::History => history(&config, global).await,
        order => put(&config, order, global).await,
    }
}

async fn show(config: &Config, stream: Option<StreamName>, global: &Global) -> anyhow::Result<Exit> {
    let question = CursorQuestion::Show { stream: stream.map(Into::into) };
    if global.json {
        return app::cursor(config, &question, answer::printed(|text| Ok(text.to_owned()))).await;
    }
    let mut lines: Vec<CursorLine> = Vec::new();
    let exit = app::cursor(config, &question, |line| match line {
        Line::Data(text) => {
            lines.push(serde_json::from_str(&text)?);
            Ok(())
        }
        Line::Talk(text) => {
            terminal::talk(&text);
            Ok(())
        }
        Line::Accepted | Line::Exit(_) => Ok(()),
    })
    .await?;
    match lines.is_empty() {
        true => answer::remark(global, "Nothing was synced yet."),
        false => terminal::data(&table(&lines))?,
    }
    Ok(exit)
}

async fn history(config: &Config, global: &Global) -> anyhow::Result<Exit> {
    let mut count = 0_u64;
    let print = answer::printed(|text| {
        count += 1;
        Ok(if global.json { text.to_owned() } else { breaker::told(&serde_json::from_str::<Action>(text)?) })
    });
    let exit = app::cursor(config, &CursorQuestion::History, print).await?;
    if count == 0 {
        answer::remark(global, "Nobody has put a cursor anywhere yet.");
    }
    Ok(exit)
}

async fn put(config: &Config, order: Order, global: &Global) -> anyhow::Result<Exit> {
    let zone = &config.sierra.local_zone;
    let refuse = |sentence: String| anyhow::Error::new(Refused(sentence));
    let (order, consent) = match order {
        Order::Set { stream, to, consent } => {
            let to = moment(&to, zone).map_err(refuse)?;
            (CursorOrder::Set { stream: stream.into(), to }, consent)
        }
        Order::Rewind { stream: Some(stream), to: Some(to), rebuild: false, consent } => {
            let to = back(&to, SystemClock.now()).or_else(|| moment(&to, zone).ok());
            let to = to.ok_or_else(|| {
                refuse(
                    "write a time such as 2024-03-09T02:14:07Z, a day such as 2024-03-09, or a span such as 12h".into(),
                )
            })?;
            (CursorOrder::Rewind { stream: stream.into(), to }, consent)
        }
        Order::Rewind { stream, consent, .. } => (CursorOrder::Rebuild { stream: stream.map(Into::into) }, consent),
        Order::Show { .. } | Order::History => return Ok(Exit::Ok),
    };
    if !consent.yes {
        return Err(refuse(format!(
            "{}; look at `sierra-sync cursor show` first, then say it again with --yes",
            means(&order)
        )));
    }
    let question = CursorQuestion::Put { order, operator: consent.operator.operator() };
    let mut told = None;
    let hear = answer::printed_by(
        |text| Ok(if global.json { text.to_owned() } else { sentence(&serde_json::from_str(text)?) }),
        |text| {
            told = Some(text);
            Ok(())
        },
    );
    let exit = app::cursor(config, &question, hear).await?;
    if let Some(text) = told {
        answer::outcome(global, exit, &text)?;
    }
    Ok(exit)
}

fn means(order: &CursorOrder) -> String {
    match order {
        CursorOrder::Set { stream, to } => {
            format!("the next window of {stream} will begin at {to}; what lies between stays owed and costs calls")
        }
        CursorOrder::Rewind { stream, to } => {
            format!("every change and deletion of {stream} since {to} will be read once more, which costs calls")
        }
        CursorOrder::Rebuild { .. } => {
            "every record will be read and emitted again, and every deletion that Sierra remembers, which costs as many \
             calls as a first load"
                .to_owned()
        }
    }
}

fn sentence(report: &CursorReport) -> String {
    let streams: Vec<&str> = report.streams.iter().map(|stream| stream.name()).collect();
    let streams = streams.join(", ");
    match (report.from, report.to) {
        (Some(from), Some(to)) if to < from => {
            format!("{streams}: everything from {to} to {from} is read once more, with the next pass.")
        }
        (Some(from), Some(to)) => {
            format!("{streams}: goes on at {to}; what lies between {from} and there is read with the next pass, too.")
        }
        _ if report.changed => format!("{streams}: a rebuild begins with the next pass, and ends by itself."),
        _ => format!("{streams}: a rebuild is about to begin already; nothing changed."),
    }
}

/// A span back from `now`, such as `90m`.
fn back(text: &str, now: Timestamp) -> Option<Timestamp> {
    let span = breaker::duration(text.trim()).ok()?;
    now.checked_sub(SignedDuration::try_from(span).ok()?).ok().map(whole_second)
}

fn table(lines: &[CursorLine]) -> String {
    let mut rows = vec![["stream", "pass", "state", "window", "after record", "failed"].map(str::to_owned).to_vec()];
    rows.extend(lines.iter().map(|line| {
        let state = match line.state {
            RowState::Pending => "pending",
            RowState::Partial => "partial",
            RowState::Failed => "failed",
            RowState::Done => "done",
        };
        let position = line.position.clone().unwrap_or_else(|| "-".to_owned());
        let pass = serde_json::to_value(line.pass).ok();
        let pass = pass.as_ref().and_then(|pass| pass.as_str()).unwrap_or_default().replace('_', " ");
        let stream = line.stream.to_string();
        vec![stream, pass, state.to_owned(), line.window.clone(), position, line.attempts.to_string()]
    }));
    aligned(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stream;
    use crate::sync::Pass;

    #[test]
    fn people_get_a_table() {
        let line = |pass, state, window: &str, position: Option<&str>| CursorLine {
            stream: Stream::Bibs,
            window: window.to_owned(),
            state,
            position: position.map(str::to_owned),
            attempts: 0,
            pass,
        };
        let lines = [
            line(Pass::Load, RowState::Done, "all records", None),
            line(Pass::LateSweep, RowState::Partial, "[2026-01-05T10:00:00Z, 2026-01-05T10:05:00Z)", Some("1024364")),
        ];
        insta::assert_snapshot!(table(&lines), @r"
        stream  pass        state    window                                        after record  failed
        bibs    load        done     all records                                   -             0
        bibs    late sweep  partial  [2026-01-05T10:00:00Z, 2026-01-05T10:05:00Z)  1024364       0
        ");
    }

    #[test]
    fn spans_count_back_from_now() {
        let now: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a time");
        assert_eq!(back("90m", now).map(|at| at.to_string()).as_deref(), Some("2026-01-05T08:30:00Z"));
        assert_eq!(back("2026-01-05", now), None);
    }
}
