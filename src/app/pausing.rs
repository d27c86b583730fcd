//! `pause` and `resume`: what a person holds back or lets go, in the process that holds the state, or in the state that
//! the next process takes up. And `sync` at once, which only a service can be asked for.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cli::exit::{Declined, Exit, Refused};
use crate::clock::{Clock, SharedClock, SystemClock};
use crate::config::Config;
use crate::record::Stream;
use crate::sync::engine::EngineError;
use crate::sync::pause;
use crate::sync::report::status::Pause;
use crate::sync::{Pausable, Store, StoreError};

use super::actions::{self, Action, Operator};
use super::assembly::{self, Assembly, Reach};
use super::desk::{self, Question};

/// Whether something is held back or let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseOrder {
    /// It is held back.
    Pause,
    /// It is let go.
    Resume,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseReport {
    /// Version of this shape: 1.
    pub schema: u32,
    /// `pause` or `resume`.
    pub action: PauseOrder,
    /// When.
    pub at: Timestamp,
    /// The stream, if it is one.
    pub stream: Option<Stream>,
    /// The sink, if it is one.
    pub sink: Option<String>,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Whether anything is different now.
    pub changed: bool,
    /// One sentence.
    pub message: String,
}

/// Holds `what` back or lets it go, and keeps that in the history.
///
/// # Errors
/// When it is not configured, when the configuration pauses the sink that is to go on, when the process that holds the
/// state does not answer, or on any storage error.
pub async fn pausing(
    config: &Config,
    order: PauseOrder,
    what: &Pausable,
    operator: &Operator,
) -> anyhow::Result<PauseReport> {
    let clock: SharedClock = Arc::new(SystemClock);
    is_configured(config, what)?;
    let store = match assembly::open_store(config, &clock, Reach::Everything, None).await {
        Ok(opened) => opened.store,
        Err(held) if desk::is_held(&held) => {
            let question = Question::Pausing { order, what: what.clone(), operator: operator.clone() };
            return desk::hand_over(config, &question, held).await;
        }
        Err(error) => return Err(error),
    };
    let now = clock.now();
    let changed = pause::keep(store.as_ref(), what, pause_of(order, operator, now))?;
    if order == PauseOrder::Resume
        && let Some(name) = paused_by(config, what)
    {
        return Err(Refused(EngineError::PausedByConfiguration { name }.to_string()).into());
    }
    Ok(noted(store.as_ref(), order, what, operator, now, changed)?)
}

/// The same in the process that holds the state.
///
/// # Errors
/// When it is not configured, when the configuration pauses the sink that is to go on, or on any storage error.
pub(super) async fn by_the_holder(
    assembly: &Assembly,
    order: PauseOrder,
    what: &Pausable,
    operator: &Operator,
) -> anyhow::Result<PauseReport> {
    let now = SystemClock.now();
    let changed = match pause_of(order, operator, now) {
        Some(pause) => assembly.engine.pause(what, pause).await,
        None => assembly.engine.resume(what).await,
    };
    let changed = changed.map_err(refused)?;
    let report = noted(assembly.store.as_ref(), order, what, operator, now, changed)?;
    // Whoever asked hears it from the command; here it is for the log of this process.
    let (command, by) = (command(order, what), report.by.as_deref());
    tracing::info!(event = "paused_or_resumed", command, by, "{}", report.message);
    Ok(report)
}

