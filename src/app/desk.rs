//! Questions about the state, answered by whichever process holds it: this one if nobody else does, else the holder
//! through its control socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::net::UnixStream;
use tokio::time::Instant;

use crate::cli::exit::{Declined, Exit};
use crate::config::Config;
use crate::ops::control::{AskError, Line, Reply, ask as ask_holder};
use crate::store::disk::Compacted;
use crate::store::{self, Holder, StateLock};
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

use super::assembly::{Assembly, Reach, Wishes};
use super::quarantine::QuarantineQuestion;
use super::queue::QueueQuestion;

mod front;
mod question;

pub(super) use front::{OpenDesk, answer};
pub(super) use question::Question;

/// A service that reads its configuration again answers nobody for so long at most: it stops everything, within five
/// seconds, and opens the state once more.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(10);
/// So often it is looked whether it does.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// A state that was free at so many looks in a row is held by nobody any more.
const ENDED_AFTER: u32 = 10;

/// Answers `question` from the state, or asks the process that holds it. `hear` is given each line of the answer.
///
/// # Errors
/// When the state can neither be opened nor its holder be asked: the error names the holder (exit 75).
pub(super) async fn ask(
    config: &Config,
    question: &Question,
    mut hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    let began = Instant::now();
    loop {
        let held = match Assembly::open(config, Wishes { reach: question.reach(), ..Wishes::usual() }).await {
            Ok(assembly) => return answer_here(&assembly, question, hear).await,
            Err(error) => error,
        };
        match ask_the_holder(config, question, held, &mut hear).await {
            // Its holder ended before it was asked: the state can be opened.
            Err(error) if is_held(&error) && began.elapsed() < BACK_WITHIN => {}
            answered => return answered,
        }
    }
}

/// Asks the process that holds the state, and reads the document that it answers with; what it says besides is logged.
/// `held` is the error that says who that is.
///
/// # Errors
/// When it cannot be asked (`held`), or does not answer with such a document.
pub(super) async fn hand_over<T: serde::de::DeserializeOwned>(
    config: &Config,
    question: &Question,
    held: anyhow::Error,
) -> anyhow::Result<T> {
    let (mut document, mut said) = (None, Vec::new());
    let mut hear = |line: Line| {
        match line {
            Line::Data(text) => document = Some(text),
            Line::Talk(text) => {
                tracing::info!(event = "holder_says", "{text}");
                said.push(text);
            }
            Line::Accepted | Line::Exit(_) => {}
        }
        Ok::<(), io::Error>(())
    };
    ask_the_holder(config, question, held, &mut hear).await?;
    let Some(document) = document else {
        anyhow::bail!("failed to ask the process that holds the state: {}", said.join("; "))
    };
    serde_json::from_str(&document)
        .context("failed to read what the process that holds the state says; use the same version of sierra-sync")
}

/// Asks the process that holds the state. `held` is why the state could not be opened: another reason is handed back.
///
/// # Errors
/// That reason, also when the holder does not answer.
pub(super) async fn ask_the_holder(
    config: &Config,
    question: &Question,
    held: anyhow::Error,
    mut hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    if !is_held(&held) {
        return Err(held);
    }
    let state = &config.store.path;
    let text = serde_json::to_string(question)?;
    let (began, mut looks_free, mut has_told) = (Instant::now(), 0, false);
    loop {
        let socket = Holder::of(state).and_then(|holder| holder.socket);
        match ask_holder(state, socket.as_deref(), &text, &mut hear).await {
            Ok(code) => return Ok(Exit::of_code(code).unwrap_or(Exit::Unavailable)),
            // It was not asked yet, so that it may be asked again.
            Err(AskError::NoAnswer { .. }) if began.elapsed() < BACK_WITHIN && looks_free < ENDED_AFTER => {
                if !std::mem::replace(&mut has_told, true) {
                    tracing::debug!(
                        event = "holder_awaited",
                        "{held:#}; it answers nobody, and is waited for a moment"
                    );
                }
                looks_free = if StateLock::held_by(state).is_none() { looks_free + 1 } else { 0 };
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            }
            Err(AskError::NoAnswer { .. } | AskError::Stalled { .. }) => return Err(held),
            Err(error) => return Err(error).context("failed to ask the process that holds the state"),
        }
    }
}

/// Asks about the durable queue.
///
/// # Errors
/// When the state can neither be opened nor its holder be asked, or nothing is there by the name that was given.
pub async fn queue(
    config: &Config,
    question: &QueueQuestion,
    hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    ask(config, &Question::Queue(question.clone()), hear).await
}

/// Asks about what was set aside.
///
/// # Errors
/// When the state can neither be opened nor its holder be asked, or nothing is there by the name that was given.
pub async fn quarantine(
    config: &Config,
    question: &QuarantineQuestion,
    hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    ask(config, &Question::Quarantine(question.clone()), hear).await
}

/// Writes the state anew, in as little room as it needs.
///
/// # Errors
/// When another process holds the state, a value is damaged, or the disk fails.
pub async fn compact(config: &Config) -> anyhow::Result<Compacted> {
    let state = config.store.path.clone();
    let compacted = tokio::task::spawn_blocking(move || store::disk::compact(&state)).await?;
    compacted.with_context(|| format!("failed to compact the state in {}", config.store.path.display()))
}

/// Whether another process holds the state.
pub(super) fn is_held(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()).map(|error| &error.kind);
    matches!(kind, Some(StoreErrorKind::Held { .. }))
}

/// Whether the process that holds `state` answers others. Whoever holds it for longer than a moment does.
pub(super) async fn is_answered(state: &Path) -> bool {
    let socket = Holder::of(state).and_then(|holder| holder.socket).unwrap_or_else(|| state.join("control.sock"));
    UnixStream::connect(socket).await.is_ok()
}

/// Asks the process that holds the state, if that is why it could not be opened, and reads the document that it answers
/// with. Says with which exit code it did.
///
/// # Errors
/// [`Declined`] in its own words when it answers with none; else as [`ask_the_holder`].
pub(super) async fn document_of_holder<T: serde::de::DeserializeOwned>(
    config: &Config,
    question: &Question,
    held: anyhow::Error,
) -> anyhow::Result<(T, Exit)> {
    let (mut document, mut said) = (None, Vec::new());
    let exit = ask_the_holder(config, question, held, |line| {
        match line {
            Line::Data(text) => document = Some(text),
            Line::Talk(sentence) => said.push(sentence),
            Line::Accepted | Line::Exit(_) => {}
        }
        Ok(())
    })
    .await?;
    match document {
        Some(document) => Ok((serde_json::from_str(&document)?, exit)),
        None => Err(Declined { sentence: said.join("\n"), exit }.into()),
    }
}

async fn answer_here(
    assembly: &Assembly,
    question: &Question,
    mut hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    let (reply, mut lines) = Reply::channel();
    let answering = async move { answer(assembly, false, question, &reply).await };
    let hearing = async {
        let mut heard = Ok(());
        while let Some(line) = lines.recv().await {
            heard = heard.and_then(|()| hear(line));
        }
        heard
    };
    let (answered, heard) = tokio::join!(answering, hearing);
    if question.reach() == Reach::Everything {
        // What sinks hold open is published before they are let go.
        if let Some((name, error)) = assembly.engine.close().await.into_iter().next() {
            return Err(anyhow::Error::new(error).context(format!("failed to close sink {name}")));
        }
        assembly.keep_vitals()?;
    }
    heard?;
    answered
}
