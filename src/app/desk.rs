//! Questions about the state, answered by whichever process holds it: this one if nobody else does, else the holder
//! through its control socket.

use std::io;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::cli::exit::Exit;
use crate::config::Config;
use crate::ops::control::{AskError, ControlSocket, Desk, Line, Reply, ask as ask_holder};
use crate::store::{Holder, StateLock};
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

use super::assembly::{Assembly, Reach, Wishes};

/// What can be asked. The names are spoken between processes, which may be of different versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum Question {
    /// How everything stands.
    Status,
}

impl Question {
    /// What answering it may touch.
    fn reach(&self) -> Reach {
        match self {
            Self::Status => Reach::Look,
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
    let held = match Assembly::open(config, Wishes { reach: question.reach(), ..Wishes::usual() }).await {
        Ok(assembly) => return answer_here(&assembly, question, hear).await,
        Err(error) if is_held(&error) => error,
        Err(error) => return Err(error),
    };
    let state = &config.store.path;
    let socket = Holder::of(state).and_then(|holder| holder.socket);
    let text = serde_json::to_string(question)?;
    match ask_holder(state, socket.as_deref(), &text, &mut hear).await {
        Ok(code) => Ok(Exit::of_code(code).unwrap_or(Exit::Unavailable)),
        Err(AskError::NoAnswer { .. }) => Err(held),
        Err(error) => Err(error).context("failed to ask the process that holds the state"),
    }
}

fn is_held(error: &anyhow::Error) -> bool {
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
    }
}

/// Answers the callers of the control socket from a running assembly.
struct FrontDesk {
    assembly: Arc<Assembly>,
    serving: bool,
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
            match answer(&self.assembly, self.serving, &question, reply).await {
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
        let desk = Arc::new(FrontDesk { assembly: Arc::clone(assembly), serving });
        Some(Self { serving: tokio::spawn(socket.serve(desk, shutdown.clone())), shutdown })
    }

    /// Answers nobody any more. Returns once nothing holds the assembly.
    pub(super) async fn close(self) {
        self.shutdown.cancel();
        drop(self.serving.await);
    }
}

fn announce(lock: &StateLock, socket: &std::path::Path) -> Result<(), StoreError> {
    lock.announce(&Holder { socket: Some(socket.to_owned()), ..Holder::this_process() })
}
