//! `cursor`: where each stream stands, and where a person puts it: by the process that holds the state if there is one,
//! else on the state that the next process takes up.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::cli::exit::{Exit, Refused};
use crate::clock::{Clock, SharedClock, SystemClock};
use crate::config::Config;
use crate::ops::control::Line;
use crate::record::Stream;
use crate::store;
use crate::sync::cursor::{self, CursorError};
use crate::sync::settings::StreamSettings;
use crate::sync::{Store, StoreError};

use super::actions::{self, Action, Operator};
use super::assembly::{self, Reach};
use super::desk::{self, Question};
use super::queue::off_runtime;

/// What can be asked about cursors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cursor", rename_all = "snake_case")]
pub enum CursorQuestion {
    /// Every row of the ledger, an object a line.
    Show {
        /// Only this stream.
        stream: Option<Stream>,
    },
    /// A cursor is put somewhere.
    Put {
        /// Where.
        order: CursorOrder,
        /// Who says so, and why.
        operator: Operator,
    },
    /// What people did to cursors, the oldest first.
    History,
}

/// Where a cursor is put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CursorOrder {
    /// To a time, back or ahead; what lies between is owed.
    Set {
        /// The stream.
        stream: Stream,
        /// The time.
        to: Timestamp,
    },
    /// Back to a time.
    Rewind {
        /// The stream.
        stream: Stream,
        /// The time.
        to: Timestamp,
    },
    /// To the very beginning, as after restoring an old backup of the state.
    Rebuild {
        /// Only this stream.
        stream: Option<Stream>,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorReport {
    /// Version of this shape: 1.
    pub schema: u32,
    /// `set`, `rewind` or `rebuild`.
    pub action: String,
    /// When.
    pub at: Timestamp,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The streams.
    pub streams: Vec<Stream>,
    /// Where the cursor stood; null for a rebuild.
    pub from: Option<Timestamp>,
    /// Where it stands; null for a rebuild.
    pub to: Option<Timestamp>,
    /// Whether anything is different now.
    pub changed: bool,
}

/// What orders about cursors go by.
#[derive(Debug, Clone)]
pub(super) struct CursorGround {
    streams: Vec<StreamSettings>,
    zone: TimeZone,
}

impl CursorGround {
    pub(super) fn of(config: &Config) -> Self {
        Self { streams: config.streams.clone(), zone: config.sierra.local_zone.clone() }
    }

    /// The streams that `wanted` means, all that are configured if it names none.
    fn streams(&self, wanted: Option<Stream>) -> Result<Vec<Stream>, Refused> {
        match wanted {
            None => Ok(self.streams.iter().map(|settings| settings.stream).collect()),
            Some(stream) => self.settings(stream).map(|settings| vec![settings.stream]),
        }
    }

    fn settings(&self, stream: Stream) -> Result<&StreamSettings, Refused> {
        let found = self.streams.iter().find(|settings| settings.stream == stream);
        found.ok_or_else(|| Refused(format!("[streams.{stream}] is not configured")))
    }
}

/// Asks about cursors, or puts one. Asks Sierra nothing.
///
/// # Errors
/// When the state can neither be opened nor its holder be asked, or a cursor may not stand where it is put.
pub async fn cursor(
    config: &Config,
    question: &CursorQuestion,
    mut hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    let ground = CursorGround::of(config);
    let path = &config.store.path;
    if matches!(question, CursorQuestion::Put { .. }) && !store::disk::is_there(path) {
        let sentence = format!("nothing was synced yet into {}: there is no cursor to put", path.display());
        return Err(Refused(sentence).into());
    }
    let clock: SharedClock = Arc::new(SystemClock);
    match assembly::open_store(config, &clock, question.reach(), None).await {
        Ok(opened) => {
            for line in question.answer(opened.store, ground).await? {
                hear(Line::Data(line))?;
            }
            Ok(Exit::Ok)
        }
        Err(held) => desk::ask_the_holder(config, &Question::Cursor(question.clone()), held, hear).await,
    }
}

impl CursorQuestion {
    /// What answering it may touch.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Show { .. } | Self::History => Reach::Look,
            Self::Put { .. } => Reach::Everything,
        }
    }

    /// The lines of the answer from `store`.
    pub(super) async fn answer(&self, store: Arc<dyn Store>, ground: CursorGround) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Show { stream } => {
                let streams = ground.streams(*stream)?;
                let lines = off_runtime(move || cursor::show(store.as_ref(), &streams)).await?;
                Ok(lines.iter().map(serde_json::to_string).collect::<Result<_, _>>()?)
            }
            Self::History => {
                let actions = off_runtime(move || actions::all(store.as_ref())).await?;
                let own = actions.iter().filter(|action| action.command.starts_with("cursor "));
                Ok(own.map(serde_json::to_string).collect::<Result<_, _>>()?)
            }
            Self::Put { order, operator } => {
                let streams = ground.streams(order.stream())?;
                let (order, operator, at) = (order.clone(), operator.clone(), SystemClock.now());
                let carry_out = move || -> Result<CursorReport, CursorError> {
                    carry_out(store.as_ref(), &ground, streams, &order, &operator, at)
                };
                let report = tokio::task::spawn_blocking(carry_out).await?;
                let report = report.map_err(|error| match error {
                    CursorError::Refused(why) => anyhow::Error::new(Refused(why.to_string())),
                    CursorError::Store(error) => error.into(),
                })?;
                Ok(vec![serde_json::to_string(&report)?])
            }
        }
    }
}

