//! `quarantine`: what was set aside, why, and what becomes of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cli::exit::{Exit, Refused};
use crate::clock::{Clock, SystemClock};
use crate::ops::control::Reply;
use crate::record::Stream;
use crate::sync::ports::{QuarantineEntry, Slice, Store};

use super::actions::{self, Action, Operator};
use super::assembly::{Assembly, Reach};
use super::queue::off_runtime;
use super::replay;

/// What can be asked about what was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "quarantine", rename_all = "snake_case")]
pub enum QuarantineQuestion {
    /// Every entry, an object a line, the oldest first.
    List {
        /// Only this stream.
        #[serde(default)]
        stream: Option<Stream>,
    },
    /// One entry with what was set aside (never of patrons).
    Show {
        /// Its name, as `list` gives it.
        id: String,
    },
    /// Reads entries once more, and offers them once more to the sink that refused them.
    Replay {
        /// Their names; none means all that are not parked and can be asked for.
        ids: Vec<String>,
        /// Of all, only those of this stream.
        #[serde(default)]
        stream: Option<Stream>,
        /// Who says so, and why.
        #[serde(default)]
        operator: Operator,
    },
    /// Forgets entries: nobody will look at these records again until Sierra changes them.
    Drop {
        /// Their names.
        ids: Vec<String>,
        /// Who says so, and why.
        #[serde(default)]
        operator: Operator,
    },
}

impl QuarantineQuestion {
    /// What answering it may touch.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::List { .. } | Self::Show { .. } => Reach::Look,
            Self::Replay { .. } | Self::Drop { .. } => Reach::Everything,
        }
    }
}

/// One entry with its name. What was set aside only `show` tells, and never of patrons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineLine {
    /// Its name: 12 hexadecimal digits.
    pub id: String,
    /// The entry.
    #[serde(flatten)]
    pub entry: QuarantineEntry,
}

/// Answers `question` from the state of `assembly`.
/// `serving` is whether a service delivers by itself.
pub(super) async fn answer(
    assembly: &Assembly,
    serving: bool,
    question: &QuarantineQuestion,
    reply: &Reply,
) -> anyhow::Result<Exit> {
    let store = Arc::clone(&assembly.store);
    match question {
        QuarantineQuestion::List { stream } => {
            for entry in entries(&store).await?.into_iter().filter(|entry| stream.is_none_or(|it| it == entry.stream)) {
                reply.data(serde_json::to_string(&shown(entry, false))?).await;
            }
        }
        QuarantineQuestion::Show { id } => {
            let entry = one(&entries(&store).await?, id)?;
            reply.data(serde_json::to_string(&shown(entry, true))?).await;
        }
        QuarantineQuestion::Replay { ids, stream, operator } => {
            let entries = entries(&store).await?;
            let chosen = if ids.is_empty() {
                let is_meant = |entry: &QuarantineEntry| stream.is_none_or(|stream| stream == entry.stream);
                entries.into_iter().filter(|entry| is_meant(entry) && replay::is_open(entry)).collect()
            } else {
                ids.iter().map(|id| one(&entries, id)).collect::<Result<_, _>>()?
            };
            let (replayed, exit) = replay::replay(assembly, serving, chosen, reply).await?;
            let of = stream.map_or_else(String::new, |stream| format!(" --stream {stream}"));
            let outcome = replay::told(&replayed);
            note(&store, format!("quarantine replay{of}{}", named(ids)), operator, outcome).await?;
            return Ok(exit);
        }
        QuarantineQuestion::Drop { ids, operator } => {
            let entries = entries(&store).await?;
            // All or none: a misspelt name drops nothing.
            let dropped: Vec<QuarantineEntry> = ids.iter().map(|id| one(&entries, id)).collect::<Result<_, _>>()?;
            let discards = dropped.iter().map(QuarantineEntry::key).collect();
            let committed = Arc::clone(&store);
            off_runtime(move || committed.commit(Slice { discards, ..Slice::default() })).await?;
            let outcome = format!("{} dropped", dropped.len());
            note(&store, format!("quarantine drop{}", named(ids)), operator, outcome).await?;
            for entry in dropped {
                reply.data(serde_json::to_string(&shown(entry, false))?).await;
            }
        }
    }
    Ok(Exit::Ok)
}

/// Keeps what a person did.
async fn note(store: &Arc<dyn Store>, command: String, operator: &Operator, outcome: String) -> anyhow::Result<()> {
    let (store, Operator { by, reason }) = (Arc::clone(store), operator.clone());
    let action = Action { at: SystemClock.now(), command, by, reason, until: None, outcome };
    Ok(off_runtime(move || actions::note(store.as_ref(), action)).await?)
}

/// The names as they follow a command; of many only the first few.
fn named(ids: &[String]) -> String {
    const TOLD: usize = 4;
    let more = if ids.len() > TOLD { format!(" and {} more", ids.len() - TOLD) } else { String::new() };
    ids.iter().take(TOLD).map(|id| format!(" {id}")).collect::<String>() + &more
}

/// Everything that is set aside.
pub(super) async fn entries(store: &Arc<dyn Store>) -> anyhow::Result<Vec<QuarantineEntry>> {
    let mut all = Vec::new();
    for stream in Stream::ALL {
        let store = Arc::clone(store);
        all.extend(off_runtime(move || store.quarantine(stream, usize::MAX)).await?);
    }
    Ok(all)
}

/// The entry that `id` names, or the beginning of its name.
fn one(entries: &[QuarantineEntry], id: &str) -> Result<QuarantineEntry, Refused> {
    let mut found = entries.iter().filter(|entry| !id.is_empty() && entry.key().id().starts_with(id));
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry.clone()),
        (Some(_), Some(_)) => Err(Refused(format!("{id:?} names more than one entry; write more of it"))),
        _ => Err(Refused(format!("nothing is set aside as {id:?}; `sierra-sync quarantine list` shows what is"))),
    }
}

/// How `entry` is told; `whole` with what was set aside.
pub(super) fn shown(entry: QuarantineEntry, whole: bool) -> QuarantineLine {
    let id = entry.key().id();
    let is_told = whole && entry.stream != Stream::Patrons;
    let payload = entry.payload.clone().filter(|_| is_told);
    QuarantineLine { id, entry: QuarantineEntry { payload, ..entry } }
}
