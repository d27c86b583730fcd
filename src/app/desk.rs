//! Questions about the state, answered by whichever process holds it: this one if nobody else does, else the holder
//! through its control socket.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio::sync::RwLock;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::{Declined, Exit};
use crate::config::Config;
use crate::ops::control::{AskError, ControlSocket, Desk, Line, Reply, ask as ask_holder};
use crate::record::Stream;
use crate::store::disk::Compacted;
use crate::store::{self, Holder, StateLock};
use crate::sync::ports::StoreErrorKind;
use crate::sync::{Pausable, StoreError};

use super::actions::{self, Operator};
use super::assembly::{Assembly, Reach, Wishes};
use super::backfill::BackfillQuestion;
use super::breaker::{self, BreakerOrder};
use super::cursor::CursorQuestion;
use super::pausing::{self, PauseOrder};
use super::quarantine::{self, QuarantineQuestion};
use super::queue::{self, QueueQuestion};
use super::reconcile::ReconcileQuestion;
use super::recover;

/// A service that reads its configuration again answers nobody for so long at most: it stops everything, within five
/// seconds, and opens the state once more.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(10);
/// So often it is looked whether it does.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// A state that was free at so many looks in a row is held by nobody any more.
const ENDED_AFTER: u32 = 10;

/// What can be asked. The names are spoken between processes, which may be of different versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum Question {
    /// How everything stands.
    Status,
    /// Something about the durable queue.
    Queue(QueueQuestion),
    /// Something about what was set aside.
    Quarantine(QuarantineQuestion),
    /// A word to the breaker.
    Breaker {
        /// What is to become of it.
        order: BreakerOrder,
        /// Who says so, and why.
        operator: Operator,
    },
    /// A stream or a sink is held back or let go.
    Pausing {
        /// Which of both.
        order: PauseOrder,
        /// What.
        what: Pausable,
        /// Who says so, and why.
        operator: Operator,
    },
    /// A pass as soon as one can be made: for services.
    SyncNow {
        /// Over these streams; none means all.
        streams: Vec<Stream>,
        /// Who says so, and why.
        operator: Operator,
    },
    /// What people did by command.
    BreakerHistory,
    /// Back to work after a stall.
    Recover {
        /// The streams whose smallest pages are asked for.
        streams: Vec<Stream>,
        /// Who says so, and why.
        operator: Operator,
        /// Whether long waits for quota are sat out.
        wait: bool,
    },
    /// Where streams stand, and where they are put.
    Cursor(CursorQuestion),
    /// Records to be read once more. Whoever opens the state does that without asking.
    Backfill(BackfillQuestion),
    /// A stream to be compared. Whoever opens the state does that without asking.
    Reconcile(ReconcileQuestion),
}

impl Question {
    /// What answering it may touch.
    fn reach(&self) -> Reach {
        match self {
            Self::Status | Self::BreakerHistory => Reach::Look,
            Self::Queue(question) => question.reach(),
            Self::Quarantine(question) => question.reach(),
            Self::Cursor(question) => question.reach(),
            Self::Breaker { .. }
            | Self::Pausing { .. }
            | Self::SyncNow { .. }
            | Self::Recover { .. }
            | Self::Backfill(_)
            | Self::Reconcile(_) => Reach::Everything,
        }
    }
}

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

