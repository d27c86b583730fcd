//! `quarantine`: what was set aside, why, and what becomes of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cli::exit::{Exit, Refused};
use crate::ops::control::Reply;
use crate::record::Stream;
use crate::sync::ports::{QuarantineEntry, QuarantineState, Slice, Store};

use super::assembly::{Assembly, Reach};
use super::queue::off_runtime;

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
    /// Forgets entries: nobody will look at these records again until Sierra changes them.
    Drop {
        /// Their names.
        ids: Vec<String>,
    },
}

impl QuarantineQuestion {
    /// What answering it may touch.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::List { .. } | Self::Show { .. } => Reach::Look,
            Self::Drop { .. } => Reach::Everything,
        }
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineLine {
    /// Its name: 12 hexadecimal digits.
    pub id: String,
    /// The stream.
    pub stream: Stream,
    /// The record's public id; a patron's pseudonym.
    pub record: String,
    /// Why.
    pub reason: String,
    /// Tells equal causes from different ones.
    pub fingerprint: String,
    /// How often it was tried.
    pub attempts: u32,
    /// The last HTTP status, where there was one.
    pub last_status: Option<u16>,
    /// First seen.
    pub first_seen: jiff::Timestamp,
    /// Last seen.
    pub last_seen: jiff::Timestamp,
    /// `open` or `parked`.
    pub state: QuarantineState,
    /// The sink that refused it; null when it could not be captured.
    pub sink: Option<String>,
    /// What was set aside; only `show` tells, and never of patrons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// Answers `question` from the state of `assembly`.
pub(super) async fn answer(assembly: &Assembly, question: &QuarantineQuestion, reply: &Reply) -> anyhow::Result<Exit> {
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
        QuarantineQuestion::Drop { ids } => {
            let entries = entries(&store).await?;
            // All or none: a misspelt name drops nothing.
            let dropped: Vec<QuarantineEntry> = ids.iter().map(|id| one(&entries, id)).collect::<Result<_, _>>()?;
            let discards = dropped.iter().map(QuarantineEntry::key).collect();
            off_runtime(move || store.commit(Slice { discards, ..Slice::default() })).await?;
            for entry in dropped {
                reply.data(serde_json::to_string(&shown(entry, false))?).await;
            }
        }
    }
    Ok(Exit::Ok)
}

async fn entries(store: &Arc<dyn Store>) -> anyhow::Result<Vec<QuarantineEntry>> {
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

fn shown(entry: QuarantineEntry, whole: bool) -> QuarantineLine {
    QuarantineLine {
        id: entry.key().id(),
        stream: entry.stream,
        record: entry.record,
        reason: entry.reason,
        fingerprint: entry.fingerprint,
        attempts: entry.attempts,
        last_status: entry.last_status,
        first_seen: entry.first_seen,
        last_seen: entry.last_seen,
        state: entry.state,
        sink: entry.sink,
        payload: entry.payload.filter(|_| whole && entry.stream != Stream::Patrons),
    }
}
