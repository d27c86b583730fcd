//! Questions about the state, answered by whichever process holds it: this one if nobody else does, else the holder
//! through its control socket.

use std::io;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::Exit;
use crate::config::Config;
use crate::ops::control::{AskError, ControlSocket, Desk, Line, Reply, ask as ask_holder};
use crate::record::Stream;
use crate::store::disk::Compacted;
use crate::store::{self, Holder, StateLock};
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

use super::actions::{self, Operator};
use super::assembly::{Assembly, Reach, Wishes};
use super::backfill::BackfillQuestion;
use super::breaker::{self, BreakerOrder};
use super::quarantine::{self, QuarantineQuestion};
use super::queue::{self, QueueQuestion};
use super::recover;

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
    /// Records to be read once more. Whoever opens the state does that without asking.
    Backfill(BackfillQuestion),
}

impl Question {
    /// What answering it may touch.
    fn reach(&self) -> Reach {
        match self {
            Self::Status | Self::BreakerHistory => Reach::Look,
            Self::Queue(question) => question.reach(),
            Self::Quarantine(question) => question.reach(),
            Self::Breaker { .. } | Self::Recover { .. } | Self::Backfill(_) => Reach::Everything,
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
    hear: impl FnMut(Line) -> io::Result<()>,
) -> anyhow::Result<Exit> {
    let held = match Assembly::open(config, Wishes { reach: question.reach(), ..Wishes::usual() }).await {
        Ok(assembly) => return answer_here(&assembly, question, hear).await,
        Err(error) => error,
    };
    ask_the_holder(config, question, held, hear).await
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
    let socket = Holder::of(state).and_then(|holder| holder.socket);
    let text = serde_json::to_string(question)?;
    match ask_holder(state, socket.as_deref(), &text, &mut hear).await {
        Ok(code) => Ok(Exit::of_code(code).unwrap_or(Exit::Unavailable)),
        Err(AskError::NoAnswer { .. }) => Err(held),
        Err(error) => Err(error).context("failed to ask the process that holds the state"),
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
async fn answer(assembly: &Assembly, serving: bool, question: &Question, reply: &Reply) -> anyhow::Result<Exit> {
    match question {
        Question::Status => {
            let report = assembly.status(serving).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::Queue(question) => queue::answer(assembly, serving, question, reply).await,
        Question::Quarantine(question) => quarantine::answer(assembly, question, reply).await,
        Question::Breaker { order, operator } => {
            let report = breaker::by_the_holder(assembly, *order, operator)?;
            reply.data(serde_json::to_string(&report)?).await;
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
    /// Answers about a backfill, which goes on when whoever asked has gone away.
    async fn backfill(&self, question: BackfillQuestion, reply: &Reply) -> anyhow::Result<Exit> {
        let (assembly, serving, cancel) = (Arc::clone(&self.assembly), self.serving, self.shutdown.clone());
        let at_work = Arc::clone(&self.at_work).read_owned().await;
        let task = tokio::spawn(async move {
            let answered = question.answer(&assembly, serving, &cancel).await;
            drop((assembly, at_work));
            answered
        });
        let (data, exit) = task.await.context("the backfill met a defect; please report the place logged before")??;
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
                Question::Backfill(question) => self.backfill(question, reply).await,
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
    serving: tokio::task::JoinHandle<()>,
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
        Some(Self { serving: tokio::spawn(socket.serve(desk, shutdown.clone())), shutdown, at_work })
    }

    /// Answers nobody any more. Returns once nothing holds the assembly.
    pub(super) async fn close(self) {
        self.shutdown.cancel();
        drop(self.serving.await);
        drop(self.at_work.write().await);
    }
}

fn announce(lock: &StateLock, socket: &std::path::Path) -> Result<(), StoreError> {
    lock.announce(&Holder { socket: Some(socket.to_owned()), ..Holder::this_process() })
}