/// The answer itself. `serving` is whether a service runs, rather than a command that ends.
pub(super) async fn answer(
    assembly: &Assembly,
    serving: bool,
    question: &Question,
    reply: &Reply,
) -> anyhow::Result<Exit> {
    match question {
        Question::Status => {
            let report = assembly.status(serving).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::Queue(question) => queue::answer(assembly, serving, question, reply).await,
        Question::Quarantine(question) => quarantine::answer(assembly, serving, question, reply).await,
        Question::Cursor(question) => {
            let lines = question.answer(Arc::clone(&assembly.store), assembly.ground.clone()).await?;
            for line in lines {
                reply.data(line).await;
            }
            Ok(Exit::Ok)
        }
        Question::Breaker { order, operator } => {
            let report = breaker::by_the_holder(assembly, *order, operator)?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::Pausing { order, what, operator } => {
            let report = pausing::by_the_holder(assembly, *order, what, operator).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::SyncNow { streams, operator } => {
            reply.talk(pausing::sync_now(assembly, serving, streams, operator)?).await;
            Ok(Exit::Ok)
        }
        Question::BreakerHistory => {
            reply.data(serde_json::to_string(&actions::all(assembly.store.as_ref())?)?).await;
            Ok(Exit::Ok)
        }
        Question::Recover { streams, operator, wait } => {
            let report = recover::by_the_holder(assembly, streams.clone(), operator, *wait, reply).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::of_code(report.exit).unwrap_or(Exit::Unavailable))
        }
        Question::Backfill(question) => {
            let (data, exit) = question.answer(assembly, serving, &CancellationToken::new()).await?;
            reply.data(data).await;
            Ok(exit)
        }
        Question::Reconcile(question) => {
            let (data, exit) = question.answer(assembly, serving, &CancellationToken::new()).await?;
            reply.data(data).await;
            Ok(exit)
        }
    }
}

/// Answers the callers of the control socket from a running assembly.
struct FrontDesk {
    assembly: Arc<Assembly>,
    serving: bool,
    shutdown: CancellationToken,
    /// Held by whatever goes on when nobody listens any more.
    at_work: Arc<RwLock<()>>,
}

impl FrontDesk {
    /// Lets `work` answer, which goes on when whoever asked has gone away.
    async fn at_length<F>(
        &self,
        reply: &Reply,
        work: impl FnOnce(Arc<Assembly>, bool, CancellationToken) -> F,
    ) -> anyhow::Result<Exit>
    where
        F: Future<Output = anyhow::Result<(String, Exit)>> + Send + 'static,
    {
        let at_work = Arc::clone(&self.at_work).read_owned().await;
        let working = work(Arc::clone(&self.assembly), self.serving, self.shutdown.clone());
        let task = tokio::spawn(async move {
            let answered = working.await;
            drop(at_work);
            answered
        });
        let (data, exit) = task.await.context("this command met a defect; please report the place logged before")??;
        reply.data(data).await;
        Ok(exit)
    }
}

impl Desk for FrontDesk {
    fn answer<'a>(&'a self, question: &'a str, reply: &'a Reply) -> BoxFuture<'a, u8> {
        Box::pin(async move {
            let Ok(question) = serde_json::from_str::<Question>(question) else {
                let version = env!("CARGO_PKG_VERSION");
                let sentence = format!(
                    "the process that holds the state (version {version}) does not know this command; stop it, or use \
                     the same version"
                );
                reply.talk(sentence).await;
                return Exit::Usage.code();
            };
            let answered = match question {
                Question::Backfill(question) => {
                    self.at_length(reply, |assembly, serving, over| async move {
                        question.answer(&assembly, serving, &over).await
                    })
                    .await
                }
                Question::Reconcile(question) => {
                    self.at_length(reply, |assembly, serving, over| async move {
                        question.answer(&assembly, serving, &over).await
                    })
                    .await
                }
                question => answer(&self.assembly, self.serving, &question, reply).await,
            };
            match answered {
                Ok(exit) => exit.code(),
                Err(error) => {
                    reply.talk(format!("{error:#}")).await;
                    Exit::of_error(&error).code()
                }
            }
        })
    }
}

/// Answers at the control socket until dropped. A socket that cannot be made is logged and does without: the process
/// does its work, and other commands are told who holds the state.
pub(super) struct OpenDesk {
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
    at_work: Arc<RwLock<()>>,
}

impl OpenDesk {
    /// Opens the desk of `assembly`, if it holds a state. `serving` is whether it is a service.
    pub(super) fn open(config: &Config, assembly: &Arc<Assembly>, serving: bool) -> Option<Self> {
        let lock = assembly.lock()?;
        let socket = ControlSocket::bind(&config.store.path).and_then(|socket| {
            if let Some(elsewhere) = socket.elsewhere(&config.store.path) {
                announce(lock, elsewhere).map_err(io::Error::other)?;
            }
            Ok(socket)
        });
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(
                    event = "control_socket_failed",
                    "no other command can look into this process: failed to make its control socket: {error}"
                );
                return None;
            }
        };
        let shutdown = CancellationToken::new();
        let at_work = Arc::new(RwLock::new(()));
        let desk = Arc::new(FrontDesk {
            assembly: Arc::clone(assembly),
            serving,
            shutdown: shutdown.clone(),
            at_work: Arc::clone(&at_work),
        });
        let (supervisor, over) = (assembly.engine.supervisor(), shutdown.clone());
        let serving = tokio::spawn(async move {
            let answering = || socket.serve(desk.clone(), over.clone()).map(Ok::<(), Infallible>);
            let Ok(()) = supervisor.run("control socket", &over, answering).await;
        });
        Some(Self { serving, shutdown, at_work })
    }

    /// Returns when nobody is answered any more though nobody said so.
    pub(super) async fn ended(&mut self) -> Result<Result<(), Infallible>, JoinError> {
        (&mut self.serving).await.map(Ok)
    }

    /// Answers nobody any more. Returns once nothing holds the assembly.
    pub(super) async fn close(self) {
        self.shutdown.cancel();
        if !self.serving.is_finished() {
            drop(self.serving.await);
        }
        drop(self.at_work.write().await);
    }
}

fn announce(lock: &StateLock, socket: &std::path::Path) -> Result<(), StoreError> {
    lock.announce(&Holder { socket: Some(socket.to_owned()), ..Holder::this_process() })
}