/// Asks `streams`, or all that are not paused, for a pass at once. Returns a sentence.
///
/// # Errors
/// When no service runs here, a stream is not configured or paused, or on any storage error.
pub(super) fn sync_now(
    assembly: &Assembly,
    serving: bool,
    streams: &[Stream],
    operator: &Operator,
) -> anyhow::Result<String> {
    let engine = &assembly.engine;
    if !serving {
        let sentence = "a command that ends by itself holds the state, and no service: try again when it has ended";
        return Err(Declined { sentence: sentence.to_owned(), exit: Exit::TryLater }.into());
    }
    let all = || engine.streams().filter(|stream| engine.paused(*stream).is_none()).collect();
    let asked: Vec<Stream> = if streams.is_empty() { all() } else { streams.to_vec() };
    if asked.is_empty() {
        return Err(Refused("every stream is paused: `sierra-sync resume` lets them go on".to_owned()).into());
    }
    for stream in &asked {
        engine.ask_for_pass(*stream).map_err(refused)?;
    }
    let names: Vec<&str> = asked.iter().map(|stream| stream.name()).collect();
    let outcome = format!("asked {} for a pass", names.join(", "));
    let Operator { by, reason } = operator.clone();
    let command = format!("sync now {}", names.join(" "));
    let action = Action { at: SystemClock.now(), command, by, reason, until: None, outcome };
    actions::note(assembly.store.as_ref(), action)?;
    tracing::info!(event = "pass_asked", streams = names.join(", "), "a person asks for a pass at once");
    Ok(format!("A pass over {} begins as soon as the one under way has ended.", names.join(", ")))
}

fn noted(
    store: &dyn Store,
    action: PauseOrder,
    what: &Pausable,
    operator: &Operator,
    at: Timestamp,
    changed: bool,
) -> Result<PauseReport, StoreError> {
    let message = match (action, changed) {
        (PauseOrder::Pause, true) => held_back(what),
        (PauseOrder::Pause, false) => format!("The {what} was paused already: nothing changed."),
        (PauseOrder::Resume, true) => format!("The {what} goes on."),
        (PauseOrder::Resume, false) => format!("The {what} was not paused: nothing changed."),
    };
    let Operator { by, reason } = operator.clone();
    let outcome = if changed { "done" } else { "nothing changed" }.to_owned();
    let command = command(action, what);
    actions::note(store, Action { at, command, by: by.clone(), reason: reason.clone(), until: None, outcome })?;
    let (stream, sink) = match what.clone() {
        Pausable::Stream(stream) => (Some(stream), None),
        Pausable::Sink(sink) => (None, Some(sink)),
    };
    Ok(PauseReport { schema: 1, action, at, stream, sink, by, reason, changed, message })
}

fn command(order: PauseOrder, what: &Pausable) -> String {
    let name = match order {
        PauseOrder::Pause => "pause",
        PauseOrder::Resume => "resume",
    };
    format!("{name} {}", what.options())
}

fn held_back(what: &Pausable) -> String {
    let options = what.options();
    let meanwhile = match what {
        Pausable::Stream(_) => "is not read any more, by `sync` neither; what happens meanwhile is caught up with",
        Pausable::Sink(_) => "gets nothing any more; what it misses waits in the queue",
    };
    format!("The {what} {meanwhile}. It stays so over restarts, until `sierra-sync resume {options}`.")
}

fn pause_of(order: PauseOrder, operator: &Operator, since: Timestamp) -> Option<Pause> {
    let Operator { by, reason } = operator.clone();
    (order == PauseOrder::Pause).then_some(Pause { since, by, reason })
}

fn is_configured(config: &Config, what: &Pausable) -> Result<(), Refused> {
    let is_there = match what {
        Pausable::Stream(stream) => config.streams.iter().any(|settings| settings.stream == *stream),
        Pausable::Sink(name) => config.sinks.contains_key(name),
    };
    if is_there {
        return Ok(());
    }
    let (table, there): (_, Vec<&str>) = match what {
        Pausable::Stream(_) => ("streams", config.streams.iter().map(|settings| settings.stream.name()).collect()),
        Pausable::Sink(_) => ("sinks", config.sinks.keys().map(String::as_str).collect()),
    };
    Err(Refused(format!("there is no {what} under [{table}]; there are: {}", there.join(", "))))
}

/// The sink that the configuration pauses, if it is one.
fn paused_by(config: &Config, what: &Pausable) -> Option<String> {
    let Pausable::Sink(name) = what else { return None };
    config.sinks.get(name).is_some_and(|sink| sink.route.paused).then(|| name.clone())
}

fn refused(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::Store(error) => error.into(),
        error => Refused(error.to_string()).into(),
    }
}