impl CursorOrder {
    fn stream(&self) -> Option<Stream> {
        match self {
            Self::Set { stream, .. } | Self::Rewind { stream, .. } => Some(*stream),
            Self::Rebuild { stream } => *stream,
        }
    }
}

/// Carries `order` out and keeps it in the history.
fn carry_out(
    store: &dyn Store,
    ground: &CursorGround,
    streams: Vec<Stream>,
    order: &CursorOrder,
    operator: &Operator,
    at: Timestamp,
) -> Result<CursorReport, CursorError> {
    let put = |stream: Stream, to: Timestamp, only_back: bool| match ground.settings(stream) {
        Ok(settings) => cursor::put(store, settings, &ground.zone, to, only_back, at),
        // Looked for before.
        Err(_) => Ok(to),
    };
    let (action, from, to, changed) = match order {
        CursorOrder::Set { stream, to } => ("set", Some(put(*stream, *to, false)?), Some(*to), true),
        CursorOrder::Rewind { stream, to } => ("rewind", Some(put(*stream, *to, true)?), Some(*to), true),
        CursorOrder::Rebuild { .. } => ("rebuild", None, None, cursor::rebuild(store, &streams, at)?),
    };
    let Operator { by, reason } = operator.clone();
    let report = CursorReport {
        schema: 1,
        action: action.to_owned(),
        at,
        by: by.clone(),
        reason: reason.clone(),
        streams,
        from,
        to,
        changed,
    };
    note(store, &report)?;
    Ok(report)
}

fn note(store: &dyn Store, report: &CursorReport) -> Result<(), StoreError> {
    let names: Vec<&str> = report.streams.iter().map(|stream| stream.name()).collect();
    let outcome = match (report.from, report.to) {
        (Some(from), Some(to)) => format!("{}: from {from} to {to}", names.join(", ")),
        _ if report.changed => format!("{}: a rebuild begins", names.join(", ")),
        _ => format!("{}: a rebuild was at its beginning already; nothing changed", names.join(", ")),
    };
    let command = match report.action.as_str() {
        "rebuild" => "cursor rewind --rebuild".to_owned(),
        action => format!("cursor {action}"),
    };
    let (at, by, reason) = (report.at, report.by.clone(), report.reason.clone());
    actions::note(store, Action { at, command, by, reason, until: None, outcome })
}
